//! `cargo xtask ladder [--env NAME]…`: checks whether the steps of the ladder add up to the directly measured total.
//!
//! Five different programs go through `tare why --ladder`, in the built-in container and, if an engine answers, in
//! Docker. Each line has the sum of the steps and the total, both with their intervals; the last line is `agrees N of
//! M`.
//! `TARE` names a program that is already built.
//! Limits: errors of two steps that cancel are not seen.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::flags::{exit_status, why};
use crate::provision::docker::Engine;
use xtask_build::dist;
use xtask_build::shell::step;
use xtask_build::workspace::target_folder;

/// Time budget for each.
const BUDGET: &str = "150s";

/// Shell scripts that use different parts of a system.
const PROGRAMS: [(&str, &str); 5] = [
    (
        "compute",
        "awk 'BEGIN { for (i = 0; i < 800000; i++) s += i * i % 7; print s }'",
    ),
    (
        "system calls",
        "dd if=/dev/zero of=/dev/null bs=1 count=150000 status=none",
    ),
    (
        "small files",
        "d=tree.$$; mkdir $d; i=0; while [ $i -lt 400 ]; do echo $i >$d/$i; i=$((i+1)); done; cat $d/* >all; rm -r $d",
    ),
    (
        "fork and exec",
        "i=0; while [ $i -lt 80 ]; do /bin/true; i=$((i+1)); done",
    ),
    (
        "memory",
        "dd if=/dev/zero of=/dev/null bs=96M count=2 status=none",
    ),
];

/// Runs them and prints a table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let mut environments = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()) {
            ("--env", Some(name)) => environments.push(name.clone()),
            _ => bail!("usage: cargo xtask ladder [--env NAME]…"),
        }
    }
    let is_chosen = !environments.is_empty();
    if !is_chosen {
        environments = vec!["container".to_owned(), "docker".to_owned()];
    }
    let tare = dist::named_or_built()?;
    let engine = if environments.iter().any(|env| env.starts_with("docker")) {
        match Engine::ensure() {
            Ok(engine) => Some(engine),
            Err(error) if !is_chosen => {
                step(&format!("without docker: {error:#}"));
                environments.retain(|env| env != "docker");
                None
            }
            Err(error) => return Err(error),
        }
    } else {
        None
    };
    let host = engine.as_ref().map(Engine::host);
    let (mut n_agree, mut n_all) = (0, 0);
    for env in &environments {
        for (name, script) in PROGRAMS {
            step(&format!("{name} in {env}"));
            let line = climbed(&tare, host, env, script)?;
            n_all += 1;
            n_agree += u32::from(line.agrees);
            println!("{name:<14} {env:<10} {}", line.told);
        }
    }
    println!("agrees {n_agree} of {n_all}");
    Ok(exit_status(n_agree == n_all))
}

/// The result of one program.
struct Line {
    agrees: bool,
    told: String,
}

fn climbed(tare: &Path, host: Option<&str>, env: &str, script: &str) -> Result<Line> {
    let folder = target_folder().join("ladder");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("work"))?;
    let mut command = Command::new(tare);
    command
        .args(["why", "--ladder", "--env", env, "--budget", BUDGET])
        .args(["--json", "-", "--", "sh", "-c", script]);
    let output = why(command, &folder, host)?;
    fs::remove_dir_all(&folder)?;
    if !output.status.success() {
        return Ok(Line {
            agrees: false,
            told: format!("`tare why` ended with {}", output.status),
        });
    }
    let dossier: Value =
        serde_json::from_slice(&output.stdout).context("`tare why --json -` printed no JSON")?;
    Ok(judged(&dossier["ladder"]))
}

fn judged(ladder: &Value) -> Line {
    let ms = |value: &Value| value.as_f64().map(|ns| format!("{:+.2}", ns / 1e6));
    let shown = |span: &Value| {
        let ends = ms(&span["low"]).zip(ms(&span["high"]));
        ends.map(|(low, high)| format!(" [{low}, {high}]"))
            .unwrap_or_default()
    };
    let (Some(sum), Some(total)) = (ms(&ladder["sum"]), ms(&ladder["total"]["point"])) else {
        return Line {
            agrees: false,
            told: "no ladder was climbed".to_owned(),
        };
    };
    let agrees = ladder["agrees"] == true;
    let n_steps = ladder["rungs"].as_array().map_or(0, Vec::len);
    Line {
        agrees,
        told: format!(
            "sum of {n_steps} steps {sum}{} ms · total {total}{} ms · {}",
            shown(&ladder["sum_span"]),
            shown(&ladder["total"]),
            if agrees { "agrees" } else { "DOES NOT AGREE" }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_ladder_that_was_not_climbed_does_not_agree() {
        assert!(!judged(&Value::Null).agrees);
        let span =
            |low: f64, point: f64, high: f64| json!({"low": low, "point": point, "high": high});
        let ladder = |agrees: bool| {
            json!({"rungs": [{}, {}], "sum": 2.1e6, "sum_span": span(1.9e6, 2.1e6, 2.3e6),
                   "total": span(1.5e6, 2.0e6, 2.5e6), "agrees": agrees})
        };
        let line = judged(&ladder(true));
        assert!(line.agrees);
        assert_eq!(
            line.told,
            "sum of 2 steps +2.10 [+1.90, +2.30] ms · total +2.00 [+1.50, +2.50] ms · agrees"
        );
        assert!(!judged(&ladder(false)).agrees);
    }
}
