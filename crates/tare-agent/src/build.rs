//! The agent's build id: what `Hello` answers and what the host finds in the agent's file.
//!
//! The id stands in the file between two marks, so that the host can read it from bytes that it cannot
//! execute: an agent for another system, or one for the other end of an engine's connection.
//! What it cannot see: two builds of equal sources by different compilers; the file's SHA-256 tells those.

use std::hint::black_box;

/// What stands before the id in the agent's file.
const OPEN: &str = "<tare-agent-build ";

/// The id between its marks. `#[used]` and the read through `black_box` keep it whole in the file.
#[used]
static MARKED: &str = concat!("<tare-agent-build ", env!("TARE_BUILD"), ">");

/// The build id: version, hash of the sources, optimisation level and target.
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
