//! Baselines, what was seen first, and what is told of what was found.

use tare_model::Status;

use super::super::conclude::tests::finding;
use super::sifting::narrowest;
use super::*;
use crate::env::own::WITHOUT;

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
    let all = ["engine.network", "engine.seccomp", "env.A"];
    assert_eq!(
        narrowest(&[network.clone(), buffers.clone()], &all),
        [buffers]
    );
    assert_eq!(
        narrowest(&[filter.clone(), network.clone(), own.clone()], &all),
        [own, filter, network.clone()]
    );
    // Those that go with it and were not found are tried beside it.
    let all = ["engine.network", "publish", "sysctl.net.core.somaxconn"];
    let within = set(&["publish", "sysctl.net.core.somaxconn"]);
    assert_eq!(
        narrowest(std::slice::from_ref(&network), &all),
        [within, network]
    );
}

#[test]
fn the_wide_switch_yields_where_what_it_takes_with_it_takes_as_much() {
    let told = |narrow: f64| {
        let mut findings = vec![
            finding("own.engine.network", Status::Confirmed, "proof-9", 0.98),
            finding("own.publish", Status::Confirmed, "proof-8", narrow),
        ];
        sifted(&mut findings, |arm| {
            let away = if arm == "proof-9" {
                "engine.network"
            } else {
                "publish"
            };
            Some(vec![away.to_owned()])
        });
        let told = findings.iter().map(|it| (it.cause.clone(), it.status));
        told.collect::<Vec<_>>()
    };
    let network = |status| ("own.engine.network".to_owned(), status);
    let publish = ("own.publish".to_owned(), Status::Confirmed);
    assert_eq!(told(0.9), [publish.clone(), network(Status::Supported)]);
    // Both take half: then both are.
    assert_eq!(told(0.45).len(), 2);
    assert_eq!(told(0.45)[0], network(Status::Confirmed));
}
