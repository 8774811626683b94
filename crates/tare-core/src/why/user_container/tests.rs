//! Tests of baselines, the first study, and the selection of findings.

use tare_model::Status;

use super::super::First;
use super::super::conclude::tests::finding;
use super::super::search::RemovedShare;
use super::super::studies::first_study;
use super::super::studies::tests::{SECOND, ask as ask_of, first as first_of};
use super::sifting::narrowest;
use super::*;
use crate::driver::user_container::WITHOUT;

fn difference(id: &str, may_be_needed: bool) -> Difference {
    Difference {
        id: id.into(),
        what: format!("`--{id}`"),
        likelihood: 0.5,
        may_be_needed,
        ..Difference::default()
    }
}

fn own() -> UserContainer {
    UserContainer {
        settings: Params::new().with("like", "/run/own.json"),
        argv: vec!["serve".into()],
        directory: "/app".into(),
        differences: vec![difference("cpus", false), difference("env.N", true)],
        ..UserContainer::default()
    }
}

#[test]
fn barest_baseline_precedes_one_keeping_needed() {
    let bases = baseline::plain(&own(), "docker");
    assert_eq!(bases.len(), 2);
    assert_eq!(bases[0].base.settings.words(WITHOUT), ["cpus", "env.N"]);
    assert_eq!(bases[1].base.settings.words(WITHOUT), ["cpus"]);
    assert!(baseline::describe(&bases[1]).contains("`--cpus`"));
    let sure = UserContainer {
        differences: vec![difference("cpus", false)],
        ..own()
    };
    assert_eq!(baseline::plain(&sure, "docker").len(), 1);
    assert_eq!(call(&own(), &[]).argv, ["serve"]);
    assert_eq!(call(&own(), &["x".into()]).argv, ["x"]);
}

#[test]
fn bare_baseline_ladder_is_host_image_plain_container() {
    let files = user_container::Bare {
        driver: "container".into(),
        without: self::own().names(|_| true),
        ..user_container::Bare::default()
    };
    let mut asks = baseline::image(&self::own(), &files, "other bytes");
    let mut ask = ask_of("docker", self::own().settings);
    let first = first_of(SECOND / 2);
    let arms = |ask: &Ask, left_s: u64| {
        let study = first_study(ask, &first, left_s * SECOND).unwrap();
        let arms = study.arms.into_iter();
        arms.map(|arm| {
            let place = arm.role.rung.map(|rung| rung.place);
            (arm.id.to_string(), place, arm.role.of)
        })
        .collect::<Vec<_>>()
    };
    let arm = |id: &str, place| (id.to_owned(), place, None);
    ask.own = Some(asks.clone());
    let above = [
        arm("image", None),
        arm("plain", Some(1)),
        arm("docker", Some(99)),
    ];
    assert_eq!(arms(&ask, 110), above);
    asks.userland = Some(baseline::host(&self::own(), &files).base);
    ask.own = Some(asks);
    let of_host = ("image".to_owned(), Some(0), Some("host".to_owned()));
    let [_, plain, docker] = above;
    assert_eq!(arms(&ask, 110), [of_host, arm("host", None), plain, docker]);
    // If time is short, the search gets it.
    assert_eq!(arms(&ask, 30).len(), 2);
}

#[test]
fn proof_result_replaces_findings_from_the_search() {
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
    let without = |arm: &str| {
        let away = match arm {
            "try-5" | "proof-9" | "off-8" => "cpus",
            "docker" => return None,
            other => other,
        };
        Some(vec![away.to_owned()])
    };
    sifted(&mut findings, without, |_, _| None);
    let shown: Vec<(&str, Status)> = findings
        .iter()
        .map(|it| (it.cause.as_str(), it.status))
        .collect();
    assert_eq!(
        shown,
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
fn narrowest_replaces_wide_switch_by_its_members() {
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
    // The differences within it that were not found are tried too.
    let all = ["engine.network", "publish", "sysctl.net.core.somaxconn"];
    let within = set(&["publish", "sysctl.net.core.somaxconn"]);
    assert_eq!(
        narrowest(std::slice::from_ref(&network), &all),
        [within, network]
    );
}

#[test]
fn wide_switch_yields_to_equally_strong_member() {
    let shown = |narrow: f64| {
        let mut findings = vec![
            finding("own.engine.network", Status::Confirmed, "proof-9", 0.98),
            finding("own.publish", Status::Confirmed, "proof-8", narrow),
        ];
        let without = |arm: &str| {
            let away = if arm == "proof-9" {
                "engine.network"
            } else {
                "publish"
            };
            Some(vec![away.to_owned()])
        };
        sifted(&mut findings, without, |_, _| None);
        let shown = findings.iter().map(|it| (it.cause.clone(), it.status));
        shown.collect::<Vec<_>>()
    };
    let network = |status| ("own.engine.network".to_owned(), status);
    let publish = ("own.publish".to_owned(), Status::Confirmed);
    assert_eq!(shown(0.9), [publish.clone(), network(Status::Supported)]);
    // Each removes half: both are causes.
    assert_eq!(shown(0.45).len(), 2);
    assert_eq!(shown(0.45)[0], network(Status::Confirmed));
}

/// The findings reported after a set of two was proved, with the result of each alone, or `None` if not tried.
fn findings_of_two(alone: Option<[(Status, f64); 2]>) -> Vec<(String, Status)> {
    const SET: &str = "own.cpu-quota+env.APP_ENV";
    let mut findings = vec![finding(SET, Status::Confirmed, "proof-7", 1.0)];
    findings[0].claim =
        "`--cpu-quota 5` and the variable `APP_ENV` makes the difference".to_owned();
    for ((cause, arm), (status, share)) in
        [("own.cpu-quota", "proof-8"), ("own.env.APP_ENV", "proof-9")]
            .into_iter()
            .zip(alone.into_iter().flatten())
    {
        findings.push(finding(cause, status, arm, share));
    }
    let shares: std::collections::BTreeMap<String, f64> = findings
        .iter()
        .map(|it| (it.arm.clone().unwrap(), it.share.unwrap().point))
        .collect();
    let without = |arm: &str| {
        let away: &[&str] = match arm {
            "proof-7" => &["cpu-quota", "env.APP_ENV"],
            "proof-8" => &["cpu-quota"],
            _ => &["env.APP_ENV"],
        };
        Some(away.iter().map(|id| (*id).to_owned()).collect())
    };
    sifted(&mut findings, without, |set, rest| {
        let share = shares[set] - shares[rest];
        Some(RemovedShare {
            low: share - 0.05,
            share,
            high: share + 0.05,
        })
    });
    for finding in findings.iter().filter(|it| it.cause == SET) {
        let is_open = finding.status == Status::Supported;
        assert_eq!(finding.claim.starts_with("one or several of: "), is_open);
        assert_eq!(finding.evidence[0].contains("not separated"), is_open);
    }
    findings
        .into_iter()
        .map(|it| (it.cause, it.status))
        .collect()
}

#[test]
fn set_is_confirmed_only_if_every_member_is_needed() {
    let shown = |cause: &str, status| (cause.to_owned(), status);
    let (quota, variable) = ("own.cpu-quota", "own.env.APP_ENV");
    let set = "own.cpu-quota+env.APP_ENV";
    // One causes all of it: the set is dropped.
    assert_eq!(
        findings_of_two(Some([(Status::Confirmed, 1.0), (Status::Refuted, 0.0)])),
        [
            shown(quota, Status::Confirmed),
            shown(variable, Status::Refuted)
        ]
    );
    // Each alone keeps the command slow: only removing both helps.
    assert_eq!(
        findings_of_two(Some([(Status::Refuted, 0.0), (Status::Refuted, 0.0)])),
        [
            shown(set, Status::Confirmed),
            shown(quota, Status::Refuted),
            shown(variable, Status::Refuted)
        ]
    );
    // Each causes a part.
    assert_eq!(
        findings_of_two(Some([(Status::Confirmed, 0.6), (Status::Supported, 0.4)])),
        [
            shown(quota, Status::Confirmed),
            shown(variable, Status::Supported)
        ]
    );
    // Neither was tried alone.
    assert_eq!(findings_of_two(None), [shown(set, Status::Supported)]);
}

/// A question about a container with these differences, and first runs in which it is `times` as slow.
fn asked(ids: &[&str], times: f64) -> (Ask, First) {
    let own = UserContainer {
        differences: ids.iter().map(|id| difference(id, false)).collect(),
        ..self::own()
    };
    let files = user_container::Bare {
        driver: "container".into(),
        without: own.names(|_| true),
        ..user_container::Bare::default()
    };
    let mut ask = ask_of("docker", own.settings.clone());
    ask.own = Some(baseline::image(&own, &files, "other bytes"));
    let mut first = first_of(SECOND);
    first.env.wall_ns = tare_model::whole_part(times * first.host.wall_ns as f64);
    (ask, first)
}

#[test]
fn likeliest_differences_are_proved_at_once_if_a_search_would_not_fit() {
    let ids = ["cpus", "init", "log", "dns", "runtime"];
    let proofs = |ids: &[&str], times: f64, left_s: u64| {
        let (ask, first) = asked(ids, times);
        let study = first_study(&ask, &first, left_s * SECOND).unwrap();
        let proofs = study
            .arms
            .iter()
            .filter(|arm| arm.id.as_str().starts_with("proof-"));
        proofs
            .map(|arm| arm.settings.words(WITHOUT).join(" "))
            .collect::<Vec<_>>()
    };
    // The log is unlikely, because the command prints little.
    let at_once = proofs(&ids, 1.6, 50);
    assert!((1..=3).contains(&at_once.len()), "{at_once:?}");
    assert!(!at_once.contains(&"log".to_owned()), "{at_once:?}");
    assert!(proofs(&ids, 1.6, 500).is_empty(), "a search fits");
    assert!(
        proofs(&ids, 1.02, 50).is_empty(),
        "no difference is visible"
    );
    assert_eq!(proofs(&ids[..2], 1.6, 500).len(), 2, "these are all");
}

#[test]
fn many_variables_are_named_as_a_set() {
    let names: Vec<String> = (0..40).map(|number| format!("env.V{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (ask, _) = asked(&names, 2.0);
    let asks = ask.own.as_ref().unwrap();
    let claim = |count: usize| {
        let ids: Vec<String> = names[..count].iter().map(|id| (*id).to_owned()).collect();
        sifting::suspect_of(asks, &ids, "wall").claim
    };
    assert_eq!(claim(40), format!("the set of its 40 variables{CLAIM}"));
    assert_eq!(
        claim(20),
        format!("the set of 20 of its 40 variables{CLAIM}")
    );
    assert!(claim(3).starts_with(ONE_OF));
}
