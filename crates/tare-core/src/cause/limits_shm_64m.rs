//! 64 MiB of shared memory, where the host has gigabytes.
//!
//! Programs usually fail then instead of being slow; only those that fall back to files are slow. A command that uses
//! more in the baseline than the arm offers is one of these.
//! Limits: misses shared memory that is held for less than one sampling interval of the command.

use super::prelude::*;

const SMALL: f64 = 67_108_864.0;
/// Likelihood if the command was observed to need more than there is.
const WANTS_MORE: f64 = 0.85;
const FAMILIES: &[Family] = &[Family::Device, Family::Waiting, Family::CostlierCalls];

pub(super) static CAUSE: Entry = Entry {
    id: "limits.shm-64m",
    title: "Shared memory is limited to 64 MiB",
    mechanism: "Engines mount a small `/dev/shm`. Parallel queries, loaders of training data and browsers share memory \
                through it; when it is full they fail, or take files instead.",
    needs: &[fact::SHM_SIZE, fact::ASKED_SHM, fact::COMMAND_SHARED_MEMORY],
    size: "Failures rather than slowness: 64 MiB in a container, gigabytes on its host (several reports).",
    advice: "Give the container as much shared memory as its work needs.",
    price: "What is used there counts as the container's memory; sharing the host's would open all of it instead.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let (there, here) = (
        number(&case.baseline.facts, fact::SHM_SIZE)?,
        case.number(fact::SHM_SIZE)?,
    );
    if here > SMALL || there < 4.0 * here {
        return None;
    }
    let cells = case.costs(&[]);
    let wanted =
        number(&case.baseline.facts, fact::COMMAND_SHARED_MEMORY).filter(|wanted| *wanted > here);
    Some(
        case.found(
            &cells,
            match wanted {
                Some(_) => WANTS_MORE,
                None => 0.25 * case.fit(&cells, FAMILIES),
            },
            format!(
                "The arm has {} of shared memory where the baseline has {}",
                bytes(here),
                bytes(there)
            ),
        )
        .seen(format!(
            "`/dev/shm` holds {}, in the baseline {}",
            bytes(here),
            bytes(there)
        ))
        .also_seen(
            wanted
                .map(|wanted| format!("in the baseline the command holds {} there", bytes(wanted))),
        )
        .because(FAMILIES)
        .with_counterfactual(switch::engine(case, "shm", "1g")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_shm_is_suspected_for_commands() {
        let shm = |there: &str, here: &str, metric: &str| {
            Composed::new("docker")
                .differing("shm.size_bytes", there, here)
                .cost(metric, 1.5)
        };
        check(
            &CAUSE,
            &[shm("12884901888", "67108864", "command.wall.time")],
            &[
                shm("67108864", "67108864", "command.wall.time"),
                shm("12884901888", "1073741824", "command.wall.time"),
                shm("12884901888", "67108864", "mem.triad.rate"),
            ],
        );
    }

    #[test]
    fn command_holding_more_shm_raises_shm_likelihood() {
        let holding = |bytes: &str| {
            Composed::new("docker")
                .differing("shm.size_bytes", "12884901888", "67108864")
                .base("command.shared_memory_bytes", bytes)
                .cost("command.wall.time", 1.5)
                .suspects(&CAUSE)
                .unwrap()
        };
        assert!(holding("268435456").likelihood > 0.8);
        let shown = holding("268435456").evidence.join("; ");
        assert!(shown.contains("holds 256 MiB"), "{shown}");
        assert!(holding("1048576").likelihood < 0.5);
    }
}
