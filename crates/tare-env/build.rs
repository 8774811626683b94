//! Puts agents into the host's binary: `TARE_AGENT_FILES` lists them as `target=path`, separated by `;`.
//!
//! `cargo xtask dist` sets the variable after it has built the agents. Without it nothing is embedded and
//! the host looks for an agent's file when it runs. This script never calls cargo.

use std::fmt::Write as _;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TARE_AGENT_FILES");
    println!(
        "cargo::rustc-env=TARE_TARGET={}",
        std::env::var("TARGET").expect("cargo sets it")
    );
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
