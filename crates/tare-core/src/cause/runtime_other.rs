//! An OCI runtime that is neither usual nor known: a wrapper script, a custom build.
//!
//! Limits: does not know which part of it is responsible; the switch replaces the whole runtime, so that is what it
//! names.

use super::prelude::*;
use super::queries::is_cost;
use super::security_isolating_runtime::isolating;
use crate::driver::user_container;

/// Runtimes with standard behaviour.
const USUAL: [&str; 4] = ["", "runc", "crun", "youki"];

pub(super) static CAUSE: Entry = Entry {
    id: "runtime.other",
    title: "The runtime that was asked for: something that it does",
    mechanism: "A runtime may be any program that starts one: it can change the specification on the way, set limits of \
                its own, put a wrapper in front of the command or leave something running next to it.",
    needs: &["settings: runtime"],
    size: "Whatever it does: a limit on reading makes a program that reads many times slower.",
    advice: "Compare the specification that the runtime starts with the one that it was given (`config.json` in the \
             bundle), and the values in the container's cgroup with those under the usual runtime.",
    price: "What the runtime was chosen for.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let runtime = case.setting("runtime")?;
    let name = runtime.rsplit('/').next().unwrap_or_default();
    // A runtime with a separate kernel has a more specific cause.
    let is_known = USUAL.contains(&name) || isolating(name).is_some();
    if is_known || user_container::is_own(&case.arm.settings) {
        return None;
    }
    let cells = case.pick(is_cost);
    Some(
        case.found(
            &cells,
            0.7,
            format!("The runtime is another one (`{runtime}`)"),
        )
        .seen(format!("it is started by `{runtime}`"))
        .with_counterfactual(switch::without(case, "runtime")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_runtime_is_suspected_as_a_whole() {
        let by = |runtime: &str| {
            Composed::new("oci")
                .setting("runtime", runtime)
                .cost("disk.sequential-read.rate", 3.0)
        };
        let own = by("/opt/wrapped").setting(user_container::LIKE, "web");
        check(
            &CAUSE,
            &[by("/opt/wrapped"), by("./runc-limited")],
            &[
                by("/usr/sbin/runc"),
                by("crun"),
                by("kata-qemu"),
                by(""),
                own,
            ],
        );
    }
}
