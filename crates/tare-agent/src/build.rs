//! The agent's build id, which `Hello` answers and which the host finds in the agent's file.
//!
//! In the file the id is between two marks, so that the host can read it from a binary that it cannot execute: an
//! agent for another system, or for the remote end of an engine's connection.
//! Limits: builds of equal sources by different compilers have the same id; the file's SHA-256 distinguishes them.

use std::hint::black_box;

/// The mark before the id in the agent's file.
const OPEN: &str = "<tare-agent-build ";

/// The id between its marks. `#[used]` and the read through `black_box` keep it intact in the file.
#[used]
static MARKED: &str = concat!("<tare-agent-build ", env!("TARE_BUILD"), ">");

/// Returns the build id: version, hash of the sources, optimisation level and target.
pub fn id() -> &'static str {
    let marked: &'static str = black_box(MARKED);
    &marked[OPEN.len()..marked.len() - 1]
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_build_id_names_the_version_and_holds_no_mark() {
        let id = super::id();
        assert!(id.starts_with(env!("CARGO_PKG_VERSION")), "{id}");
        assert!(!id.contains(['<', '>', ' ']), "{id}");
    }
}
