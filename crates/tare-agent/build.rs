//! Computes the agent's build id from what goes into the agent: its sources and those of the vocabulary with the lists
//! and tables among them, which dependencies it has, the target and the optimisation level.
//!
//! It only reads files of this repository and never calls cargo. The id is not a proof that two files are
//! equal (the SHA-256 that the host takes is); it tells the host, over any stream, whether the agent that
//! answers is the one it put there.

use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    for folder in [root.join("src"), root.join("../tare-model/src")] {
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, &mut files);
    }
    for manifest in ["Cargo.toml", "no-unwinding.ld", "../tare-model/Cargo.toml"] {
        let manifest = root.join(manifest);
        println!("cargo::rerun-if-changed={}", manifest.display());
        files.push(manifest);
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        hash = fnv(hash, name.as_bytes());
        hash = fnv(hash, &std::fs::read(file).unwrap_or_default());
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!(
        "cargo::rustc-env=TARE_BUILD={}-{hash:016x}-o{}-{}",
        variable("CARGO_PKG_VERSION"),
        variable("OPT_LEVEL"),
        variable("TARGET"),
    );
    // The static file of an optimised build. Elsewhere a panic unwinds (tests), or another linker is at work.
    if variable("PROFILE") == "release" && variable("CARGO_CFG_TARGET_ENV") == "musl" {
        let script = root.join("no-unwinding.ld");
        // Rust's own linker, where it stands in for a foreign one, takes options as they are; a C compiler passes them on.
        let is_direct = variable("CARGO_ENCODED_RUSTFLAGS").contains("linker=rust-lld");
        let passed_on = if is_direct { "" } else { "-Wl," };
        println!("cargo::rustc-link-arg-bins={passed_on}--no-eh-frame-hdr");
        // Otherwise half a page is lost wherever code and constants meet.
        println!("cargo::rustc-link-arg-bins={passed_on}-znoseparate-code");
        println!("cargo::rustc-link-arg-bins=-T{}", script.display());
    }
}

/// Every file below `folder`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
