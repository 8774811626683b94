//! Programs for another CPU architecture, translated at run time: qemu-user, Rosetta.
//!
//! Recognised by an image architecture that differs from the engine's, or by an agent built for another machine than
//! the one that shares its kernel. Limits: the translator is known only if its handler is registered under a telling
//! name.

use super::prelude::*;

pub(super) static CAUSE: Entry = Entry {
    id: "cpu.arch-emulation",
    title: "The program is built for another processor and is translated",
    mechanism: "The kernel hands files for a foreign processor to a translator that the machine has registered. Every \
                instruction is translated and every system call is converted; instructions on vectors suffer most.",
    needs: &[
        fact::IMAGE_EMULATED,
        fact::IMAGE_ARCHITECTURE,
        fact::ENGINE_ARCHITECTURE,
        fact::MACHINE,
        fact::KERNEL_BOOT_ID,
        fact::BINFMT_HANDLERS,
    ],
    size: "One sysbench score: 84 075 native, 72 425 under Rosetta (1.16 times as slow), 3 237 under qemu-user (26 \
           times); others report ten- and twentyfold.",
    advice: "Use an image for the machine's own processor, and build images for both.",
    price: "Building for two kinds of processors takes two builds; nothing else is lost.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cells = case.costs(&Kind::all_but(&[Kind::CopyUp, Kind::Output]));
    let image = case.fact(fact::IMAGE_ARCHITECTURE).map(machine);
    let native = case.fact(fact::ENGINE_ARCHITECTURE).map(machine);
    let by_image = image.zip(native).filter(|(image, native)| image != native);
    // One kernel cannot have two machines: the one inside is emulated.
    let by_agent = match (case.same_kernel(), case.differs(fact::MACHINE)) {
        (Some(true), Some((there, here))) => Some((machine(here), machine(there))),
        _ => None,
    };
    let (foreign, native) = by_image.or(by_agent)?;
    let handler = case
        .fact(fact::BINFMT_HANDLERS)
        .or_else(|| case.baseline.fact(fact::BINFMT_HANDLERS))
        .and_then(|names| {
            names
                .split(' ')
                .find(|name| name.contains(foreign) || *name == "rosetta")
        });
    Some(
        case.found(
            &cells,
            0.97 * case
                .fit(
                    &cells,
                    &[Family::OtherCode, Family::Spin, Family::CostlierCalls],
                )
                .max(0.8),
            format!("Programs for `{foreign}` are translated on a machine that is `{native}`"),
        )
        .seen(format!(
            "the arm's programs are for `{foreign}`, the machine is `{native}`"
        ))
        .also_seen(handler.map(|name| format!("the kernel hands such files to `{name}`")))
        .with_counterfactual(switch::engine(
            case,
            "platform",
            format!("linux/{}", docker_name(native)),
        )),
    )
}

/// Normalises machine names: engines, uname and ELF use different ones.
fn machine(name: &str) -> &str {
    match name {
        "amd64" | "x86_64" => "x86_64",
        "arm64" | "aarch64" => "aarch64",
        other => other,
    }
}

fn docker_name(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_image_is_suspected_under_any_arch_name() {
        let image = |of: &str, engine: &str| {
            Composed::new("docker")
                .fact("image.architecture", of)
                .fact("engine.architecture", engine)
                .cost("cpu.integer.time", 20.0)
        };
        check(
            &CAUSE,
            &[
                image("amd64", "aarch64"),
                Composed::golden("qemu-user-arm64").cost("cpu.integer.time", 26.0),
                Composed::golden("rosetta-amd64").cost("cpu.integer.time", 1.16),
            ],
            &[
                image("amd64", "x86_64"),
                image("arm64", "aarch64"),
                // Another machine with another kernel is simply another computer.
                Composed::new("ssh")
                    .differing("machine", "x86_64", "aarch64")
                    .differing("kernel.boot_id", "a", "b")
                    .cost("cpu.integer.time", 2.0),
            ],
        );
    }
}
