//! `cargo xtask why-matrix [--env NAME]… [--budget TIME]`: checks that `tare why` answers for every environment that
//! works here and every kind of command.
//!
//! Four commands (computing, reading, printing, failing) go through each environment. A right line is an answer, or
//! for the failing command the sentence that says where it fails. A missing environment is listed with the reason.
//! The last line is `answers N of M`.
//! `TARE` names a program that is already built, `TARE_TEST_AGENT` its agent if none is embedded.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::flags::exit_status;
use xtask_build::dist;
use xtask_build::workspace::target_folder;

/// Commands as shell scripts, and whether they fail.
const COMMANDS: [(&str, &str, bool); 4] = [
    (
        "computing",
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
        false,
    ),
    ("reading", "cat input >/dev/null", false),
    (
        "printing",
        "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done",
        false,
    ),
    ("failing", "echo broken >&2; exit 3", true),
];

/// Exit statuses of `tare`: a failure, and a missing environment.
const FAILURE: i32 = 5;
const NOT_HERE: i32 = 3;
/// Exit status for an environment with incomplete settings.
const USAGE: i32 = 2;

/// Runs them and prints a table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let (mut environments, mut budget) = (Vec::new(), "30s".to_owned());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()) {
            ("--env", Some(name)) => environments.push(name.clone()),
            ("--budget", Some(time)) => budget.clone_from(time),
            _ => bail!("usage: cargo xtask why-matrix [--env NAME]… [--budget TIME]"),
        }
    }
    let tare = dist::named_or_built()?;
    if environments.is_empty() {
        environments = listed(&tare)?;
    }
    let (mut n_right, mut n_all) = (0, 0);
    for env in &environments {
        for (name, script, fails) in COMMANDS {
            let output = asked(&tare, env, &budget, script)?;
            let line = judged(&output, fails);
            let word = match line {
                Line::Right(_) => "right",
                Line::Wrong(_) => "WRONG",
                Line::NotHere(_) => "–",
            };
            let (Line::Right(text) | Line::Wrong(text) | Line::NotHere(text)) = &line;
            println!("{word:<6} {env:<10} {name:<10} {text}");
            if let Line::NotHere(_) = line {
                break;
            }
            n_all += 1;
            n_right += u32::from(matches!(line, Line::Right(_)));
        }
    }
    println!("answers {n_right} of {n_all}");
    Ok(exit_status(n_right == n_all && n_all > 0))
}

/// The result of one command in one environment, with what is printed.
#[derive(Debug, PartialEq)]
enum Line {
    Right(String),
    Wrong(String),
    NotHere(String),
}

/// Returns the environments that `tare` knows, without the host.
fn listed(tare: &Path) -> Result<Vec<String>> {
    let output = Command::new(tare)
        .args(["list", "environments", "--json"])
        .output()
        .context("cannot run `tare list environments`")?;
    let list: Value = serde_json::from_slice(&output.stdout)
        .context("`tare list environments --json` printed no JSON")?;
    let names = names(&list);
    if names.is_empty() {
        bail!("`tare list environments --json` names none");
    }
    Ok(names)
}

fn names(list: &Value) -> Vec<String> {
    let list = list.get("environments").unwrap_or(list);
    let ids = list.as_array().into_iter().flatten();
    let ids = ids.filter_map(|it| it["id"].as_str().or(it["name"].as_str()));
    ids.filter(|id| *id != "host").map(str::to_owned).collect()
}

fn asked(tare: &Path, env: &str, budget: &str, script: &str) -> Result<Output> {
    let folder = target_folder().join("why-matrix");
    let _ = fs::remove_dir_all(&folder);
    let work = folder.join("work");
    fs::create_dir_all(&work)?;
    fs::write(work.join("input"), vec![b'x'; 4 << 20])?;
    let mut command = Command::new(tare);
    if let Some(agent) = std::env::var_os("TARE_TEST_AGENT") {
        command.arg("--agent").arg(agent);
    }
    let output = command
        .args(["why", "--env", env, "--budget", budget, "--json", "-"])
        .args(["--", "sh", "-c", script])
        .current_dir(&work)
        .env("TARE_HOME", folder.join("home"))
        .stdin(Stdio::null())
        .output()
        .context("cannot run `tare why`")?;
    fs::remove_dir_all(&folder)?;
    Ok(output)
}

fn judged(output: &Output, fails: bool) -> Line {
    let stderr_text = String::from_utf8_lossy(&output.stderr);
    let error = stderr_text.lines().rfind(|line| line.starts_with("error:"));
    let error = error.unwrap_or("ended without a word").to_owned();
    match output.status.code() {
        Some(NOT_HERE) => Line::NotHere(error),
        // It has no machine to use until one is named.
        Some(USAGE) if error.contains(" needs `") => Line::NotHere(error),
        Some(FAILURE) if fails && error.contains("fails") => Line::Right(error),
        // It says that the folder with the file is missing.
        Some(FAILURE) if stderr_text.contains("NOT carried: ") && error.contains("fails in") => {
            Line::Right(error)
        }
        Some(0) if !fails => match answer(&output.stdout) {
            Some(answer) => Line::Right(answer),
            None => Line::Wrong("no answer in the dossier".to_owned()),
        },
        code => Line::Wrong(format!("exit status {code:?}: {error}")),
    }
}

fn answer(json: &[u8]) -> Option<String> {
    let dossier: Value = serde_json::from_slice(json).ok()?;
    let answer = dossier["why"]["answer"].as_str()?;
    (!answer.is_empty()).then(|| answer.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn output(code: i32, stdout: &str, stderr: &str) -> Output {
        Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn errors_are_no_answers() {
        let answered = output(0, r#"{"why": {"answer": "No slowdown."}}"#, "");
        assert_eq!(
            judged(&answered, false),
            Line::Right("No slowdown.".to_owned())
        );
        assert!(matches!(judged(&answered, true), Line::Wrong(_)));
        let fails = output(5, "", "error: the command fails on the host already");
        assert!(matches!(judged(&fails, true), Line::Right(_)));
        assert!(matches!(judged(&fails, false), Line::Wrong(_)));
        assert!(matches!(
            judged(&output(0, "{}", ""), false),
            Line::Wrong(_)
        ));
        let unnamed = output(2, "", "error: `ssh`: `ssh` needs `host`");
        assert!(matches!(judged(&unnamed, false), Line::NotHere(_)));
        let absent = output(3, "", "error: no engine answers");
        assert!(matches!(judged(&absent, false), Line::NotHere(_)));
        assert!(matches!(judged(&output(2, "", ""), true), Line::Wrong(_)));
    }

    #[test]
    fn host_is_no_environment_to_ask_about() {
        let list = serde_json::json!([{"id": "host"}, {"id": "docker"}]);
        assert_eq!(names(&list), ["docker"]);
        let list = serde_json::json!({"environments": [{"name": "oci"}]});
        assert_eq!(names(&list), ["oci"]);
        assert!(names(&serde_json::json!({})).is_empty());
    }
}
