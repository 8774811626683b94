//! Reads and checks a user's seccomp profile, which goes to the engine unchanged.
//!
//! The engine takes a profile as JSON text and parses it only when a container is started, after an image and perhaps
//! a volume have been created, and its errors then are about its internals. So the shape is checked here first: known
//! actions, names where names are needed, known operators. Names of syscalls and architectures are left to the
//! engine, because newer kernels have newer ones.
//! Limits: a profile under which the program cannot run is noticed only at the start.

use crate::env::prelude::*;

use sha2::{Digest, Sha256};

use super::super::image::packed::hex;

/// Size limit; a profile has some kilobytes, Docker's own 13 kB.
const LIMIT_BYTES: usize = 1 << 20;

/// A checked profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Profile {
    /// JSON on one line.
    pub(super) json: String,
    /// SHA-256 of the file.
    pub(super) sha256: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape {
    default_action: Action,
    syscalls: Option<Vec<Rule>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "some fields are read only to be checked")]
struct Rule {
    name: Option<String>,
    names: Option<Vec<String>>,
    action: Action,
    args: Option<Vec<Argument>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is read only to be checked")]
struct Argument {
    index: u32,
    value: u64,
    op: Operator,
}

/// The actions of the runtime specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(clippy::enum_variant_names, reason = "the specification's own names")]
enum Action {
    ScmpActKill,
    ScmpActKillProcess,
    ScmpActKillThread,
    ScmpActTrap,
    ScmpActErrno,
    ScmpActTrace,
    ScmpActAllow,
    ScmpActLog,
    ScmpActNotify,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(clippy::enum_variant_names, reason = "the specification's own names")]
enum Operator {
    ScmpCmpNe,
    ScmpCmpLt,
    ScmpCmpLe,
    ScmpCmpEq,
    ScmpCmpGe,
    ScmpCmpGt,
    ScmpCmpMaskedEq,
}

/// Reads and checks the profile in a file.
pub(super) fn read(path: &Path) -> Result<Profile, EnvError> {
    let bytes = files::read(path)?;
    let wrong = |problem: &str| {
        EnvError::absent(
            format!(
                "`{}` is no seccomp profile: {problem}",
                printable(&path.display().to_string())
            ),
            "see the format in Docker's documentation (`seccomp.json`: `defaultAction` and `syscalls`)",
        )
    };
    let json = check(&bytes).map_err(|problem| wrong(&problem))?;
    Ok(Profile {
        json,
        sha256: hex(&Sha256::digest(&bytes)),
    })
}

/// Returns the profile on one line, or the error in it.
fn check(bytes: &[u8]) -> Result<String, String> {
    if bytes.len() > LIMIT_BYTES {
        return Err(format!("it has more than {LIMIT_BYTES} bytes"));
    }
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| printable(&error.to_string()))?;
    if !value.is_object() {
        return Err("it is no object with `defaultAction`".into());
    }
    let shape: Shape =
        serde_json::from_slice(bytes).map_err(|error| printable(&error.to_string()))?;
    let mut n_names = 0;
    for (number, rule) in shape.syscalls.iter().flatten().enumerate() {
        let names = rule.names.iter().flatten().chain(&rule.name).count();
        if names == 0 {
            return Err(format!(
                "rule {} of `syscalls` names no system call",
                number + 1
            ));
        }
        n_names += names;
    }
    if n_names == 0 && shape.default_action != Action::ScmpActAllow {
        return Err("it allows no system call at all, so nothing can start under it".into());
    }
    Ok(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seccomp_profile_of_either_form_becomes_one_line() {
        for text in [
            r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#,
            "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\n \"syscalls\":[{\"names\":[\"read\",\"write\"],\"action\":\"SCMP_ACT_ALLOW\"}]}",
            r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,"syscalls":[
                {"name":"personality","action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":8,"op":"SCMP_CMP_EQ"}]}]}"#,
        ] {
            let json = check(text.as_bytes()).unwrap();
            assert!(!json.contains('\n'));
            assert_eq!(
                serde_json::from_str::<Value>(&json).unwrap(),
                serde_json::from_str::<Value>(text).unwrap()
            );
        }
    }

    #[test]
    fn broken_seccomp_profile_error_has_place_or_rule() {
        for (text, says) in [
            ("{\"defaultAction\":", "line 1"),
            ("[]", "defaultAction"),
            ("{}", "defaultAction"),
            (
                r#"{"defaultAction":"SCMP_ACT_PERHAPS"}"#,
                "SCMP_ACT_PERHAPS",
            ),
            (r#"{"defaultAction":"SCMP_ACT_ERRNO"}"#, "nothing can start"),
            (
                r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"action":"SCMP_ACT_ERRNO"}]}"#,
                "rule 1",
            ),
            (
                r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir"],"action":"deny"}]}"#,
                "deny",
            ),
            (
                r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["a"],"action":"SCMP_ACT_ERRNO","args":[{"index":0,"value":1,"op":"="}]}]}"#,
                "SCMP_CMP",
            ),
            ("\u{1b}[2J", "line 1"),
        ] {
            let problem = check(text.as_bytes()).unwrap_err();
            assert!(problem.contains(says), "{text}: {problem}");
            assert!(!problem.contains(['\u{1b}', '\n']), "{problem:?}");
        }
        assert!(check(&vec![b' '; LIMIT_BYTES + 1]).is_err());
    }
}
