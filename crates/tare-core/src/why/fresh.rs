//! Detects whether the first run in a new container, or on new files of the baseline, differs from the next. Arms that
//! live for several runs would then measure something that `docker run` never does, so each run gets a new container.
//!
//! The first run writes bytecode, caches and moved files, and the next one reads them, unless the container cannot
//! write them.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::CommandReport;
use tare_model::arm::FirstRun;

use crate::workload::command_output::cpu_ns;

/// Two runs differ if they are apart by both this factor and this many nanoseconds.
const TIMES: f64 = 1.5;
const APART_NS: f64 = 30e6;
/// From this many nanoseconds on a first run differs that only waits, as for a network.
const WAITS_NS: u64 = 500_000_000;

/// How many places are named where a first run writes.
const PLACES_MOST: usize = 3;
/// How many components of a path such a place has.
const PLACE_DEPTH: usize = 3;

/// Why each run needs a new container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// As a clause after "because".
    pub why: String,
    /// The two runs, if the first is longer.
    pub first_run: Option<FirstRun>,
}

/// How the two runs in `place` differ. `written` is where the first one wrote.
pub fn differs(
    place: &str,
    [first, next]: [&CommandReport; 2],
    written: Vec<(String, usize)>,
) -> Option<Fresh> {
    if first.exit.is_success() && !next.exit.is_success() {
        return Some(Fresh {
            why: "a second run in the same one fails".to_owned(),
            first_run: None,
        });
    }
    let (short, long) = (
        first.wall_ns.min(next.wall_ns),
        first.wall_ns.max(next.wall_ns),
    );
    // A first run that waits less used an unspent CPU quota, and one that waits a little more met a busy machine: that
    // is no state of the container's files.
    let does_more = cpu_ns(first)
        .zip(cpu_ns(next))
        .is_none_or(|(first, next)| are_apart(first.min(next), first.max(next)));
    let is_first = first.wall_ns == long;
    let waits_long = is_first && long - short >= WAITS_NS;
    let is_other = are_apart(short as f64, long as f64) && (does_more || waits_long);
    is_other.then(|| Fresh {
        why: format!(
            "its first run in a {place} took {} ms and the next {} ms",
            first.wall_ns / 1_000_000,
            next.wall_ns / 1_000_000
        ),
        first_run: is_first.then_some(FirstRun {
            first_ns: long,
            next_ns: short,
            written,
        }),
    })
}

/// Sums up the files in `after` that are not in `before`: the places with the most, each with its number of files.
pub fn places(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<(String, usize)> {
    let new: Vec<&String> = after.difference(before).collect();
    // An engine lists folders as well.
    let is_folder = |path: &str| {
        let below = format!("{path}/");
        let next = after.range(below.clone()..).next();
        next.is_some_and(|next| next.starts_with(&below))
    };
    let mut counts = BTreeMap::<String, (usize, &str)>::new();
    for path in new.into_iter().filter(|path| !is_folder(path)) {
        let ends = path.match_indices('/').map(|(end, _)| end);
        let end = ends.skip(1).nth(PLACE_DEPTH - 1);
        let (n, _) = counts
            .entry(path[..end.unwrap_or_else(|| path.rfind('/').unwrap_or(0))].to_owned())
            .or_insert((0, path));
        *n += 1;
    }
    let mut places: Vec<(String, usize)> = counts
        .into_iter()
        // A single file is named itself.
        .map(|(place, (n, path))| (if n == 1 { path.to_owned() } else { place }, n))
        .collect();
    places.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
    places.truncate(PLACES_MOST);
    places
}

/// Whether the container, whose own runs are alike, behaves like the first run at the baseline rather than the next,
/// and the distance between those matters next to its slowdown.
pub fn is_like_first(first_ns: u64, next_ns: u64, container_ns: u64) -> bool {
    /// The least part of the slowdown that matters.
    const LEAST_PART: f64 = 0.3;
    let [first, next, own] = [first_ns, next_ns, container_ns].map(|ns| ns.max(1) as f64);
    let is_nearer = (own / first).ln().abs() < (own / next).ln().abs();
    is_nearer && (first - next).abs() >= LEAST_PART * (own - next).abs()
}

fn are_apart(short_ns: f64, long_ns: f64) -> bool {
    long_ns - short_ns >= APART_NS && long_ns >= TIMES * short_ns
}

/// The remark about it.
pub fn described(Fresh { why, .. }: &Fresh) -> String {
    format!(
        "each run is in a new container on both sides, because {why}; making it is not in the times"
    )
}

#[cfg(test)]
mod tests {
    use tare_model::counter;
    use tare_model::outcome::Exit;

    use super::*;
    use crate::testing::raw;
    use crate::workload::command_output::report;

    #[test]
    fn only_a_container_like_the_first_run_needs_new_files_every_time() {
        let ms = |first: u64, next: u64, own: u64| {
            is_like_first(first * 1_000_000, next * 1_000_000, own * 1_000_000)
        };
        // It writes no cache, so that each of its runs is the first.
        assert!(ms(520, 46, 523) && ms(1230, 150, 940));
        // It has the cache in its image.
        assert!(!ms(520, 46, 48));
        // It is slow for another reason.
        assert!(!ms(151, 42, 5100));
    }

    #[test]
    fn first_run_differs_if_far_longer_or_not_repeatable() {
        let took = |ms: u64, status: i32| {
            let mut report = report(&raw(0, b"", b"")).unwrap();
            report.exit = Exit::Code(status);
            report.wall_ns = ms * 1_000_000;
            report
        };
        let of = |first: &CommandReport, next: &CommandReport| {
            differs("new container", [first, next], Vec::new())
        };
        let between = |first: u64, next: u64| of(&took(first, 0), &took(next, 0));
        let slow_first = between(210, 90).unwrap();
        assert!(slow_first.why.contains("210 ms"));
        let times = slow_first
            .first_run
            .map(|it| (it.first_ns / 1_000_000, it.next_ns / 1_000_000));
        assert_eq!(times, Some((210, 90)));
        assert_eq!(between(90, 210).unwrap().first_run, None);
        let with_cpu = |wall_ms: u64, cpu_ms: f64| {
            let mut report = took(wall_ms, 0);
            let used = [(counter::USER, cpu_ms * 1e6), (counter::SYS, 1e6)];
            report.usage = used.map(|(name, ns)| (name.to_owned(), ns)).into();
            report
        };
        let quota = [with_cpu(90, 88.0), with_cpu(210, 88.0)];
        assert_eq!(of(&quota[0], &quota[1]), None);
        // On a busy machine.
        assert_eq!(of(&quota[1], &quota[0]), None);
        assert!(of(&with_cpu(210, 200.0), &quota[0]).is_some());
        // It fetches something.
        assert!(of(&with_cpu(1200, 90.0), &quota[0]).is_some());
        // Short runs differ because of other load on the machine, and long ones by a little.
        assert_eq!(between(20, 5), None);
        assert_eq!(between(1000, 800), None);
        let fails = of(&took(100, 0), &took(100, 1));
        assert!(fails.unwrap().why.contains("fails"));
        assert_eq!(of(&took(100, 1), &took(100, 1)), None);
    }

    #[test]
    fn places_of_new_files_are_counted_without_their_folders() {
        let paths = |paths: &[&str]| paths.iter().map(|&it| it.to_owned()).collect();
        let before = paths(&["/tare-agent", "/usr"]);
        let after = paths(&[
            "/tare-agent",
            "/usr",
            "/usr/lib",
            "/usr/lib/python3",
            "/usr/lib/python3/__pycache__",
            "/usr/lib/python3/__pycache__/a.pyc",
            "/usr/lib/python3/json/__pycache__/b.pyc",
            "/root/.cache/x/fonts/1",
            "/tmp/cache",
            "/out",
        ]);
        let expected = [
            ("/usr/lib/python3", 2),
            ("/out", 1),
            ("/root/.cache/x/fonts/1", 1),
        ];
        assert_eq!(
            places(&before, &after),
            expected.map(|(place, n)| (place.to_owned(), n))
        );
    }
}
