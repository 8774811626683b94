//! Exact rows that are no part of the blocks: the size of programs and images, and system calls by kind.
//!
//! Calls are counted by `strace` where it is installed, in two runs of each side before the first block; a count is a
//! row only where both runs agree.
//! Limits: a program's size is that of its own file. Commands that take long are not counted, since tracing slows them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tare_model::fact;

use crate::compare::Row;
use crate::compare::limits::Unit;
use crate::compare::study::Side;
use crate::cx::exec::CommandLine;
use crate::cx::{Context, files};
use crate::why::observed::Observed;

/// Commands that take longer are not traced, nanoseconds.
const TRACED_BELOW_NS: u64 = 500_000_000;
/// So many times as long a traced run may take.
const SLOWER_MOST: u64 = 20;
/// The part of the budget that tracing may take.
const BUDGET_PART: u64 = 10;

/// The rows of every side against the base.
pub(crate) fn rows(
    cx: &Context<'_>,
    sides: &[Side],
    looks: &[Observed],
    budget_ns: u64,
) -> Vec<Row> {
    let sizes: Vec<Option<(&'static str, f64)>> = sides
        .iter()
        .zip(looks)
        .map(|(side, look)| size(side, look))
        .collect();
    let spent_ns: u64 = looks
        .iter()
        .map(|look| 2 * look.wall_ns * SLOWER_MOST)
        .sum();
    let is_short = looks.iter().all(|look| look.wall_ns <= TRACED_BELOW_NS)
        && spent_ns <= budget_ns / BUDGET_PART;
    let leaves_some = looks.iter().any(|look| look.report.left_running > 0);
    let is_plain = |side: &Side| side.driver == "host" && side.call.stdin_file.is_none();
    let calls: Vec<Counts> = if is_short && !leaves_some && sides.iter().all(is_plain) {
        let pairs = sides.iter().zip(looks);
        pairs
            .map_while(|(side, look)| traced_twice(cx, side, look))
            .collect()
    } else {
        Vec::new()
    };
    let mut rows = Vec::new();
    for place in 1..sides.len() {
        let of_side = |name: &str| match sides.len() {
            2 => name.to_owned(),
            _ => format!("{}.{name}", sides[place].arm),
        };
        let arm = sides[place].arm.as_str();
        if let (Some((name, base)), Some((other, head))) = (sizes[0], sizes[place])
            && name == other
        {
            rows.push(Row::counted(of_side(name), arm, Unit::Bytes, (base, head)));
        }
        if let (Some(base), Some(head)) = (calls.first(), calls.get(place)) {
            for (name, pair) in compared(base, head) {
                rows.push(Row::counted(of_side(&name), arm, Unit::Count, pair));
            }
        }
    }
    rows
}

/// The size of what is run: of the image that holds it, or of the program's file.
fn size(side: &Side, look: &Observed) -> Option<(&'static str, f64)> {
    if side.settings.value("image").is_some() {
        let bytes = look.facts.get(fact::IMAGE_SIZE)?.parse().ok()?;
        return Some(("image-size", bytes));
    }
    let is_hosts = side.driver == "host";
    let bytes = files::length(Path::new(&side.call.argv[0])).filter(|_| is_hosts)?;
    Some(("binary-size", bytes as f64))
}

/// System calls by name.
type Counts = BTreeMap<String, u64>;

/// The calls of which two runs agree; `None` where there is no `strace`, or it cannot trace here.
fn traced_twice(cx: &Context<'_>, side: &Side, look: &Observed) -> Option<Counts> {
    let mut first = traced(cx, side, look)?;
    let second = traced(cx, side, look)?;
    first.retain(|name, count| second.get(name) == Some(count));
    Some(first)
}

fn traced(cx: &Context<'_>, side: &Side, look: &Observed) -> Option<Counts> {
    let file = cx.scratch.join("syscalls");
    let call = side.whole_call();
    let words = [
        "-c",
        "cd \"$0\" && exec strace -f -c -o \"$@\"",
        call.directory.as_deref().unwrap_or("/"),
        file.to_str()?,
    ];
    let arguments = words
        .into_iter()
        .chain(call.argv.iter().map(String::as_str));
    let mut line = CommandLine::new("sh", arguments);
    line.variables = call.variables;
    if call.clean {
        line = line.with_variables_alone();
    }
    let limit =
        Duration::from_nanos(look.wall_ns.saturating_mul(SLOWER_MOST)) + Duration::from_secs(2);
    cx.exec.run(&line, &[], limit).ok()?;
    let text = files::read_text(&file).ok()?;
    files::remove(&file).ok()?;
    let counts = counts(&text);
    (!counts.is_empty()).then_some(counts)
}

/// The table of `strace -c`: the fourth column counts, the last one names, and a column of errors may be between.
fn counts(table: &str) -> Counts {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.last().filter(|name| **name != "total")?;
        let count: u64 = words.get(3)?.parse().ok()?;
        (words.len() >= 5).then(|| ((*name).to_owned(), count))
    };
    table.lines().filter_map(row).collect()
}

/// All calls that both sides have counted exactly, and the kinds of which one side makes more.
fn compared(base: &Counts, head: &Counts) -> Vec<(String, (f64, f64))> {
    let count = |of: &Counts, name: &String| of.get(name).copied().unwrap_or(0) as f64;
    let mut names: Vec<&String> = base.keys().chain(head.keys()).collect();
    names.sort();
    names.dedup();
    let total = |of: &Counts| of.values().sum::<u64>() as f64;
    let mut rows = vec![("syscalls".to_owned(), (total(base), total(head)))];
    let kinds = names.into_iter().map(|name| {
        (
            format!("syscalls-{name}"),
            (count(base, name), count(head, name)),
        )
    });
    rows.extend(kinds.filter(|(_, (base, head))| (base - head).abs() > 0.5));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n 40.00    0.000004           0        12           mmap\n  0.00    0.000000           0         3         2 openat\n------ ----------- ----------- --------- --------- ----------------\n100.00    0.000010           0        15         2 total\n";

    #[test]
    fn table_of_calls_is_read_with_and_without_errors() {
        let found = counts(TABLE);
        assert_eq!(found.get("mmap"), Some(&12));
        assert_eq!(found.get("openat"), Some(&3));
        assert_eq!(found.len(), 2);
        assert!(counts("strace: ptrace: not permitted\n").is_empty());
    }

    #[test]
    fn kinds_are_rows_only_where_they_differ() {
        let base = counts(TABLE);
        let mut head = base.clone();
        head.insert("mmap".into(), 20);
        head.insert("futex".into(), 1);
        let rows = compared(&base, &head);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["syscalls", "syscalls-futex", "syscalls-mmap"]);
        assert_eq!(rows[0].1, (15.0, 24.0));
        assert_eq!(compared(&base, &base).len(), 1);
    }
}
