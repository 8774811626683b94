//! Docker's default seccomp profile in the form of a specification (`linux.seccomp`).
//!
//! Generated from the same data as the built-in container's filter, so that both arms filter the same syscalls. They
//! differ in what compiles the filter: here the runtime, mostly through libseccomp, and that is part of its overhead.
//! The architectures are those that Docker names, with their 32-bit forms: they make the compilation longer, and
//! omitting them would flatter the runtime.
//! Limits: runtimes silently skip names that their library does not know.

use serde_json::{Value, json};
use tare_model::call_list::{self, Action, ArgumentTest, Line, Machine};
use tare_model::launch::DockerRelease;

/// Converts a line of a list to a rule.
fn rule(line: &Line<'_>) -> Value {
    let names: Vec<&str> = line.names.split_whitespace().collect();
    let mut rule = match line.action {
        Action::Allow => json!({"names": names, "action": "SCMP_ACT_ALLOW"}),
        Action::Errno(number) => {
            json!({"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": number})
        }
    };
    if !line.tests.is_empty() {
        rule["args"] = line.tests.iter().map(argument).collect();
    }
    rule
}

/// Converts a condition. With a mask, the specification's `value` is the mask and `valueTwo` the expected result.
fn argument(test: &ArgumentTest) -> Value {
    let index = test.index;
    match test.mask {
        u64::MAX => json!({"index": index, "value": test.value, "op": "SCMP_CMP_EQ"}),
        mask => {
            let mut masked = json!({"index": index, "value": mask, "op": "SCMP_CMP_MASKED_EQ"});
            if test.value != 0 {
                masked["valueTwo"] = test.value.into();
            }
            masked
        }
    }
}

/// Returns Docker's profile for a container with these capabilities, on a kernel of this release.
pub(super) fn docker_default(
    release: DockerRelease,
    capabilities: &[String],
    kernel: &str,
) -> Value {
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
    let rules: Vec<Value> = lines.iter().filter(|line| line.applies).map(rule).collect();
    json!({"defaultAction": "SCMP_ACT_ERRNO", "architectures": architectures, "syscalls": rules})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules<'a>(filter: &'a Value, name: &str) -> Vec<&'a Value> {
        let all = filter["syscalls"].as_array().unwrap().iter();
        all.filter(|rule| rule["names"].as_array().unwrap().contains(&json!(name)))
            .collect()
    }

    #[test]
    fn a_capability_opens_the_calls_that_need_it() {
        let few = docker_default(DockerRelease::V20, &[], "6.1.0");
        let admin = docker_default(DockerRelease::V20, &["CAP_SYS_ADMIN".to_owned()], "6.1.0");
        assert!(rules(&few, "mount").is_empty());
        assert_eq!(rules(&admin, "mount").len(), 1);
        assert_eq!(rules(&few, "clone3")[0]["errnoRet"], 38);
        let clone = rules(&few, "clone")[0];
        assert_eq!(clone["args"][0]["value"], 0x7e02_0000);
        assert_eq!(clone["args"][0]["op"], "SCMP_CMP_MASKED_EQ");
        assert!(rules(&admin, "clone")[0].get("args").is_none());
        assert_eq!(rules(&few, "personality").len(), 5);
        assert!(rules(&docker_default(DockerRelease::V20, &[], "4.7"), "ptrace").is_empty());
    }

    #[test]
    fn it_is_written_as_the_specification_wants_it() {
        let json = docker_default(DockerRelease::V20, &[], "6.1.0");
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
