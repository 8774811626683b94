//! Disables speculative store bypass for everything inside: kernels before Linux 5.16 do that with every seccomp
//! filter, newer ones only on request.
//!
//! Shows how such a kernel would run a program. The state is inherited by children and through `execve` (prctl(2),
//! `PR_SET_SPECULATION_CTRL`). Not every CPU and hypervisor offers the switch; then the kernel refuses with ENXIO,
//! and the error quotes the kernel's description of its state.
//! Limits: does not check whether the CPU obeys; only a measurement shows that.

use tare_model::launch::LaunchError;

use super::{refused, sys};

/// The kernel's description of how it treats this vulnerability.
const STATE: &str = "/sys/devices/system/cpu/vulnerabilities/spec_store_bypass";

/// Forbids this process and its future children speculative store bypass.
pub(super) fn forbid_store_bypass() -> Result<(), LaunchError> {
    sys::forbid_store_bypass().map_err(|error| {
        let mut refusal = refused("forbid loads to pass stores")(error);
        refusal.hint = hint(refusal.errno);
        refusal
    })
}

fn hint(errno: Option<i32>) -> Option<String> {
    match errno {
        Some(libc::ENXIO) => {
            let state = std::fs::read_to_string(STATE).unwrap_or_default();
            Some(format!(
                "neither this processor nor its hypervisor offers the switch (the kernel says `{}`): remove `ssbd`, or use another machine",
                state.trim().escape_debug()
            ))
        }
        Some(libc::EINVAL | libc::ENODEV) => {
            Some("this kernel has no such switch: it came with Linux 4.17".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssbd_hint_distinguishes_cpu_from_kernel_support() {
        assert!(hint(Some(libc::ENXIO)).unwrap().contains("processor"));
        assert!(hint(Some(libc::EINVAL)).unwrap().contains("kernel"));
        assert_eq!(hint(Some(libc::EPERM)), None);
    }
}
