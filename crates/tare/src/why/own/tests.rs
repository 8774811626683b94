//! Baselines, what was seen first, and what is told of what was found.

use super::super::conclude::tests::finding;
use super::*;

fn difference(id: &str, may_be_needed: bool) -> Difference {
    Difference {
        id: id.into(),
        what: format!("`--{id}`"),
        likelihood: 0.5,
        may_be_needed,
        ..Difference::default()
    }
}

fn own() -> Own {
    Own {
        settings: Params::new().with("like", "/run/own.json"),
        argv: vec!["serve".into()],
        directory: "/app".into(),
        differences: vec![difference("cpus", false), difference("env.N", true)],
        ..Own::default()
    }
}

#[test]
fn the_barest_baseline_comes_first_and_then_one_that_keeps_what_may_be_needed() {
    let bases = bases(&own());
    assert_eq!(bases.len(), 2);
    assert_eq!(bases[0].base.words(WITHOUT), ["cpus", "env.N"]);
    assert_eq!(bases[1].base.words(WITHOUT), ["cpus"]);
    assert!(told(&bases[1]).contains("`--cpus`"));
    let sure = Own {
        differences: vec![difference("cpus", false)],
        ..own()
    };
    assert_eq!(super::bases(&sure).len(), 1);
    assert_eq!(call(&own(), &[]).argv, ["serve"]);
    assert_eq!(call(&own(), &["x".into()]).argv, ["x"]);
}

#[test]
fn what_explains_what_was_seen_is_tried_first_and_nothing_is_ruled_out() {
    let slow = Trace {
        longer: 100.0,
        run_delay: 60.0,
        ..Trace::default()
    };
    assert!(slow.weighed("cgroup-parent", 0.7) > 0.9 && slow.weighed("dns", 0.5) > 0.2);
    assert!(slow.weighed("dns", 0.5) < slow.weighed("cpu-shares", 0.5));
    let works = Trace {
        longer: 100.0,
        on_processor: 90.0,
        ..Trace::default()
    };
    assert!(works.weighed("env.LD_PRELOAD", 0.6) > works.weighed("cpus", 0.9));
    let waits = Trace {
        longer: 100.0,
        ..Trace::default()
    };
    assert!(waits.weighed("dns", 0.5) > waits.weighed("env.X", 0.5));
}

#[test]
fn a_proof_counts_before_what_was_seen_on_the_way_to_it() {
    let mut findings = vec![
        finding("own.several", Status::Confirmed, "try-3", 0.9),
        finding("own.several", Status::Refuted, "try-4", 0.0),
        finding("own.cpus", Status::Confirmed, "try-5", 0.9),
        finding("own.cpus", Status::Confirmed, "proof-9", 0.8),
        finding("cpu.cfs-quota-throttle", Status::Confirmed, "off-8", 0.8),
        finding("own.dns", Status::Confirmed, "try-6", 0.6),
        finding("memory.first-touch", Status::Confirmed, "off-7", 0.9),
        finding("cpu.contention", Status::Untested, "docker", 0.0),
    ];
    sifted(&mut findings, |arm| {
        let away = match arm {
            "try-5" | "proof-9" | "off-8" => "cpus",
            "docker" => return None,
            other => other,
        };
        Some(vec![away.to_owned()])
    });
    let told: Vec<(&str, Status)> = findings
        .iter()
        .map(|it| (it.cause.as_str(), it.status))
        .collect();
    assert_eq!(
        told,
        [
            ("own.cpus", Status::Confirmed),
            ("own.dns", Status::Supported),
            ("memory.first-touch", Status::Supported),
            ("cpu.contention", Status::Untested),
            ("own.several", Status::Refuted),
        ]
    );
}

#[test]
fn a_switch_that_takes_others_with_it_is_no_cause_beside_them() {
    let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let network = set(&["engine.network"]);
    let buffers = set(&["sysctl.net.ipv4.tcp_rmem"]);
    let filter = set(&["engine.seccomp"]);
    let own = set(&["env.A", "env.B"]);
    assert_eq!(narrowest(&[network.clone(), buffers.clone()]), [buffers]);
    assert_eq!(
        narrowest(&[filter.clone(), network.clone(), own.clone()]),
        [own, filter, network]
    );
}
