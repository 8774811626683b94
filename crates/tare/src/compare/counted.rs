//! Exact counts that are not part of the blocks: sizes of programs and images, and syscalls by name.
//!
//! `strace`, if installed, counts syscalls in two runs of each side before the first block. Only counts on which both
//! runs agree become rows. Limits: a program's size excludes its libraries. Long commands are not counted, because
//! tracing slows them down.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tare_model::fact;

use super::sides::{can_run_alone, script};
use crate::compare::Row;
use crate::compare::limits::Unit;
use crate::compare::study::Side;
use crate::cx::{Context, files};
use crate::why::observed::Observed;

/// Longest command that is traced, nanoseconds.
const TRACED_BELOW_NS: u64 = 500_000_000;
/// Most slowdown that a traced run may have, as a factor.
const SLOWER_MOST: u64 = 20;
/// Tracing may take this fraction of the budget (1/N).
const BUDGET_PART: u64 = 10;

/// Returns the rows of every side against the base.
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
    let calls: Vec<Repeated> = if is_short && can_run_alone(sides, looks) {
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

/// Returns the size of the image, or of the program's file if there is no image.
fn size(side: &Side, look: &Observed) -> Option<(&'static str, f64)> {
    if side.settings.value("image").is_some() {
        let bytes = look.facts.get(fact::IMAGE_SIZE)?.parse().ok()?;
        return Some(("image-size", bytes));
    }
    let is_hosts = side.driver == "host";
    let bytes = files::length(Path::new(&side.call.argv[0])).filter(|_| is_hosts)?;
    Some(("binary-size", bytes as f64))
}

/// Syscall counts by name, as `strace` printed them.
type Counts = BTreeMap<String, u64>;

/// Syscall counts by name; `None` where two runs disagree.
type Repeated = BTreeMap<String, Option<u64>>;

/// Counts the syscalls of two runs; `None` if `strace` is missing or cannot trace here.
fn traced_twice(cx: &Context<'_>, side: &Side, look: &Observed) -> Option<Repeated> {
    let first = traced(cx, side, look)?;
    let second = traced(cx, side, look)?;
    Some(repeated(&first, &second))
}

fn repeated(first: &Counts, second: &Counts) -> Repeated {
    let names = first.keys().chain(second.keys());
    let exact = |name: &String| {
        first
            .get(name)
            .copied()
            .filter(|it| second.get(name) == Some(it))
    };
    names.map(|name| (name.clone(), exact(name))).collect()
}

fn traced(cx: &Context<'_>, side: &Side, look: &Observed) -> Option<Counts> {
    let file = cx.scratch.join("syscalls");
    let strace = "cd \"$0\" && exec strace -f -c -o \"$@\"";
    let line = script(side, strace, file.to_str()?, &side.call.argv);
    let limit =
        Duration::from_nanos(look.wall_ns.saturating_mul(SLOWER_MOST)) + Duration::from_secs(2);
    cx.exec.run(&line, &[], limit).ok()?;
    let text = files::read_text(&file).ok()?;
    files::remove(&file).ok()?;
    let counts = counts(&text);
    (!counts.is_empty()).then_some(counts)
}

/// Parses the table of `strace -c`: column four is the count, the last one the name, with an optional column of
/// errors.
fn counts(table: &str) -> Counts {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.last().filter(|name| **name != "total")?;
        let count: u64 = words.get(3)?.parse().ok()?;
        (words.len() >= 5).then(|| ((*name).to_owned(), count))
    };
    table.lines().filter_map(row).collect()
}

/// Returns the total of the syscalls that both sides repeat exactly, and each of them whose counts differ.
fn compared(base: &Repeated, head: &Repeated) -> Vec<(String, (f64, f64))> {
    let count =
        |of: &Repeated, name: &str| of.get(name).map_or(Some(0.0), |it| it.map(|n| n as f64));
    let names: BTreeSet<&String> = base.keys().chain(head.keys()).collect();
    let exact = |name: &String| Some((name.clone(), (count(base, name)?, count(head, name)?)));
    let kinds: Vec<(String, (f64, f64))> = names.into_iter().filter_map(exact).collect();
    let total = kinds.iter().fold((0.0, 0.0), |(base, head), (_, it)| {
        (base + it.0, head + it.1)
    });
    let differing = kinds
        .into_iter()
        .filter(|(_, (base, head))| (base - head).abs() > 0.5);
    std::iter::once(("syscalls".to_owned(), total))
        .chain(differing.map(|(name, pair)| (format!("syscalls-{name}"), pair)))
        .collect()
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
        let base = repeated(&counts(TABLE), &counts(TABLE));
        let mut head = base.clone();
        head.insert("mmap".into(), Some(20));
        head.insert("futex".into(), Some(1));
        let rows = compared(&base, &head);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["syscalls", "syscalls-futex", "syscalls-mmap"]);
        assert_eq!(rows[0].1, (15.0, 24.0));
        assert_eq!(compared(&base, &base).len(), 1);
    }

    #[test]
    fn unsteady_syscall_is_in_no_row_and_no_total() {
        let once = counts(TABLE);
        let mut again = once.clone();
        again.insert("mmap".into(), 13);
        again.insert("futex".into(), 1);
        let (steady, unsteady) = (repeated(&once, &once), repeated(&once, &again));
        assert_eq!(unsteady["openat"], Some(3));
        assert_eq!((unsteady["mmap"], unsteady["futex"]), (None, None));
        let total = vec![("syscalls".to_owned(), (3.0, 3.0))];
        assert_eq!(compared(&steady, &unsteady), total);
        assert_eq!(compared(&unsteady, &steady), total);
    }
}
