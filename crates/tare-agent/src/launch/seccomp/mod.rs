//! The system-call filter: a list as data ([`profile`]), assembled ([`bpf`]), loaded.
//!
//! No seccomp library: compiling Docker's list with libseccomp takes 21 to 28 ms, most of a container's
//! start; here it takes well under a millisecond, so the start-up cost that a measurement shows is the
//! mechanism's and not the compiler's.

mod bpf;
mod profile;
mod table;

use tare_model::launch::{LaunchError, Seccomp, SeccompReport};

use super::{refused, sys};

/// `SECCOMP_FILTER_FLAG_SPEC_ALLOW` of include/uapi/linux/seccomp.h.
const SPEC_ALLOW: libc::c_ulong = 1 << 2;

/// A filter, ready to be loaded.
#[derive(Debug)]
pub(super) struct Filter {
    program: Vec<bpf::Instruction>,
    flags: libc::c_ulong,
    skipped: Vec<String>,
}

impl Filter {
    /// Puts the filter together; `None` when none is asked for. `capabilities` are the ones kept.
    pub(super) fn new(
        which: Seccomp,
        spec_allow: bool,
        capabilities: &[String],
    ) -> Result<Option<Self>, LaunchError> {
        let text = match which {
            Seccomp::Off => return Ok(None),
            Seccomp::DockerDefault => profile::DOCKER_DEFAULT,
        };
        let error = |problem: String| LaunchError {
            step: "assemble the system-call filter".into(),
            problem,
            errno: None,
            hint: Some("use seccomp = \"off\"".into()),
        };
        let kernel = sys::kernel_release();
        let machine = profile::Machine {
            capabilities,
            kernel: &kernel,
        };
        let profile = profile::read(text, machine).map_err(|wrong| {
            error(format!(
                "line {} of the list: {}",
                wrong.line, wrong.problem
            ))
        })?;
        let default = profile::Action::Errno(libc::EPERM as u16);
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

    /// What a report says of it.
    pub(super) fn report(&self) -> SeccompReport {
        SeccompReport {
            instructions: self.program.len(),
            skipped: self.skipped.clone(),
        }
    }

    /// Loads it for this process and all that it will start.
    pub(super) fn load(&self) -> Result<(), LaunchError> {
        sys::load_filter(&self.program, self.flags).map_err(|error| {
            let mut refusal = refused("load the system-call filter")(error);
            if refusal.errno == Some(libc::EACCES) {
                refusal.hint = Some("without CAP_SYS_ADMIN set no_new_privs = true".into());
            }
            refusal
        })
    }
}
