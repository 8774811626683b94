//! `getppid`: the cheapest system call that every kernel really makes.
//!
//! Inside the timed region: `k` times `syscall(SYS_getppid)`, made directly, so that no libc can cache the
//! answer. Outside: everything else.
//! Known bias: none; under a seccomp filter it grows by what the filter costs for a call that is always
//! allowed, which a filter that looks at arguments exceeds.
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
            // It is 0 where the parent is outside of the process namespace; an answer below that is a filter's.
            if parent < 0 {
                return Err(ProbeError::last("getppid"));
            }
        }
        Ok(())
    })
}

super::needs!(linux, "direct system calls");
