//! Lists of allowed syscalls as data: the notation, and Docker's default lists.
//!
//! The notation is described in the header of `docker-20.10.txt`. Conditions on the machine and on the kept
//! capabilities are evaluated here; conditions on a call's arguments are left to the code that builds the filter. The
//! built-in container and the OCI runtimes' specification read the same lists, so both filter the same syscalls.
//! Limits: does not know the numbers of syscalls, or which names a machine lacks.

use crate::launch::DockerRelease;

/// Returns the default list of a Docker release.
pub fn of_docker(release: DockerRelease) -> &'static str {
    match release {
        DockerRelease::V20 => include_str!("call_list/docker-20.10.txt"),
        DockerRelease::V28 => include_str!("call_list/docker-28.txt"),
        DockerRelease::V29 => include_str!("call_list/docker-29.txt"),
    }
}

/// Action of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// The call is allowed.
    Allow,
    /// The call fails with this error number.
    Errno(u16),
}

/// A condition on an argument: all 64 bits, masked, equal a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentTest {
    /// Position of the argument, 0 to 5.
    pub index: u32,
    /// Bits to compare.
    pub mask: u64,
    /// Their required value.
    pub value: u64,
}

/// Properties of the machine that decide a list's conditions.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// Names of the kept capabilities.
    pub capabilities: &'a [String],
    /// The kernel release.
    pub kernel: &'a str,
}

/// An error in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListError {
    /// The line number, from 1.
    pub line: usize,
    /// Description of the error.
    pub problem: String,
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Action for its calls.
    pub action: Action,
    /// Conditions that must all hold.
    pub tests: Vec<ArgumentTest>,
    /// Whether its conditions on the machine hold.
    pub applies: bool,
    /// Its calls, separated by spaces.
    pub names: &'a str,
}

fn version(text: &str) -> (u32, u32) {
    let mut parts = text
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn whole(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn argument_test(text: &str) -> Option<ArgumentTest> {
    let (left, value) = text.strip_prefix("arg")?.split_once('=')?;
    let (index, mask) = match left.split_once('&') {
        Some((index, mask)) => (index, whole(mask)?),
        None => (left, u64::MAX),
    };
    Some(ArgumentTest {
        index: index.parse().ok().filter(|index| *index < 6)?,
        mask,
        value: whole(value)?,
    })
}

impl<'a> Line<'a> {
    fn read(text: &'a str, machine: Machine<'_>) -> Result<Self, String> {
        let (left, names) = text.split_once(':').ok_or("no colon")?;
        let mut words = left.split_whitespace();
        let action = match words.next() {
            Some("allow") => Action::Allow,
            Some(word) => word
                .strip_prefix("errno=")
                .and_then(|number| number.parse().ok())
                .map(Action::Errno)
                .ok_or_else(|| format!("`{word}` is no action"))?,
            None => return Err("no action before the colon".into()),
        };
        let mut line = Line {
            action,
            tests: Vec::new(),
            applies: true,
            names,
        };
        for word in words {
            let has = |name: &str| machine.capabilities.iter().any(|kept| kept == name);
            if let Some(test) = argument_test(word) {
                line.tests.push(test);
                continue;
            }
            line.applies &= match word.split_once('=') {
                Some(("arch", name)) => name == std::env::consts::ARCH,
                Some(("cap", name)) => has(name),
                Some(("nocap", name)) => !has(name),
                Some(("kernel", least)) => version(machine.kernel) >= version(least),
                _ => return Err(format!("`{word}` is no condition")),
            };
        }
        Ok(line)
    }
}

/// Parses a list and evaluates its conditions on the machine.
///
/// # Errors
/// Returns the first line that cannot be parsed.
pub fn read<'a>(text: &'a str, machine: Machine<'_>) -> Result<Vec<Line<'a>>, ListError> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            let read = Line::read(line, machine);
            lines.push(read.map_err(|problem| ListError {
                line: number,
                problem,
            })?);
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_call_lists_parse_for_any_capabilities() {
        let all = crate::launch::CAPABILITIES.map(str::to_owned);
        for (_, release) in DockerRelease::ALL {
            for capabilities in [&all[..], &[]] {
                for kernel in ["3.10", "99.0"] {
                    let machine = Machine {
                        capabilities,
                        kernel,
                    };
                    let lines = read(of_docker(release), machine).unwrap();
                    assert!(lines.iter().filter(|line| line.applies).count() > 3);
                }
            }
        }
    }

    #[test]
    fn an_error_names_its_line() {
        let machine = Machine {
            capabilities: &[],
            kernel: "6.1",
        };
        for text in [
            "\nallow getppid",
            "\nallwo : getppid",
            "\nallow arg9=1 : getppid",
            "\nallow kernal=4 : getppid",
        ] {
            assert_eq!(read(text, machine).unwrap_err().line, 2, "{text}");
        }
    }
}
