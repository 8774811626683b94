//! Tests the records of the five published comparisons: which cause ranks first, and which wrong guess is not made.
//! Facts and figures come from the sources as far as reported; unreported ones are absent here as well.

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

/// Asserts that this cause ranks first, with this evidence and this counterfactual.
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

/// Asserts that none of these causes is suspected.
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
fn source_small_matrices_blame_oversubscription() {
    let composed = ram_and_disk();
    let seen = "198 times as long with 2 instances";
    assert_first(
        &composed,
        "cpu.thread-oversubscription",
        seen,
        "OPENBLAS_NUM_THREADS",
    );
    // The two sides are two operating systems: the container alone does not explain that it is faster.
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
fn source_slower_cipher_does_not_blame_seccomp_ssbd() {
    let composed = Composed::golden("source-ram-disk").cell(valued(
        "python.pi-loop.time",
        "s",
        3.585,
        6.204,
        Better::Lower,
    ));
    let ranked = composed.ranked();
    // Another interpreter and another system are possible; it is unknown whether the filter was loaded.
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

/// "Faster Python in Docker": twice as slow with the default filter, but numerical code hardly; kernel not reported.
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
fn source_slow_python_blames_ssbd_not_syscall_tax() {
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
    // On a kernel that does not tie the two, the same figures have another explanation.
    assert_eq!(
        likelihood(
            &faster_python().both("kernel.release", "5.19.0"),
            "security.seccomp-ssbd"
        ),
        0.0
    );
    // Likewise with an engine that loads no filter, as was reported for Windows.
    assert_eq!(
        likelihood(
            &faster_python().fact("status.Seccomp", "0"),
            "security.seccomp-ssbd"
        ),
        0.0
    );
}

#[test]
fn source_stress_ng_blames_tool_version_mismatch() {
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
fn source_impossible_rates_blame_cache_and_loopback() {
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
fn source_windows_bind_mount_blames_shared_folder() {
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
