//! What the five published comparisons recorded, answered: which cause is named first, and which wrong guess is not
//! made. Facts and figures are composed from the sources as far as they tell them; what they do not tell is absent
//! here as well.

#![allow(clippy::float_cmp, reason = "a rule's likelihoods are constants")]

use tare_model::Better;
use tare_model::dossier::{DossierCell, Span};

use super::composed::{Composed, cell};

fn valued(metric: &str, unit: &str, base: f64, env: f64, better: Better) -> DossierCell {
    let cost = if better == Better::Lower {
        env / base
    } else {
        base / env
    };
    let mut made = cell(metric, cost);
    let span = |point| Some(Span::new(point, point, point));
    made.unit = unit.into();
    made.better = better;
    made.base = span(base);
    made.env = span(env);
    made.difference = span(env - base);
    made
}

fn first(composed: &Composed) -> &'static str {
    composed.ranked().first().map_or("nothing", |(id, _)| id)
}

fn likelihood(composed: &Composed, cause: &str) -> f64 {
    let ranked = composed.ranked();
    let found = ranked.iter().find(|(id, _)| *id == cause);
    found.map_or(0.0, |(_, suspicion)| suspicion.likelihood)
}

/// The likeliest cause is this one, for what was seen, and this would prove it.
#[track_caller]
fn assert_first(composed: &Composed, cause: &str, seen: &str, proof: &str) {
    assert_eq!(first(composed), cause);
    let (_, suspicion) = composed.ranked().remove(0);
    let evidence = &suspicion.evidence;
    assert!(
        evidence.iter().any(|line| line.contains(seen)),
        "{suspicion:?}"
    );
    assert!(format!("{:?}", suspicion.counterfactual).contains(proof));
}

/// None of these causes is suspected.
#[track_caller]
fn assert_cleared(composed: &Composed, causes: &[&str]) {
    for wrong in causes {
        assert_eq!(likelihood(composed, wrong), 0.0, "{wrong}");
    }
}

/// Danilova & Sergeev: a Windows host, one to three programs at once, small matrices with NumPy.
fn ram_and_disk() -> Composed {
    let mut composed = Composed::golden("source-ram-disk");
    for (instances, host, docker) in [
        (1u32, 0.8535, 0.2241),
        (2, 38.08, 44.4604),
        (3, 90.6951, 56.5963),
    ] {
        let mut made = valued("blas.inverse.time", "s", host, docker, Better::Lower);
        made.instances = instances;
        composed = composed.cell(made);
    }
    composed
}

#[test]
fn small_matrices_that_collapse_with_two_programs_are_threads_in_each_others_way() {
    let composed = ram_and_disk();
    let seen = "198 times as long with 2 instances";
    assert_first(
        &composed,
        "cpu.thread-oversubscription",
        seen,
        "OPENBLAS_NUM_THREADS",
    );
    // The two sides are two operating systems: that the container is faster alone is not its merit.
    assert!(likelihood(&composed, "tooling.other-platform") > 0.0);
    assert_cleared(
        &composed,
        &[
            "memory.limit-cache-and-oom",
            "security.seccomp-syscall-tax",
            "security.seccomp-ssbd",
        ],
    );
}

#[test]
fn the_slower_cipher_of_the_first_source_stays_undecided() {
    let composed = Composed::golden("source-ram-disk").cell(valued(
        "python.pi-loop.time",
        "s",
        3.585,
        6.204,
        Better::Lower,
    ));
    let ranked = composed.ranked();
    // Another interpreter and another system are possible; the filter is not known to have been there.
    assert!(
        ranked
            .iter()
            .any(|(id, _)| *id == "tooling.userland-mismatch"),
        "{ranked:?}"
    );
    assert_eq!(likelihood(&composed, "security.seccomp-ssbd"), 0.0);
}

#[test]
fn windows_and_linux_containers_are_two_platforms() {
    let composed = Composed::golden("source-os-micro")
        .cell(valued(
            "cpu.regex.time",
            "ns",
            197.33e6,
            204.07e6,
            Better::Lower,
        ))
        .cell(valued(
            "fs.mount-list.time",
            "ns",
            579.3,
            73_238.8,
            Better::Lower,
        ));
    assert_eq!(first(&composed), "tooling.other-platform");
    assert_cleared(
        &composed,
        &[
            "disk.shared-folder",
            "security.seccomp-syscall-tax",
            "cpu.cfs-quota-throttle",
        ],
    );
}

/// "Faster Python in Docker": twice as slow with the default filter, numerical code hardly; kernel not told.
fn faster_python() -> Composed {
    Composed::golden("source-faster-python")
        .cell(valued(
            "python.mix-round.time",
            "ms",
            1486.0,
            2972.0,
            Better::Lower,
        ))
        .cell(valued(
            "python.pi-numpy.time",
            "s",
            0.45,
            0.48,
            Better::Lower,
        ))
}

#[test]
fn python_that_is_twice_as_slow_behind_a_filter_suffers_from_mitigations_and_not_from_filtering() {
    let composed = faster_python();
    assert_eq!(first(&composed), "security.seccomp-ssbd");
    let (_, suspicion) = composed.ranked().remove(0);
    assert_eq!(
        suspicion.cells,
        [0],
        "numerical code is spared: {suspicion:?}"
    );
    assert!(
        suspicion.advice.contains("5.16") && suspicion.advice.contains("keep the seccomp filter")
    );
    assert!(!suspicion.advice.contains("unconfined"));
    assert_eq!(likelihood(&composed, "security.seccomp-syscall-tax"), 0.0);
    assert_eq!(likelihood(&composed, "security.lsm-differs"), 0.0);
    // The same figures on a kernel that does not tie the two would be a riddle, and not this.
    assert_eq!(
        likelihood(
            &faster_python().both("kernel.release", "5.19.0"),
            "security.seccomp-ssbd"
        ),
        0.0
    );
    // With an engine that loads no filter, as was reported of Windows, neither.
    assert_eq!(
        likelihood(
            &faster_python().fact("status.Seccomp", "0"),
            "security.seccomp-ssbd"
        ),
        0.0
    );
}

#[test]
fn two_versions_of_a_stress_tool_are_no_slower_container() {
    let composed = Composed::golden("source-cluster").cell(valued(
        "stress-ng.operation.rate",
        "1/s",
        6212.4,
        1197.58,
        Better::Higher,
    ));
    assert_eq!(first(&composed), "tooling.userland-mismatch");
    assert_eq!(likelihood(&composed, "cpu.cfs-quota-throttle"), 0.0);
}

#[test]
fn sixty_four_gigabytes_a_second_are_no_disk_and_ninety_two_gigabits_no_wire() {
    let disk = Composed::golden("source-cluster").cell(valued(
        "disk.iozone-read.throughput",
        "kB/s",
        64e6,
        23e6,
        Better::Higher,
    ));
    let ranked = disk.ranked();
    let cache = ranked
        .iter()
        .position(|(id, _)| *id == "tooling.page-cache");
    assert!(cache.is_some_and(|place| place <= 1), "{ranked:?}");
    let wire = Composed::golden("source-cluster").cell(valued(
        "net.iperf3.throughput",
        "bit/s",
        394e6,
        92.4e9,
        Better::Higher,
    ));
    assert!(likelihood(&wire, "tooling.not-the-thing") >= 0.5);
    assert_eq!(
        likelihood(&wire, "network.bridge-nat"),
        0.0,
        "a gain is no cost of a bridge"
    );
}

#[test]
fn a_bound_windows_folder_is_a_shared_folder_and_its_queue_is_one_request_deep() {
    let composed = Composed::golden("source-windows-io")
        .setting("storage", "bind")
        .cell(valued(
            "disk.fio-read.rate",
            "1/s",
            157_000.0,
            3610.0,
            Better::Higher,
        ))
        .cell(valued(
            "disk.fio-read-submission.time",
            "ns",
            17_970.3,
            70.81e6,
            Better::Lower,
        ))
        .cell(valued(
            "disk.fio-read-completion.time",
            "ns",
            1.6073e6,
            31_580.0,
            Better::Lower,
        ))
        .took(
            "disk",
            (6_360.0, 277_000.0),
            (708.0, 554.0),
            (2_063.0, 5_208.0),
        );
    let seen = "2242 times";
    assert_first(&composed, "disk.shared-folder", seen, "volume");
    assert_cleared(
        &composed,
        &[
            "disk.overlay-copy-up",
            "disk.storage-driver",
            "disk.io-limits-and-scheduler",
            "security.seccomp-syscall-tax",
        ],
    );
}
