//! `getppid`: the cheapest system call that always enters the kernel.
//!
//! Inside the timed region: `k` times `syscall(SYS_getppid)`, made directly, so that no libc can cache the answer.
//! Outside: everything else.
//! Known bias: none; a seccomp filter adds its cost for a call that is always allowed, which is less than for a
//! filter that checks arguments.
//! Source: the "null system call" of lmbench (McVoy and Staelin, USENIX 1996).

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "getppid": "the system call getppid, made directly";
    revision 1, cut LOOP
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    meter.loops("syscall.getppid.time", 1.0, |calls| {
        for _ in 0..calls {
            // SAFETY: getppid takes no argument, touches no memory of ours and cannot fail.
            let parent = unsafe { libc::syscall(libc::SYS_getppid) };
            // 0 means that the parent is outside of the PID namespace; a negative answer comes from a filter.
            if parent < 0 {
                return Err(ProbeError::last("getppid"));
            }
        }
        Ok(())
    })
}

super::needs!(linux, "direct system calls");
