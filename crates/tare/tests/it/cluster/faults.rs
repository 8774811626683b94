//! Tests nodes that do not start, ports that are taken, nodes that disappear: each is reported, and nothing is left.

use tare_model::Failure;

use super::*;

/// Returns the outcomes of a roll call with these scripts on the host's nodes.
fn outcomes(name: &str, params: Params, limit_s: u64) -> Option<Vec<Outcome>> {
    if !has("root", "nc") {
        return None;
    }
    let mut study = study("host", Params::new(), "roll-call", params, Path::ArmToArm);
    study.limit_ns = limit_s * 1_000_000_000;
    let stored = run(name, &study)?;
    Some(
        stored
            .records
            .into_iter()
            .map(|record| record.outcome)
            .collect(),
    )
}

#[test]
fn node_service_start_failure_is_quoted() {
    let script = format!("[ \"$2\" = 2 ] && {{ echo no such key >&2; exit 1; }}\n{LISTEN}");
    let outcomes = needed!(outcomes("mute", Params::new().with("service", script), 20));
    assert_eq!(outcomes.len(), 2);
    for outcome in outcomes {
        let Outcome::Failed(Failure::Probe(why)) = &outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            why.starts_with("node-2: ") && why.contains("no such key"),
            "{why}"
        );
    }
}

#[test]
fn occupied_port_on_other_node_is_reported() {
    // Node 1 itself takes the port at the address of node 3 before it listens.
    let script = format!(
        "if [ \"$2\" = 1 ]; then\n  nc -l 127.0.0.3 \"$4\" >/dev/null &\n  \
         at=\"0300007F:$(printf %04X \"$4\")\"\n  \
         until grep -q \" $at 00000000:0000 0A \" /proc/net/tcp; do sleep 0.01; done\nfi\n{LISTEN}"
    );
    let outcomes = needed!(outcomes("taken", Params::new().with("service", script), 20));
    for outcome in outcomes {
        let Outcome::Failed(Failure::Probe(why)) = &outcome else {
            panic!("{outcome:?}");
        };
        assert!(why.starts_with("node-3: ") && why.contains("port"), "{why}");
    }
}

#[test]
fn hanging_client_is_killed_with_services() {
    let params = Params::new().with("client", "sleep 1000\n");
    let outcomes = needed!(outcomes("endless", params, 2));
    for outcome in outcomes {
        assert!(
            matches!(outcome, Outcome::Failed(Failure::TimedOut { .. })),
            "{outcome:?}"
        );
    }
}

#[test]
fn lost_node_mid_run_voids_trial_and_recovers() {
    // The service of node 3 kills the agent that started its worker, once, while the client is running.
    let mark = tempfile::tempdir().unwrap();
    let mark = mark.path().join("done");
    let script = format!(
        "if [ \"$2\" = 3 ] && [ ! -e '{0}' ]; then\n  touch '{0}'\n  \
         worker=$PPID; agent=$(cut -d' ' -f4 /proc/$worker/stat)\n  \
         (until [ -e '{0}.begun' ]; do sleep 0.01; done; kill -9 \"$agent\"; touch '{0}.lost') &\nfi\n{LISTEN}",
        mark.display()
    );
    // The process that kills the agent may be killed in the cleanup after the agent before it can report; the second
    // client does not wait for its message.
    let client = format!(
        "if [ ! -e '{0}.begun' ]; then\n  touch '{0}.begun'\n  \
         until [ -e '{0}.lost' ]; do sleep 0.01; done\nfi\n{CLIENT}",
        mark.display()
    );
    let params = Params::new().with("service", script).with("client", client);
    let outcomes = needed!(outcomes("lost", params, 20));
    let Outcome::Failed(Failure::Lost(why)) = &outcomes[0] else {
        panic!("{outcomes:?}");
    };
    assert!(why.starts_with("node-3: "), "{why}");
    assert!(matches!(outcomes[1], Outcome::Completed(_)), "{outcomes:?}");
}
