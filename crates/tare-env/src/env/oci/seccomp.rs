//! Docker's default seccomp profile in the form of a specification (`linux.seccomp`).
//!
//! Generated from the same data as the built-in container's filter, so that both arms filter the same syscalls. They
//! differ in what compiles the filter: here the runtime, mostly through libseccomp, and that is part of its overhead.
//! The architectures are those that Docker names, with their 32-bit forms: they make the compilation longer, and
//! omitting them would flatter the runtime.
//! Limits: runtimes silently skip names that their library does not know.

use serde::{Deserialize, Serialize};
use tare_model::call_list::{self, Action, ArgumentTest, Line, Machine};
use tare_model::launch::DockerRelease;

/// A seccomp filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Seccomp {
    default_action: String,
    architectures: Vec<String>,
    pub(super) syscalls: Vec<Rule>,
}

/// An action for some syscalls.
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

/// A condition on an argument.
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

/// Converts a line of a list to a rule.
fn rule(line: &Line<'_>) -> Rule {
    let (action, errno_ret) = match line.action {
        Action::Allow => ("SCMP_ACT_ALLOW", None),
        Action::Errno(number) => ("SCMP_ACT_ERRNO", Some(u32::from(number))),
    };
    Rule {
        names: line.names.split_whitespace().map(str::to_owned).collect(),
        action: action.into(),
        errno_ret,
        args: line.tests.iter().map(argument).collect(),
    }
}

fn argument(test: &ArgumentTest) -> Argument {
    // With a mask, the specification's `value` is the mask and `valueTwo` the expected result.
    let (op, value, value_two) = match test.mask {
        u64::MAX => ("SCMP_CMP_EQ", test.value, 0),
        mask => ("SCMP_CMP_MASKED_EQ", mask, test.value),
    };
    Argument {
        index: test.index,
        value,
        value_two,
        op: op.into(),
    }
}

/// Returns Docker's profile for a container with these capabilities, on a kernel of this release.
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
    let machine = Machine {
        capabilities,
        kernel,
    };
    let lines = call_list::read(call_list::of_docker(release), machine)
        .expect("a test reads every list of Docker's");
    Seccomp {
        default_action: "SCMP_ACT_ERRNO".into(),
        architectures: architectures.iter().map(ToString::to_string).collect(),
        syscalls: lines.iter().filter(|line| line.applies).map(rule).collect(),
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
