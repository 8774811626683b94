//! Builds and loads the seccomp filter: a list as data ([`profile`]), assembled ([`bpf`]), loaded.
//!
//! No seccomp library: compiling Docker's list with libseccomp takes 21 to 28 ms, most of a container's start. Here
//! reading, assembling and loading it took 0.6 ms together (fastest of 60 starts, Linux 6.18, x86_64), so that the
//! measured start-up overhead is the mechanism's and not the compiler's.

mod bpf;
mod profile;
mod table;

use tare_model::call_list;
use tare_model::launch::{DockerRelease, LaunchError, Seccomp, SeccompReport};

use super::{refused, sys};

/// `SECCOMP_FILTER_FLAG_SPEC_ALLOW` of include/uapi/linux/seccomp.h.
const SPEC_ALLOW: libc::c_ulong = 1 << 2;

/// A seccomp filter, ready to be loaded.
#[derive(Debug)]
pub(super) struct Filter {
    program: Vec<bpf::Instruction>,
    flags: libc::c_ulong,
    skipped: Vec<String>,
}

impl Filter {
    /// Builds the filter; `None` if none is asked for. `capabilities` are those that are kept.
    pub(super) fn new(
        which: Seccomp,
        release: DockerRelease,
        spec_allow: bool,
        capabilities: &[String],
    ) -> Result<Option<Self>, LaunchError> {
        let text = match which {
            Seccomp::Off => return Ok(None),
            Seccomp::DockerDefault => call_list::of_docker(release),
        };
        let error = |problem: String| LaunchError {
            step: "assemble the seccomp filter".into(),
            problem,
            errno: None,
            hint: Some("use seccomp = \"off\"".into()),
        };
        let kernel = sys::kernel_release();
        let machine = call_list::Machine {
            capabilities,
            kernel: &kernel,
        };
        let profile = profile::read(text, machine).map_err(|wrong| {
            error(format!(
                "line {} of the list: {}",
                wrong.line, wrong.problem
            ))
        })?;
        let default = bpf::errno(libc::EPERM);
        let program = bpf::compile(&profile, default).map_err(|wrong| {
            error(match wrong {
                bpf::CompileError::Architecture => {
                    "the system calls of this architecture are not known".into()
                }
                bpf::CompileError::TooLong(length) => format!("{length} instructions are too many"),
            })
        })?;
        Ok(Some(Self {
            program,
            flags: if spec_allow { SPEC_ALLOW } else { 0 },
            skipped: profile.skipped,
        }))
    }

    /// Describes the filter for the launch report.
    pub(super) fn report(&self) -> SeccompReport {
        SeccompReport {
            instructions: self.program.len(),
            skipped: self.skipped.clone(),
        }
    }

    /// Loads the filter for this process and all its future children.
    pub(super) fn load(&self) -> Result<(), LaunchError> {
        sys::load_filter(&self.program, self.flags).map_err(|error| {
            let mut refusal = refused("load the seccomp filter")(error);
            if refusal.errno == Some(libc::EACCES) {
                refusal.hint = Some("without CAP_SYS_ADMIN set no_new_privs = true".into());
            }
            refusal
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a syscall's error number under the filter, or 0 on success.
    fn answer(number: libc::c_long) -> i32 {
        // SAFETY: every argument is 0 or a null pointer: the syscalls tried here fail on those or do nothing.
        let result = unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) };
        if result < 0 {
            std::io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(i32::MAX)
        } else {
            0
        }
    }

    /// Returns, from a child under the filter, the position of the first unexpected result, counted from 1.
    fn first_wrong(filter: &Filter, expected: &[(libc::c_long, i32)]) -> i32 {
        // SAFETY: the child calls only what is safe after a fork of a threaded program: raw system calls
        // and _exit; it allocates nothing.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let is_ready = sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).is_ok()
                && sys::load_filter(&filter.program, filter.flags).is_ok();
            if !is_ready {
                sys::leave(250);
            }
            let wrong = (1..)
                .zip(expected)
                .find(|(_, (number, errno))| answer(*number) != *errno);
            sys::leave(wrong.map_or(0, |(position, _)| position));
        }
        sys::reap(child, true).unwrap().unwrap()
    }

    #[test]
    fn kernel_denies_calls_outside_seccomp_profile() {
        let kept = tare_model::launch::DOCKER_CAPABILITIES.map(str::to_owned);
        let expected = [
            (libc::SYS_getppid, 0),
            (libc::SYS_mount, libc::EPERM),
            (libc::SYS_kexec_load, libc::EPERM),
            (libc::SYS_perf_event_open, libc::EPERM),
            (libc::SYS_unshare, libc::EPERM),
            (libc::SYS_clone3, libc::ENOSYS),
            // Newer than the list: number 451, cachestat.
            (451, libc::ENOSYS),
        ];
        for spec_allow in [false, true] {
            let filter = Filter::new(
                Seccomp::DockerDefault,
                DockerRelease::V20,
                spec_allow,
                &kept,
            );
            let wrong = first_wrong(&filter.unwrap().unwrap(), &expected);
            assert_eq!(wrong, 0, "the call at this position, from 1: {expected:?}");
        }
    }

    #[test]
    fn seccomp_off_creates_no_filter() {
        let none = Filter::new(Seccomp::Off, DockerRelease::V29, false, &[]);
        assert!(none.unwrap().is_none());
    }
}
