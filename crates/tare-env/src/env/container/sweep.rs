//! Cleans up leftovers of runs: the agent removes the cgroups, devices and processes with its labels, and its reports
//! become readable lines. For every driver whose instances the agent launches.

use crate::env::prelude::*;

/// Removes the leftovers of one run and returns one line per leftover.
pub(crate) fn sweep_run(cx: &Context<'_>, run: &str) -> Result<Vec<String>> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    sweep(cx, &["--run", run])
}

/// Runs the agent's `sweep` and returns one line per leftover. For every environment whose cgroups and devices have
/// the agent's labels.
pub(crate) fn sweep(cx: &Context<'_>, arguments: &[&str]) -> Result<Vec<String>> {
    let command = cx.agent.command([&["sweep"], arguments].concat());
    let finished = cx.exec.run(&command, &[], CONTROL_LIMIT)?;
    let lines: Vec<String> = finished.stdout_text().lines().map(swept).collect();
    if finished.succeeded() {
        return Ok(lines);
    }
    let words = finished.stderr_text();
    Err(EnvError::refused(
        "removing what a container left behind",
        format!("{}{}", lines.join("; "), words.trim().escape_debug()),
    ))
}

/// One of the agent's lines in words; an unexpected line is returned escaped.
fn swept(line: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(line).ok();
    let words = parsed.and_then(|value| {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let (kind, name) = (text("kind")?, text("name")?);
        let killed = value.get("killed").and_then(Value::as_u64);
        let what = match (text("failed"), killed) {
            (Some(failed), _) => format!("not removed: {failed}"),
            (None, Some(count @ 1..)) => format!("removed, {count} processes killed"),
            (None, _) => "removed".to_owned(),
        };
        Some(format!("{kind} `{name}` {what}"))
    });
    words
        .unwrap_or_else(|| line.to_owned())
        .escape_debug()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_sweep_lines_are_worded_others_are_escaped() {
        let line = r#"{"kind":"cgroup","name":"/x","killed":2}"#;
        assert_eq!(swept(line), "cgroup `/x` removed, 2 processes killed");
        let line = r#"{"kind":"device","name":"tare-1","failed":"no"}"#;
        assert_eq!(swept(line), "device `tare-1` not removed: no");
        assert_eq!(swept("\u{1b}[31m"), "\\u{1b}[31m");
    }
}
