//! How a test says that something cannot be tried on this machine: the tests of every package include this file.
//!
//! Libtest has no way to skip from within a test: one that returns early counts as passed. So it leaves a line in
//! the file that `TARE_SKIPS` names, and `cargo xtask test` counts the test as skipped and repeats the reason.
//! A test that leaves out a part of itself is one that was skipped: it has not shown all that its name says.

use std::io::Write;

/// Says that `needs` cannot be had, and why; fails instead if `TARE_REQUIRE` names it.
pub fn skip(needs: &str, reason: &str) {
    let required = std::env::var("TARE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == needs),
        "`{needs}` is required here, but {reason}"
    );
    // Past the capture of passing tests, so that the reason is read.
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
    // One write for a line: several programs append at the same time.
    file.and_then(|mut file| {
        file.write_all(format!("{program}\t{test}\t{needs}\t{reason}\n").as_bytes())
    })
    .expect("the file that `TARE_SKIPS` names can be written");
}
