//! How a test reports that something cannot be tested on this machine; the tests of every package include this file.
//!
//! Libtest cannot skip from within a test: one that returns early counts as passed. The test therefore adds a line to
//! the file that `TARE_SKIPS` names, and `cargo xtask test` counts the test as skipped and repeats the reason. A test
//! that skips a part of itself also counts as skipped: it has not shown everything that its name says.

use std::io::Write;

/// Reports that `needs` is unavailable, and why; fails instead if `TARE_REQUIRE` names it.
pub fn skip(needs: &str, reason: &str) {
    let required = std::env::var("TARE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == needs),
        "`{needs}` is required here, but {reason}"
    );
    // Bypasses the output capture of passing tests, so that the reason is visible.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
    let Some(path) = std::env::var_os("TARE_SKIPS").filter(|path| !path.is_empty()) else {
        return;
    };
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread without a name");
    let reason = reason.replace(['\n', '\t'], " ");
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    // One write per line: several programs append at the same time.
    file.and_then(|mut file| {
        file.write_all(format!("{program}\t{test}\t{needs}\t{reason}\n").as_bytes())
    })
    .expect("the file that `TARE_SKIPS` names can be written");
}
