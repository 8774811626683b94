//! `environment`: reads and writes environment variables, and queries the locale.
//!
//! Inside the timed regions: `environment.get.time`, one `getenv` of the last of 32 variables that the probe has set;
//! `environment.all.time`, copying all variables; `environment.set.time`, one `setenv` of an existing variable;
//! `environment.locale.time`, one `setlocale` that only queries. All of this runs in the C library, without a system
//! call.
//! Outside: setting the 32 variables, and removing them. On Windows they are the system's: `GetEnvironmentVariable`,
//! a copy of all, `SetEnvironmentVariable`, and `GetUserDefaultLocaleName`.
//! The arm's variables are cleared first and restored afterwards: otherwise an engine that sets more of them would
//! look slower. For the same reason the heap is brought into a fixed state first: the number of variables at the
//! start decides how full the allocator's groups are. If copying all variables fills one more group and empties it
//! again, each copy fetches the group from the kernel and returns it.
//! Known bias: the library is the agent's (musl), the same everywhere; a program with glibc has another.
//! Correspondence: "Get one Environment Variable", "Get all Environment Variable" and "Get current Cultureinfo" of a
//! published comparison of containers (2019).
//! Source: POSIX, getenv(3), setlocale(3).

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "environment": "reading one variable, all of them, writing one, and asking for the locale";
    revision 2, cut LOOP
}

super::by_system!("getenv of the C library");

/// Variables set during the measurement.
#[cfg(any(target_os = "linux", windows))]
const VARIABLES: usize = 32;

#[cfg(any(target_os = "linux", windows))]
fn lost() -> ProbeError {
    let problem = "a variable is not what was set".to_owned();
    ProbeError::Failed(tare_model::Failure::Void(problem))
}

#[cfg(windows)]
mod windows {
    use std::ffi::{OsStr, OsString};
    use std::hint::black_box;
    use std::os::windows::ffi::OsStrExt;

    use super::{VARIABLES, lost};
    use crate::meter::{Meter, ProbeError};
    use crate::windows::wide;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetEnvironmentVariableW(name: *const u16, value: *mut u16, length: u32) -> u32;
        fn SetEnvironmentVariableW(name: *const u16, value: *const u16) -> i32;
        fn GetUserDefaultLocaleName(name: *mut u16, length: i32) -> i32;
    }

    /// Sets a variable, or removes it.
    fn set(name: &OsStr, value: Option<&OsStr>) {
        let text = |text: &OsStr| text.encode_wide().chain([0]).collect::<Vec<u16>>();
        let (name, value) = (text(name), value.map(text));
        let value = value
            .as_ref()
            .map_or(std::ptr::null(), |value| value.as_ptr());
        // SAFETY: both texts end with a zero, and a null pointer removes the variable. The system may keep its hidden
        // variables, whose names begin with `=`.
        let _ = unsafe { SetEnvironmentVariableW(name.as_ptr(), value) };
    }

    /// The measured variables; dropping it restores the arm's.
    struct MeasuredVariables {
        before: Vec<(OsString, OsString)>,
    }

    impl MeasuredVariables {
        fn set() -> Self {
            let before: Vec<_> = std::env::vars_os().collect();
            for (name, _) in &before {
                set(name, None);
            }
            for number in 0..VARIABLES {
                let name = format!("TARE_VARIABLE_{number:02}");
                set(name.as_ref(), Some("a value of some length".as_ref()));
            }
            Self { before }
        }
    }

    impl Drop for MeasuredVariables {
        fn drop(&mut self) {
            for (name, _) in std::env::vars_os() {
                set(&name, None);
            }
            for (name, value) in &self.before {
                set(name, Some(value));
            }
        }
    }

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        const ROOM: u16 = 256;
        let _ours = MeasuredVariables::set();
        // Includes those that the system keeps.
        let all = std::env::vars_os().count();
        let last = wide("TARE_VARIABLE_31");
        let mut text = [0u16; ROOM as usize];
        meter.loops("environment.get.time", 0.25, |times| {
            for _ in 0..times {
                // SAFETY: the name ends with a zero, and the buffer has the given length.
                let length = unsafe {
                    GetEnvironmentVariableW(
                        black_box(last.as_ptr()),
                        text.as_mut_ptr(),
                        ROOM.into(),
                    )
                };
                if length == 0 {
                    return Err(lost());
                }
            }
            Ok(())
        })?;
        meter.loops("environment.all.time", 0.25, |times| {
            for _ in 0..times {
                if black_box(std::env::vars_os().count()) != all {
                    return Err(lost());
                }
            }
            Ok(())
        })?;
        if all != VARIABLES {
            meter.note(format!("{all} variables: the system keeps some of its own"));
        }
        let value = wide("a value of some length");
        meter.loops("environment.set.time", 0.25, |times| {
            for _ in 0..times {
                // SAFETY: both texts end with a zero.
                if unsafe { SetEnvironmentVariableW(last.as_ptr(), black_box(value.as_ptr())) } == 0
                {
                    return Err(ProbeError::last("SetEnvironmentVariable"));
                }
            }
            Ok(())
        })?;
        meter.loops("environment.locale.time", 0.25, |times| {
            for _ in 0..times {
                // SAFETY: the buffer has the given length.
                let length = unsafe { GetUserDefaultLocaleName(text.as_mut_ptr(), ROOM.into()) };
                if black_box(length) == 0 {
                    return Err(ProbeError::last("GetUserDefaultLocaleName"));
                }
            }
            Ok(())
        })
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::hint::black_box;

    use super::{VARIABLES, lost};
    use crate::meter::{Meter, ProbeError};

    /// The measured variables; dropping it restores the arm's.
    struct MeasuredVariables {
        before: Vec<(OsString, OsString)>,
    }

    impl MeasuredVariables {
        fn set() -> Self {
            let before: Vec<_> = std::env::vars_os().collect();
            for (name, _) in &before {
                // SAFETY: a worker runs its probe on its only thread.
                unsafe { std::env::remove_var(name) };
            }
            for number in 0..VARIABLES {
                let name = format!("TARE_VARIABLE_{number:02}");
                // SAFETY: this is the worker's only thread.
                unsafe { std::env::set_var(name, "a value of some length") };
            }
            Self { before }
        }
    }

    /// A copied variable: name and value.
    type Copied = (OsString, OsString);

    /// Heap slots for several copies of all variables, every second one free: a copy fits between the slots that
    /// stay, so that the allocator never fetches or returns a group for it.
    struct Room {
        _variables: Vec<Option<Copied>>,
        _lists: Vec<Option<Vec<Copied>>>,
    }

    impl Room {
        /// Number of copies to leave room for, including those that a growing list leaves behind.
        const COPIES: usize = 8;

        fn make() -> Self {
            let mut variables: Vec<Option<Copied>> = (0..Self::COPIES)
                .flat_map(|_| std::env::vars_os())
                .map(Some)
                .collect();
            // The capacities that a list of all variables grows through.
            let lengths = (0..=6).map(|power| 1usize << power);
            let mut lists: Vec<Option<Vec<Copied>>> = lengths
                .flat_map(|length| (0..Self::COPIES).map(move |_| length))
                .map(|length| Some(Vec::with_capacity(length)))
                .collect();
            for place in variables.iter_mut().step_by(2) {
                *place = None;
            }
            for place in lists.iter_mut().step_by(2) {
                *place = None;
            }
            Self {
                _variables: variables,
                _lists: lists,
            }
        }
    }

    impl Drop for MeasuredVariables {
        fn drop(&mut self) {
            for (name, _) in std::env::vars_os() {
                // SAFETY: a worker runs its probe on its only thread.
                unsafe { std::env::remove_var(name) };
            }
            for (name, value) in &self.before {
                // SAFETY: this is the worker's only thread.
                unsafe { std::env::set_var(name, value) };
            }
        }
    }

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        let _ours = MeasuredVariables::set();
        let _room = Room::make();
        let last = c"TARE_VARIABLE_31";
        meter.loops("environment.get.time", 0.25, |times| {
            for _ in 0..times {
                // SAFETY: the name ends with a zero byte, and no other thread changes the variables.
                if unsafe { libc::getenv(black_box(last.as_ptr())) }.is_null() {
                    return Err(lost());
                }
            }
            Ok(())
        })?;
        meter.loops("environment.all.time", 0.25, |times| {
            for _ in 0..times {
                if black_box(std::env::vars_os().count()) != VARIABLES {
                    return Err(lost());
                }
            }
            Ok(())
        })?;
        meter.loops("environment.set.time", 0.25, |times| {
            for _ in 0..times {
                let value = black_box(c"a value of some length");
                // SAFETY: both texts end with a zero byte, and this thread is the only one.
                if unsafe { libc::setenv(last.as_ptr(), value.as_ptr(), 1) } != 0 {
                    return Err(ProbeError::last("setenv"));
                }
            }
            Ok(())
        })?;
        meter.loops("environment.locale.time", 0.25, |times| {
            for _ in 0..times {
                // SAFETY: a null pointer queries the current locale and changes nothing.
                let name = unsafe { libc::setlocale(libc::LC_ALL, std::ptr::null()) };
                if black_box(name).is_null() {
                    return Err(lost());
                }
            }
            Ok(())
        })
    }
}
