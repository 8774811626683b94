//! Drops capabilities: the bounding set first, then the thread's sets.
//!
//! The bounding set limits what a program executed by root gets. The inheritable and ambient sets are emptied, as
//! Docker does since 20.10.14, so that after `execve` the set is exactly the bounding set.
//! Limits: file capabilities are not checked; they stay within the bounding set anyway.

use std::fs;

use tare_model::launch::{CAPABILITIES, LaunchError, Missing, capability_number};

use super::{refused, sys};

/// Returns the mask under a name of /proc/self/status, for example `CapBnd`.
fn mask_of(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| {
        let digits = line.strip_prefix(name)?.strip_prefix(':')?;
        u64::from_str_radix(digits.trim(), 16).ok()
    })
}

/// Returns the mask of these names.
fn mask(names: &[String]) -> Result<u64, LaunchError> {
    names.iter().try_fold(0u64, |mask, name| {
        capability_number(name)
            .map(|number| mask | 1 << number)
            .ok_or_else(|| LaunchError {
                step: "read the capabilities".into(),
                problem: format!("`{}` is no capability", name.escape_debug()),
                errno: None,
                hint: Some("names are written as CAP_NET_RAW".into()),
            })
    })
}

/// Returns the names in a mask, without numbers that have no name yet.
fn names(mask: u64) -> Vec<String> {
    CAPABILITIES
        .iter()
        .enumerate()
        .filter(|(number, _)| mask & (1 << number) != 0)
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

/// Returns the capabilities of the first process inside before any are dropped: in a new user namespace all that the
/// kernel knows, else those of this process that it may pass on.
fn available(has_user_namespace: bool) -> u64 {
    let every = u64::MAX >> (64 - CAPABILITIES.len());
    if has_user_namespace {
        let last = fs::read_to_string("/proc/sys/kernel/cap_last_cap")
            .ok()
            .and_then(|text| text.trim().parse::<u32>().ok())
            .unwrap_or(40);
        return every & (u64::MAX >> (63 - last.min(63)));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| mask_of(&status, name).unwrap_or(every);
    of("CapBnd") & of("CapPrm")
}

/// Returns the names to keep: those requested that are available, or all for `None`. Unavailable ones are added to
/// `missing`.
pub(super) fn kept(
    asked: Option<&[String]>,
    has_user_namespace: bool,
    missing: &mut Vec<Missing>,
) -> Result<Vec<String>, LaunchError> {
    let have = available(has_user_namespace);
    let Some(asked) = asked else {
        return Ok(names(have));
    };
    let wanted = mask(asked)?;
    for name in names(wanted & !have) {
        missing.push(Missing {
            what: name,
            why: "the launcher itself does not have it".into(),
        });
    }
    Ok(names(wanted & have))
}

/// Permanently drops everything but these.
pub(super) fn keep_only(kept: &[String]) -> Result<(), LaunchError> {
    let keep = mask(kept)?;
    let drop_error = refused("drop capabilities");
    for number in 0..64u32 {
        if keep & (1 << number) != 0 {
            continue;
        }
        match sys::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number)) {
            Ok(_) => {}
            // Numbers above the kernel's last capability.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(drop_error(error)),
        }
    }
    // Kernels before 4.3 have no ambient set to empty.
    let _ = sys::prctl(
        libc::PR_CAP_AMBIENT,
        libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong,
    );
    sys::set_capabilities(keep, keep, 0).map_err(drop_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_names_are_each_others_inverse() {
        let some = vec!["CAP_CHOWN".to_owned(), "CAP_BPF".to_owned()];
        assert_eq!(mask(&some).unwrap(), 1 | 1 << 39);
        assert_eq!(names(1 | 1 << 39 | 1 << 60), some);
        assert!(mask(&["CAP_NONSENSE".into()]).is_err());
    }

    #[test]
    fn a_mask_is_found_by_its_whole_name() {
        let status = "CapInh:\t0000000000000000\nCapBnd:\t00000000a80425fb\n";
        assert_eq!(mask_of(status, "CapBnd"), Some(0xa804_25fb));
        assert_eq!(mask_of(status, "Cap"), None);
    }
}
