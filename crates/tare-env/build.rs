//! Puts agents into the host's binary: `TARE_AGENT_FILES` lists them as `target=path`, separated by `;`.
//!
//! `cargo xtask dist` sets the variable. Without it nothing is embedded and the host looks for an agent's file when it
//! runs. If the agents are still being built, `TARE_AGENTS_AWAITED` names a file that is locked until they are. This
//! script never calls cargo.

use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TARE_AGENT_FILES");
    println!(
        "cargo::rustc-env=TARE_TARGET={}",
        std::env::var("TARGET").expect("cargo sets it")
    );
    if let Some(lock) = std::env::var_os("TARE_AGENTS_AWAITED")
        && let Err(error) = File::open(&lock).and_then(|lock| lock.lock_shared())
    {
        let lock = lock.display();
        println!("cargo::error=TARE_AGENTS_AWAITED: cannot wait for `{lock}`: {error}");
        return;
    }
    let list = std::env::var("TARE_AGENT_FILES").unwrap_or_default();
    let mut code = String::from("&[");
    for entry in list.split(';').filter(|entry| !entry.is_empty()) {
        let Some((target, path)) = entry.split_once('=') else {
            println!("cargo::error=TARE_AGENT_FILES: `{entry}` is not `target=path`");
            return;
        };
        let path = match std::fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) => {
                println!("cargo::error=TARE_AGENT_FILES: cannot find `{path}`: {error}");
                return;
            }
        };
        println!("cargo::rerun-if-changed={}", path.display());
        write!(
            code,
            "({target:?}, include_bytes!({:?}).as_slice()),",
            path.display().to_string()
        )
        .expect("writing to a String cannot fail");
    }
    code.push(']');
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(folder.join("agents.rs"), code).expect("OUT_DIR can be written to");
}
