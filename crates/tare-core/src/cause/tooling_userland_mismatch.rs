//! Different programs on the two sides.
//!
//! Hashes and versions of programs, the C library and the distribution are compared if both sides report them. Tare's
//! built-in probes are the same bytes everywhere and are never affected, unless the agents' hashes differ. For a
//! user's command the bytes that ran are compared, its libraries included.
//! Limits: misses scripts and other files that are read and not mapped as code.

use super::prelude::*;
use super::triage::Family::{Faster, MoreCalls, OtherCode, Spin};

const FAMILIES: &[Family] = &[OtherCode, MoreCalls, Spin, Faster];

pub(super) static CAUSE: Entry = Entry {
    id: "tooling.userland-mismatch",
    title: "The two sides do not run the same program",
    mechanism: "An image brings its own version of a tool, its own C library, allocator, interpreter and numerical \
                libraries. What looks like the cost of the environment is then the difference between two programs.",
    needs: &[
        fact::PROGRAM_SHA256,
        fact::LIBRARY_SHA256,
        fact::COMMAND_LIBC,
        fact::TOOL,
        fact::LIBC,
        fact::OS_NAME,
        fact::AGENT_SHA256,
        "settings of the arm",
    ],
    size: "One processor, two versions of stress-ng: 6212 and 1198 units of work a second, while another tool found \
           both sides equal within 2 %. Builds took 10–20 % longer with musl than with glibc (user reports).",
    advice: "Run the same build on both sides: the host's own program and its libraries inside, or the image's files \
             outside; pin versions.",
    price: "A larger image, with more in it that wants updates.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let other_agent = case.differs(fact::AGENT_SHA256).is_some();
    let all = case.differences(&[
        Kind::Compute,
        Kind::Interpreted,
        Kind::Matrix,
        Kind::Memory,
        Kind::Touch,
        Kind::Disk,
        Kind::Network,
    ]);
    let cells = if other_agent {
        all
    } else {
        case.without_probes(all)
    };
    if cells.is_empty() {
        return None;
    }
    // An environment with the host's files has the host's programs, whatever it calls itself.
    let (evidence, likelihood) = seen(case, other_agent);
    if evidence.is_empty() {
        return None;
    }
    let has_image = case.arm.settings.value("image").is_some() && case.is_of_engine();
    let counterfactual = if has_image || has_folder_over_it(case) {
        Counterfactual::HostProgram
    } else {
        switch::not_here("the same program would have to be brought to both sides")
    };
    Some(
        CauseMatch::new(
            cells.clone(),
            likelihood * case.fit(&cells, FAMILIES),
            format!("The two sides do not run the same program, so that it cannot be the environment alone that makes the difference: {}.", case.cost_clause(&cells)),
        )
        .also_seen(evidence)
        .because(FAMILIES)
        .with_counterfactual(counterfactual),
    )
}

/// Returns the differences of the programs, and the likelihood that follows.
fn seen(case: &Case<'_>, other_agent: bool) -> (Vec<String>, f64) {
    let mut evidence = Vec::new();
    let mut likelihood: f64 = 0.0;
    let programs = case
        .all_differing(fact::PROGRAM_SHA256)
        .into_iter()
        .chain(case.all_differing(fact::TOOL));
    let line = |(name, there, here): (&str, &str, &str)| {
        format!(
            "`{name}`: {} here, {} in the baseline",
            short(here),
            short(there)
        )
    };
    evidence.extend(programs.take(4).map(line));
    evidence.extend(other_agent.then(|| "the agents are not the same bytes".to_owned()));
    if !evidence.is_empty() {
        likelihood = 0.95;
    }
    for library in case.all_differing(fact::LIBRARY_SHA256).into_iter().take(3) {
        evidence.push(line(library));
        likelihood = likelihood.max(0.8);
    }
    // Tools with equal bytes on both sides are the same program, whatever else is installed: an image of a host with
    // two C libraries contains the one that its programs load.
    let has_equal_tools = evidence.is_empty() && {
        let hashes = case
            .arm
            .facts
            .iter()
            .filter(|(name, _)| fact::what(fact::TOOL_SHA256, name).is_some());
        let mut same = hashes.map(|(name, here)| case.baseline.facts.get(name) == Some(here));
        same.next()
            .is_some_and(|first| first && same.all(|equal| equal))
    };
    for (name, weight) in [
        (fact::COMMAND_LIBC, 0.8),
        (fact::LIBC, 0.6),
        (fact::OS, 0.85),
        (fact::OS_NAME, 0.45),
    ] {
        if has_equal_tools && name != fact::COMMAND_LIBC {
            continue;
        }
        if let Some((there, here)) = case.differs(name) {
            evidence.push(format!(
                "`{name}`: `{here}` here, `{there}` in the baseline"
            ));
            likelihood = likelihood.max(weight);
        }
    }
    (evidence, likelihood)
}

/// Whether a directory or file of the user is mounted over the program inside.
fn has_folder_over_it(case: &Case<'_>) -> bool {
    let Some(program) = case.fact(fact::COMMAND_PROGRAM) else {
        return false;
    };
    let binds = case.setting("binds").unwrap_or_default();
    binds
        .split(',')
        .any(|bind| switch::is_over(bind.trim(), program))
}

fn short(text: &str) -> String {
    let is_hash = text.len() >= 40 && text.chars().all(|digit| digit.is_ascii_hexdigit());
    if is_hash {
        format!("`{}…`", &text[..12])
    } else {
        format!("`{text}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tool_or_library_is_suspected_equal_is_not() {
        let tool = || Composed::new("docker").cost("stress-ng.operation.rate", 5.2);
        check(
            &CAUSE,
            &[
                tool().differing("tool.stress-ng.version", "0.17.06", "0.13.12"),
                tool()
                    .differing("libc", "glibc", "musl")
                    .setting("image", "alpine:3"),
                Composed::new("docker")
                    .cost("cpu.integer.time", 1.2)
                    .differing("agent.sha256", "a", "b"),
                Composed::new("docker")
                    .cost("command.wall.time", 0.5)
                    .differing("os", "windows", "linux"),
            ],
            &[
                tool()
                    .both("tool.stress-ng.version", "0.17.06")
                    .both("libc", "glibc"),
                tool(),
                Composed::new("docker")
                    .cost("cpu.integer.time", 1.2)
                    .differing("libc", "glibc", "none"),
                tool().fact("libc", "musl"),
                tool().both("tool.stress-ng.sha256", "aa").differing(
                    "libc",
                    "glibc and musl",
                    "glibc",
                ),
            ],
        );
    }
}
