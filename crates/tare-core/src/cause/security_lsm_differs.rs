//! A security module that checks more on one side.
//!
//! Limits: does not see audit rules, which an ordinary process cannot read.

use super::prelude::*;

/// The largest ratio that it explains: about one percent is usual.
const MOST: f64 = 1.1;

pub(super) static CAUSE: Entry = Entry {
    id: "security.lsm-differs",
    title: "A security module confines the arm and not the baseline",
    mechanism: "AppArmor and SELinux decide about each file and socket that a process opens. A profile for containers is \
                a longer list than none.",
    needs: &[fact::LSM_LABEL, fact::SECURITY_APPARMOR],
    size: "About one percent, by its maker's account; relabelling a large volume makes a start slow.",
    advice: "Keep the profile: its price is about one percent.",
    price: "Nothing, as long as it stays; without it the container meets no second line of defence.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let (there, here) = case.differs(fact::LSM_LABEL)?;
    if here.starts_with("unconfined") || case.same_kernel() == Some(false) {
        return None;
    }
    let cells = case.pick(|cell| {
        is_cost(cell)
            && matches!(
                Kind::for_cell(cell),
                Kind::Metadata | Kind::Kernel | Kind::Network
            )
            && ratio(cell) <= MOST
    });
    let proof = if case.has(Mechanism::AccessControl) {
        Counterfactual::Settings(Params::new().with("apparmor", "unconfined"))
    } else {
        switch::not_here("the driver has no setting for it")
    };
    Some(
        case.found(
            &cells,
            0.25 * case.fit(&cells, &[Family::CostlierCalls]),
            "A security module confines the arm",
        )
        .seen(format!(
            "confined as `{here}`, in the baseline as `{there}`"
        ))
        .with_counterfactual(proof),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confined_arm_is_suspected_of_little() {
        let label = |there: &str, here: &str, ratio: f64| {
            Composed::new("docker")
                .differing("lsm.label", there, here)
                .cost("fs.stat.time", ratio)
        };
        check(
            &CAUSE,
            &[label("unconfined", "docker-default (enforce)", 1.06)],
            &[
                label("unconfined", "docker-default (enforce)", 1.8),
                label("unconfined", "unconfined", 1.06),
                label("a (enforce)", "unconfined", 1.06),
            ],
        );
    }
}
