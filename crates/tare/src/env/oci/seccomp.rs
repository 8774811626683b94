//! Docker's default list of system calls in the form of a specification (`linux.seccomp`).
//!
//! Read from the same data as the built-in container's filter, so that both arms filter the same calls; what
//! differs is who compiles it: here the runtime, mostly by libseccomp, and that is part of what it costs.
//! The architectures are those that Docker names, with their 32-bit forms: they make the compilation longer,
//! and leaving them out would flatter the runtime.
//! What it cannot see: names that the runtime's library does not know, which runtimes pass over silently.

use serde::{Deserialize, Serialize};
use tare_model::launch::DockerRelease;

/// The list of a release; its notation stands in the head of the oldest.
fn list(release: DockerRelease) -> &'static str {
    match release {
        DockerRelease::V20 => {
            include_str!("../../../../tare-agent/src/launch/seccomp/docker-20.10.txt")
        }
        DockerRelease::V28 => {
            include_str!("../../../../tare-agent/src/launch/seccomp/docker-28.txt")
        }
        DockerRelease::V29 => {
            include_str!("../../../../tare-agent/src/launch/seccomp/docker-29.txt")
        }
    }
}

/// A filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Seccomp {
    default_action: String,
    architectures: Vec<String>,
    pub(super) syscalls: Vec<Rule>,
}

/// What happens to some calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    pub(super) names: Vec<String>,
    pub(super) action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno_ret: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<Argument>,
}

/// A condition about an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    index: u32,
    value: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    value_two: u64,
    op: String,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is the serializer's"
)]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `argN=V` or `argN&M=V`.
fn argument(word: &str) -> Option<Argument> {
    let (left, value) = word.strip_prefix("arg")?.split_once('=')?;
    let value = number(value)?;
    Some(match left.split_once('&') {
        // The specification's `value` is the mask here, and `valueTwo` what must come out.
        Some((index, mask)) => Argument {
            index: index.parse().ok()?,
            value: number(mask)?,
            value_two: value,
            op: "SCMP_CMP_MASKED_EQ".into(),
        },
        None => Argument {
            index: left.parse().ok()?,
            value,
            value_two: 0,
            op: "SCMP_CMP_EQ".into(),
        },
    })
}

fn version(text: &str) -> (u32, u32) {
    let mut parts = text
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// A line as a rule; `None` where its conditions do not hold or there is none in it.
fn rule(line: &str, capabilities: &[String], kernel: &str) -> Option<Rule> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (head, names) = line.split_once(':')?;
    let mut words = head.split_whitespace();
    let (action, errno_ret) = match words.next()?.split_once('=') {
        None => ("SCMP_ACT_ALLOW", None),
        Some((_, number)) => ("SCMP_ACT_ERRNO", number.parse().ok()),
    };
    let mut args = Vec::new();
    for word in words {
        if let Some(test) = argument(word) {
            args.push(test);
            continue;
        }
        let has = |name: &str| capabilities.iter().any(|kept| kept == name);
        let holds = match word.split_once('=')? {
            ("arch", name) => name == std::env::consts::ARCH,
            ("cap", name) => has(name),
            ("nocap", name) => !has(name),
            ("kernel", least) => version(kernel) >= version(least),
            _ => return None,
        };
        if !holds {
            return None;
        }
    }
    Some(Rule {
        names: names.split_whitespace().map(str::to_owned).collect(),
        action: action.into(),
        errno_ret,
        args,
    })
}

/// Docker's list for a container that keeps these capabilities, on a kernel of this release.
pub(super) fn docker_default(
    release: DockerRelease,
    capabilities: &[String],
    kernel: &str,
) -> Seccomp {
    let architectures: &[&str] = match std::env::consts::ARCH {
        "x86_64" => &["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
        "aarch64" => &["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"],
        _ => &[],
    };
    Seccomp {
        default_action: "SCMP_ACT_ERRNO".into(),
        architectures: architectures.iter().map(ToString::to_string).collect(),
        syscalls: list(release)
            .lines()
            .filter_map(|line| rule(line, capabilities, kernel))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules<'a>(filter: &'a Seccomp, name: &str) -> Vec<&'a Rule> {
        let has = |rule: &&Rule| rule.names.iter().any(|own| own == name);
        filter.syscalls.iter().filter(has).collect()
    }

    #[test]
    fn every_line_of_the_list_is_understood() {
        // With every capability kept once and dropped once, on a new kernel, only foreign machines drop out.
        let all = tare_model::launch::CAPABILITIES.map(str::to_owned);
        for line in DockerRelease::ALL
            .iter()
            .flat_map(|(_, release)| list(*release).lines())
        {
            let is_rule = !line.trim().is_empty() && !line.starts_with('#');
            let is_foreign = line.contains("arch=")
                && !line.contains(&format!("arch={}", std::env::consts::ARCH));
            let is_read = rule(line, &all, "99.0").is_some() || rule(line, &[], "99.0").is_some();
            assert_eq!(is_read, is_rule && !is_foreign, "{line}");
        }
    }

    #[test]
    fn a_capability_opens_the_calls_that_need_it() {
        let few = docker_default(DockerRelease::V20, &[], "6.1.0");
        let admin = docker_default(DockerRelease::V20, &["CAP_SYS_ADMIN".to_owned()], "6.1.0");
        assert!(rules(&few, "mount").is_empty());
        assert_eq!(rules(&admin, "mount").len(), 1);
        assert_eq!(rules(&few, "clone3")[0].errno_ret, Some(38));
        let clone = rules(&few, "clone")[0];
        assert_eq!(clone.args[0].value, 0x7e02_0000);
        assert_eq!(clone.args[0].op, "SCMP_CMP_MASKED_EQ");
        assert!(rules(&admin, "clone")[0].args.is_empty());
        assert_eq!(rules(&few, "personality").len(), 5);
        assert!(rules(&docker_default(DockerRelease::V20, &[], "4.7"), "ptrace").is_empty());
    }

    #[test]
    fn it_is_written_as_the_specification_wants_it() {
        let filter = docker_default(DockerRelease::V20, &[], "6.1.0");
        let json = serde_json::to_value(&filter).unwrap();
        assert_eq!(json["defaultAction"], "SCMP_ACT_ERRNO");
        let first = &json["syscalls"][0];
        assert_eq!(first["action"], "SCMP_ACT_ALLOW");
        assert!(first.get("args").is_none() && first.get("errnoRet").is_none());
        assert_eq!(
            json["architectures"].as_array().unwrap().len() > 1,
            cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
        );
    }
}
