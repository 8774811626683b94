//! Speculative store bypass, switched off for everything inside: what kernels before Linux 5.16 do together with
//! every filter on system calls, and what newer ones do only for who asks.
//!
//! With it a program can be tried as such a kernel would run it. The state passes on to children and through
//! `execve` (prctl(2), `PR_SET_SPECULATION_CTRL`). Not every processor, and not every hypervisor, offers the
//! switch; then the kernel refuses with ENXIO, and this says so with the kernel's own word for its state.
//! What it cannot see: whether the processor obeys; only a measurement shows that.

use tare_model::launch::LaunchError;

use super::{refused, sys};

/// The kernel's word for how it treats this weakness.
const STATE: &str = "/sys/devices/system/cpu/vulnerabilities/spec_store_bypass";

/// Forbids this process, and all that it will start, to let loads pass older stores.
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
    fn a_processor_without_the_switch_is_told_from_a_kernel_without_it() {
        assert!(hint(Some(libc::ENXIO)).unwrap().contains("processor"));
        assert!(hint(Some(libc::EINVAL)).unwrap().contains("kernel"));
        assert_eq!(hint(Some(libc::EPERM)), None);
    }
}
