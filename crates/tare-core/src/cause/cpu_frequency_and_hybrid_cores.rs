//! The same instructions at another clock: governors, turbo, hybrid cores.
//!
//! Guests do not see frequencies. The analysis compares a fixed loop that runs before each trial; its flag is read
//! here. Limits: does not know on which core a thread ran.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::OtherCode, Family::Faster];

pub(super) static CAUSE: Entry = Entry {
    id: "cpu.frequency-and-hybrid-cores",
    title: "The same instructions ran at another clock or on another kind of core",
    mechanism: "Governors, heat and the number of busy cores change a processor's clock, and some processors have cores \
                of two speeds. A side that is measured later, or pinned elsewhere, runs the same code faster or slower.",
    needs: &[
        fact::CPU_GOVERNOR,
        fact::CPU_EFFICIENCY_CORES,
        fact::CPU_PERFORMANCE_CORES,
        fact::CPU_AFFINITY,
        "flags of the cells",
    ],
    size: "The ratio of the clocks; between the two kinds of cores often more than half.",
    advice: "Pin both sides to the same cores of one kind, set the governor to `performance` while measuring, and \
             randomise the order.",
    price: "More power and heat.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let all = case.costs(&[Kind::Compute, Kind::Interpreted, Kind::Matrix]);
    let confounded: Vec<usize> = all
        .iter()
        .copied()
        .filter(|index| {
            case.cells[*index]
                .flags
                .iter()
                .any(|flag| flag.id == "clock-confounded")
        })
        .collect();
    let governor = case.differs(fact::CPU_GOVERNOR);
    let host = |name: &str| case.baseline.fact(name);
    let hybrid = host(fact::CPU_EFFICIENCY_CORES).zip(host(fact::CPU_PERFORMANCE_CORES));
    let fits = case.shows(&all, &[Family::OtherCode]);
    let (cells, likelihood) = if !confounded.is_empty() {
        (confounded.clone(), 0.75)
    } else if governor.is_some() {
        (all, 0.5)
    } else if hybrid.is_some() && fits {
        (all, 0.45)
    } else {
        return None;
    };
    let proof = match hybrid {
        Some((_, performance))
            if case.has(Mechanism::SystemCallFilter) && case.setting("cpuset").is_none() =>
        {
            Counterfactual::Settings(Params::new().with("cpuset", performance))
        }
        _ => switch::not_here("the clock is the machine's"),
    };
    Some(
        case.found(
            &cells,
            likelihood,
            "The processor's clock, or the kind of core, differs between the sides",
        )
        .also_seen((!confounded.is_empty()).then(|| {
            "a fixed loop ahead of the trials did not take equally long on both sides".to_owned()
        }))
        .seen_differing("governor", governor)
        .also_seen(hybrid.map(|(slow, fast)| {
            format!("the machine has fast cores `{fast}` and slow cores `{slow}`")
        }))
        .because(FAMILIES)
        .with_counterfactual(proof),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_difference_is_suspected_equal_governors_not() {
        let mut flagged = cell("cpu.integer.time", 1.3);
        flagged.flags.push(tare_model::dossier::Flag {
            id: "clock-confounded".into(),
            detail: String::new(),
        });
        let hybrid = || {
            Composed::new("docker")
                .both("cpu.efficiency_cores", "8-15")
                .both("cpu.performance_cores", "0-7")
                .cost("cpu.des.time", 1.7)
        };
        check(
            &CAUSE,
            &[
                Composed::new("docker").cell(flagged),
                Composed::new("ssh")
                    .differing("cpu.governor", "performance", "powersave")
                    .cost("cpu.integer.time", 1.5),
                hybrid().took("cpu", (1e9, 1.7e9), (1e9, 1.7e9), (0.0, 0.0)),
            ],
            &[
                Composed::new("docker")
                    .both("cpu.governor", "powersave")
                    .cost("cpu.integer.time", 1.5),
                hybrid(),
                Composed::new("docker").cost("cpu.integer.time", 1.3),
            ],
        );
    }
}
