//! Copies the programs: each side and the A/A control run from a separate file, below paths of equal length.
//!
//! A program's location decides the placement of its pages and the length of its path; that alone causes differences
//! of a few percent. Each copy is tried once. If one fails or prints something else, all sides run their original
//! files.
//! Limits: scripts and other files that are not ELF are not copied.

use std::path::Path;
use std::time::Duration;

use crate::compare::study::Side;
use crate::cx::exec::CommandLine;
use crate::cx::{Context, files};
use crate::output;
use crate::why::observed::Observed;

/// Largest program that is copied, bytes.
const LARGEST: usize = 256 << 20;
/// Longest total time of the first runs for which copies are tried; slower commands run their original files.
const TRIED_BELOW_NS: u64 = 5_000_000_000;

/// Gives each side and the control a copy of its program, and returns the control's command. The sides stay unchanged
/// if their programs cannot be copied. `prints_same`: whether each run of a side prints the same.
pub(crate) fn made(
    cx: &Context<'_>,
    sides: &mut [Side],
    looks: &[Observed],
    prints_same: bool,
) -> Vec<String> {
    let own = sides[0].call.argv.clone();
    let is_short = looks.iter().map(|look| look.wall_ns).sum::<u64>() <= TRIED_BELOW_NS;
    let is_plain = |side: &Side| side.driver == "host" && side.call.stdin_file.is_none();
    // A process that is left running would keep the copy's output open.
    let leaves_some = looks.iter().any(|look| look.report.left_running > 0);
    if !is_short || leaves_some || !sides.iter().all(is_plain) {
        return own;
    }
    let mut copies = Vec::new();
    for (place, side) in sides.iter().chain([&sides[0]]).enumerate() {
        match copied(cx, place, &side.call.argv[0]) {
            Some(path) => copies.push(path),
            None => return own,
        }
    }
    let looked = looks.iter().chain([&looks[0]]);
    for ((side, look), copy) in sides.iter().chain([&sides[0]]).zip(looked).zip(&copies) {
        if !does_the_same(cx, side, (look, prints_same), copy) {
            output::tell(&format!(
                "note: a copy of `{}` does not do the same, so all sides run from their own files, the A/A control from the base's",
                output::printable(&side.call.argv[0])
            ));
            return own;
        }
    }
    let control = copies.pop().unwrap_or_default();
    for (side, copy) in sides.iter_mut().zip(copies) {
        side.call.argv[0] = copy;
    }
    let mut argv = own;
    argv[0] = control;
    argv
}

/// Returns the copy's path; `None` if the program is not an ELF file.
fn copied(cx: &Context<'_>, place: usize, program: &str) -> Option<String> {
    let path = files::canonical(Path::new(program)).ok()?;
    if files::head(&path, 4).ok()? != b"\x7fELF" {
        return None;
    }
    let bytes = files::read_plain(&path, LARGEST as u64).ok()?;
    let folder = cx.scratch.join(format!("copy-{place:02}"));
    files::create_folder(&folder).ok()?;
    // Some programs act on the name they are called by.
    let copy = folder.join(Path::new(program).file_name()?);
    files::write_own_program(&copy, &bytes).ok()?;
    copy.to_str().map(str::to_owned)
}

/// Whether the copy exits like the original, and prints the same if every run of the original does.
fn does_the_same(
    cx: &Context<'_>,
    side: &Side,
    (look, prints_same): (&Observed, bool),
    copy: &str,
) -> bool {
    let folder = side.call.directory.as_deref().unwrap_or("/");
    let words = ["-c", "cd \"$0\" && exec \"$@\"", folder, copy];
    let arguments = words
        .into_iter()
        .chain(side.call.argv[1..].iter().map(String::as_str));
    let mut line = CommandLine::new("sh", arguments);
    line.variables = side.whole_call().variables;
    if side.call.clean {
        line = line.with_variables_alone();
    }
    let limit = Duration::from_nanos(look.wall_ns.saturating_mul(20)) + Duration::from_secs(5);
    let Ok(finished) = cx.exec.run(&line, &[], limit) else {
        return false;
    };
    let status = match look.report.exit {
        tare_model::outcome::Exit::Code(code) => Some(code),
        tare_model::outcome::Exit::Signal(_) => None,
    };
    // Messages may contain the path that the program was started with.
    let is_compared = prints_same && !look.report.is_cut;
    finished.status == status && (!is_compared || finished.stdout == look.report.stdout.0)
}
