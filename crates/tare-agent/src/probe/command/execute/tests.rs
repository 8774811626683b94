//! Tests that run real programs: their results, and calls that are refused.

use std::sync::{Arc, Mutex};

use tare_model::command::{READY_MS, Transport};
use tare_model::outcome::Exit;

use tare_model::cluster::ClusterView;

use super::*;

fn reported(call: &CommandCall) -> Result<CommandReport, ProbeError> {
    let mut meter = Meter::new(1, &std::env::temp_dir());
    run(&mut meter, &call.to_probe().args)?;
    Ok(meter.take_command().unwrap())
}

fn shell(script: &str) -> CommandCall {
    CommandCall::new("sh", ["-c", script])
}

#[test]
fn output_status_files_and_usage_come_back() {
    let call = CommandCall {
        collect: vec!["out.txt".into(), "absent".into()],
        stdin: Some("from stdin".into()),
        ..shell("cat; cat in.txt >&2; echo $WORD {folder} >out.txt; exit 3")
    }
    .with_file("in.txt", "a file")
    .with_variable("WORD", "value");
    let report = reported(&call).unwrap();
    assert_eq!(report.exit, Exit::Code(3));
    assert_eq!(report.stdout.0, b"from stdin");
    assert_eq!(report.stderr.0, b"a file");
    let text = String::from_utf8(report.files["out.txt"].0.clone()).unwrap();
    let folder = text.trim().strip_prefix("value ").unwrap();
    assert!(folder.contains("tare-command"), "{folder}");
    assert!(!Path::new(folder).exists(), "the folder is still there");
    assert!(!report.files.contains_key("absent"));
    assert!(report.program.ends_with("/sh"));
    assert!(report.wall_ns > 0 && report.usage["minflt"] > 0.0);
    assert!(report.usage["permitted_cpus"] >= 1.0);
}

#[test]
#[cfg(target_os = "linux")]
fn observed_program_reports_threads_and_libraries() {
    let call = CommandCall {
        observe: true,
        ..shell("sleep 0.1 & sleep 0.1; wait")
    };
    let seen = reported(&call).unwrap().seen.unwrap();
    assert_eq!((seen.processes, seen.threads), (3, 3), "{seen:?}");
    assert!(
        seen.mapped.iter().any(|file| file.contains("libc")),
        "{seen:?}"
    );
    assert!(seen.status.contains_key("Seccomp"), "{seen:?}");
}

#[test]
fn clean_environment_has_only_given_variables() {
    let call = CommandCall {
        clean: true,
        ..CommandCall::new("env", [""; 0])
    }
    .with_variable("ONLY", "this")
    .with_variable("PATH", "/usr/bin:/bin");
    let report = reported(&call).unwrap();
    let text = String::from_utf8(report.stdout.0).unwrap();
    assert!(
        text.contains("ONLY=this") && !text.contains("HOME="),
        "{text}"
    );
}

#[test]
fn killed_program_is_reported_with_its_signal() {
    assert_eq!(
        reported(&shell("kill -9 $$")).unwrap().exit,
        Exit::Signal(9)
    );
}

#[test]
#[cfg(target_os = "linux")]
fn program_over_its_time_is_reported_until_then() {
    let of = |script: &str, ns: u64| {
        let call = CommandCall {
            observe: true,
            end_after_ns: Some(ns),
            ..shell(script)
        };
        reported(&call).unwrap()
    };
    let report = of("echo first; exec sleep 600", 200_000_000);
    assert!(report.is_ended_early && report.exit == Exit::Signal(9));
    assert_eq!(report.stdout.0, b"first\n");
    assert!(report.wall_ns >= 200_000_000, "{report:?}");
    assert!(report.seen.unwrap().watched_ns > 0);
    let report = of("echo all", 600_000_000_000);
    assert!(!report.is_ended_early && report.exit == Exit::Code(0));
}

#[test]
fn stdout_over_limit_is_cut_and_marked() {
    let report = reported(&shell("head -c 17000000 /dev/zero")).unwrap();
    assert_eq!(report.stdout.0.len(), STDOUT_LIMIT);
    assert!(report.is_cut);
}

#[test]
fn a_program_that_is_not_there_is_unavailable() {
    for name in ["tare-no-such-program", "/nowhere/program"] {
        let error = reported(&CommandCall::new(name, [""; 0])).unwrap_err();
        assert_eq!(
            error,
            ProbeError::Unavailable(Reason::MissingTool(name.into()))
        );
    }
}

#[test]
fn missing_folder_is_not_reported_as_missing_program() {
    let call = CommandCall {
        directory: Some("/nowhere".into()),
        ..shell("true")
    };
    let missing = Reason::MissingTool("the folder /nowhere".into());
    let error = reported(&call).unwrap_err();
    assert_eq!(error, ProbeError::Unavailable(missing));
}

#[test]
fn files_outside_of_the_folder_are_refused() {
    for name in ["../x", "/etc/x", "", "a/../../x"] {
        let call = CommandCall {
            collect: vec![name.into()],
            ..shell("true")
        };
        assert!(reported(&call).is_err(), "{name}");
    }
}

#[test]
fn port_placeholder_without_a_port_is_an_error() {
    assert!(reported(&shell("echo {port}")).is_err());
}

#[test]
fn cluster_program_gets_peer_addresses_and_hostfile() {
    let view = ClusterView {
        node: 2,
        addresses: vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()],
        slots: 4,
        shared: Some("/shared".into()),
    };
    let call = shell("cat {hostfile}; echo {node}/{nodes} {addresses} {subnet} {shared}");
    let mut meter = Meter::new(1, &std::env::temp_dir());
    run(&mut meter, &view.laid_into(call.to_probe().args)).unwrap();
    let report = meter.take_command().unwrap();
    let text = String::from_utf8(report.stdout.0).unwrap();
    assert_eq!(
        text,
        "192.0.2.1 slots=4\n192.0.2.2 slots=4\n2/2 192.0.2.1,192.0.2.2 192.0.2.0/30 /shared\n"
    );
}

#[test]
fn server_exit_before_listening_reports_stderr() {
    let call = CommandCall {
        listens: Some(Transport::Tcp),
        ..shell("echo no such option >&2; exit 1")
    };
    let ProbeError::Failed(Failure::Probe(text)) = reported(&call).unwrap_err() else {
        panic!("of another kind");
    };
    assert!(text.contains("no such option"), "{text}");
}

#[test]
fn streamed_output_leaves_report_unchanged() {
    for (stdout, kept) in [(Stdout::Kept, "out\n"), (Stdout::Discarded, "")] {
        let call = CommandCall {
            streams_output: true,
            stdout,
            ..shell("echo out; echo err >&2")
        };
        let streamed = Arc::new(Mutex::new(Vec::new()));
        let sink = streamed.clone();
        let mut meter = Meter::new(1, &std::env::temp_dir());
        meter.set_output_sink(Arc::new(Mutex::new(move |bytes: &[u8]| {
            sink.lock().unwrap().extend_from_slice(bytes);
        })));
        run(&mut meter, &call.to_probe().args).unwrap();
        let report = meter.take_command().unwrap();
        assert_eq!(report.stdout.0, kept.as_bytes());
        assert_eq!(report.stderr.0, b"err\n");
        assert!(!report.is_cut);
        let streamed = streamed.lock().unwrap();
        let mut lines: Vec<&str> = std::str::from_utf8(&streamed).unwrap().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["err", "out"]);
    }
}

#[test]
fn server_listen_timeout_is_configurable() {
    let call = CommandCall {
        listens: Some(Transport::Tcp),
        ..shell("exec sleep 1000")
    };
    let mut params = call.to_probe().args;
    params.0.insert(READY_MS.to_owned(), 20.into());
    let mut meter = Meter::new(1, &std::env::temp_dir());
    let ProbeError::Failed(Failure::Probe(text)) = run(&mut meter, &params).unwrap_err() else {
        panic!("of another kind");
    };
    assert!(text.contains("within 0.02 s"), "{text}");
}
