//! The seccomp filter's program, compiled anew for every start.
//!
//! Limits: does not know the version of the library that compiles it.

use super::prelude::*;

/// Measured time to compile, in nanoseconds.
const COMPILE_NS: f64 = 25e6;

pub(super) static CAUSE: Entry = Entry {
    id: "startup.seccomp-compile",
    title: "Each start compiles the seccomp filter",
    mechanism: "Runtimes translate the list of several hundred allowed system calls, for each of the processor's modes, \
                into a filter program at every start.",
    needs: &[fact::STATUS_SECCOMP, "cells of start-up"],
    size: "21–28 ms a start for 357 names in three modes with libseccomp 2.5.4: runc 17 to 38 ms, crun 16 to 40 ms.",
    advice: "Keep the filter; start programs in a container that is there already, or use a newer libseccomp, which \
             compiles faster.",
    price: "Nothing; leaving the filter out would open the blocked calls for a fortieth of a second.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    // Tare's built-in launcher has its filter precompiled.
    if !case.is_filtered() || !case.takes("runtime") {
        return None;
    }
    let cells = case.costs_only(&[Kind::StartUp]);
    let extra = case
        .largest(&cells)?
        .difference
        .map_or(f64::INFINITY, |span| span.point);
    let share = (COMPILE_NS / extra).min(1.0);
    Some(
        CauseMatch::new(
            cells.clone(),
            0.7 * share,
            format!(
                "Runtimes compile the seccomp filter at each start, which may be part of why {}.",
                case.cost_clause(&cells)
            ),
        )
        .seen("the arm has a filter and the baseline has none")
        .seen(case.cost_clause(&cells))
        .with_counterfactual(switch::without_seccomp(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seccomp_compile_is_suspected_only_with_a_filter() {
        let start = |driver: &str, mode: &str| {
            Composed::new(driver)
                .differing("status.Seccomp", "0", mode)
                .cost("start-up.ready.time", 3.0)
        };
        check(
            &CAUSE,
            &[start("oci", "2"), start("docker", "2")],
            &[
                start("oci", "0"),
                start("container", "2"),
                Composed::new("oci")
                    .differing("status.Seccomp", "0", "2")
                    .cost("syscall.getppid.time", 1.2),
            ],
        );
    }
}
