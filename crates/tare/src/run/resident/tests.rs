//! Tests of running, timing and ending a client, without an environment.

use std::time::Duration;

use tare_model::outcome::Exit;
use tare_model::{CommandCall, ProbeReport, Recipe};

use super::*;
use crate::service::user::asked;

#[test]
fn only_recipe_with_client_is_server() {
    let client = UserClient {
        argv: ["ab", "http://{host}:{port}/"].map(str::to_owned).to_vec(),
        port: 80,
        ready_ns: 1,
        ..UserClient::default()
    };
    let mut call = CommandCall::new("nginx", ["-g", "daemon off;"]);
    let recipe = |call: &CommandCall| Recipe::Probe(call.to_probe());
    assert_eq!(asked(&recipe(&call)), None);
    call.client = Some(client.to_text());
    assert_eq!(asked(&recipe(&call)), Some((call.clone(), client)));
    call.client = Some("{".to_owned());
    assert!(UserClient::from_call(&call).is_err());
    assert_eq!(asked(&Recipe::Lifecycle { held: 0 }), None);
}

#[test]
fn server_is_ready_by_a_line_that_it_prints() {
    let pattern = Some("^listening on \\d+$");
    assert!(find_in(b"a\nlistening on 80\nb", pattern).is_ok());
    let why = find_in(b"a\nsoon listening on 80\n", pattern).unwrap_err();
    assert!(why.ends_with("the last `soon listening on 80`"), "{why}");
    assert_eq!(find_in(b"", pattern).unwrap_err(), "it printed nothing");
    assert!(find_in(b"", None).is_ok());
}

#[test]
fn placeholders_are_filled_for_each_arm() {
    let argv = ["x", "{host}:{port}", "--port={port}"].map(str::to_owned);
    let filled = program::filled(&argv, "127.0.0.1:8081".parse().unwrap());
    assert_eq!(filled, ["x", "127.0.0.1:8081", "--port=8081"]);
}

#[test]
fn server_that_ended_is_described_by_its_last_words() {
    let ProbeReport { command, .. } = report_of(&outcome(
        CommandReport {
            exit: Exit::Code(3),
            stderr: tare_model::outcome::Bytes(b"no such port\n".to_vec()),
            ..nothing()
        },
        None,
        None,
    ));
    let words = ended(&command.unwrap());
    assert_eq!(
        words,
        "exited with status 3 instead of serving: no such port"
    );
    assert!(ended(&nothing()).ends_with("status 0 instead of serving"));
}

#[cfg(unix)]
#[test]
fn client_is_read_and_one_that_never_ends_is_ended() {
    let (clock, cancel) = (
        crate::cx::SystemClock::default(),
        crate::cx::Cancel::default(),
    );
    let outside = (
        &crate::cx::SystemExec as &dyn crate::cx::Exec,
        &clock as &dyn crate::cx::Clock,
        &cancel,
    );
    let way = "127.0.0.1:9".parse().unwrap();
    let argv = |script: &str| ["sh", "-c", script].map(str::to_owned);
    let limit = Duration::from_secs(60);
    let report = program::run(outside, &argv("echo {port}; exit 3"), way, limit).unwrap();
    assert_eq!(report.stdout.0, b"9\n");
    assert_eq!(report.exit, Exit::Code(3));
    let short = Duration::from_millis(1);
    let ended = program::run(outside, &argv("sleep 1000"), way, short);
    assert!(matches!(ended, Err(NoEnd::TooLong(_))), "{ended:?}");
    let missing = program::run(outside, &["/nowhere/at-all".to_owned()], way, limit);
    assert!(matches!(missing, Err(NoEnd::Failed(_))), "{missing:?}");
}

fn report_of(outcome: &Outcome) -> ProbeReport {
    let Outcome::Completed(raw) = outcome else {
        panic!("{outcome:?}");
    };
    serde_json::from_slice(&raw.stdout.0).unwrap()
}

fn nothing() -> CommandReport {
    CommandReport::silent(vec!["x".to_owned()], 1)
}
