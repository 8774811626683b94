//! `spawn`: starts a process and waits for it to exit.
//!
//! Inside the timed region: fork, exec of the agent's binary with the argument `true` (which returns immediately),
//! and waiting for it. The same static file everywhere, so no dynamic linker and no shell. Outside: preparing the
//! arguments, one process as warm-up. On Windows `CreateProcess`, with null standard streams.
//! Known bias: the fork copies the page table of a small worker; it is slower in a larger parent.
//! Source: lmbench's `lat_proc exec`.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "spawn": "fork, execution of the agent's own file with `true`, and waiting for its end";
    revision 1, cut KERNEL
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    linux::run(meter, c"/proc/self/exe")
}

super::needs!(linux or windows, "fork");

#[cfg(windows)]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    use std::process::{Command, Stdio};

    use tare_model::Failure;

    let program =
        std::env::current_exe().map_err(|error| ProbeError::system("GetModuleFileName", &error))?;
    let mut command = Command::new(program);
    command
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut start_and_wait = || {
        let status = command
            .status()
            .map_err(|error| ProbeError::system("CreateProcess", &error))?;
        if status.success() {
            return Ok(());
        }
        Err(ProbeError::Failed(Failure::Probe(format!(
            "CreateProcess: the agent ended with {status}"
        ))))
    };
    start_and_wait()?;
    meter.each("proc.spawn.time", 1.0, start_and_wait)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CStr, c_char};
    use std::io::ErrorKind;

    use tare_model::{Failure, Reason};

    use crate::meter::{Meter, ProbeError};

    unsafe extern "C" {
        /// The environment variables, as POSIX names them.
        static environ: *const *const c_char;
    }

    /// Exit status of a child that could not execute the file, as in shells.
    const NOT_EXECUTED: i32 = 127;

    pub(super) fn run(meter: &mut Meter, program: &CStr) -> Result<(), ProbeError> {
        // SAFETY: the path ends with a zero byte.
        if unsafe { libc::access(program.as_ptr(), libc::X_OK) } != 0 {
            return Err(ProbeError::Unavailable(Reason::Unsupported(format!(
                "`{}` cannot be executed: {}",
                program.to_string_lossy(),
                std::io::Error::last_os_error()
            ))));
        }
        let arguments = [c"tare-agent".as_ptr(), c"true".as_ptr(), std::ptr::null()];
        start_and_wait(program, &arguments)?;
        meter.each("proc.spawn.time", 1.0, || {
            start_and_wait(program, &arguments)
        })
    }

    fn start_and_wait(program: &CStr, arguments: &[*const c_char; 3]) -> Result<(), ProbeError> {
        // SAFETY: the child calls only execve and _exit, which are safe after a fork; the path and all arguments end
        // with a zero byte and the list with a null pointer. Nothing changes the environment variables while a probe
        // runs.
        let process = unsafe {
            let process = libc::fork();
            if process == 0 {
                libc::execve(program.as_ptr(), arguments.as_ptr(), environ);
                libc::_exit(NOT_EXECUTED);
            }
            process
        };
        if process < 0 {
            return Err(ProbeError::last("fork"));
        }
        let mut status = 0;
        // SAFETY: `process` is our child, not yet reaped, and `status` is live.
        while unsafe { libc::waitpid(process, &raw mut status, 0) } == -1 {
            if std::io::Error::last_os_error().kind() != ErrorKind::Interrupted {
                return Err(ProbeError::last("waitpid"));
            }
        }
        if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
            return Ok(());
        }
        Err(ProbeError::Failed(Failure::Probe(format!(
            "execve: `{}` ended with the wait status {status:#x}",
            program.to_string_lossy()
        ))))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn measured(program: &CStr) -> Result<Meter, ProbeError> {
            let mut meter = Meter::new(1_000_000, &std::env::temp_dir());
            run(&mut meter, program).map(|()| meter)
        }

        #[test]
        fn a_program_that_ends_well_is_timed() {
            let (series, _, _) = measured(c"/bin/true").unwrap().finish();
            assert!(series[0].values.len() >= 5);
        }

        #[test]
        fn a_program_that_fails_is_a_failure() {
            assert!(matches!(
                measured(c"/bin/false"),
                Err(ProbeError::Failed(_))
            ));
        }

        #[test]
        fn a_program_that_does_not_exist_is_unavailable() {
            assert!(matches!(
                measured(c"/nowhere/tare-agent"),
                Err(ProbeError::Unavailable(_))
            ));
        }
    }
}
