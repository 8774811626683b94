//! Tabulates which drivers passed the contract test in a run, which skipped it, and why.
//!
//! Every driver has the same contract test and skips it if its engine is missing, so a green run says nothing about
//! those. The tests write lines into a file, because the stdout of passing tests is not shown.
//! Limits: does not list drivers that no test names.

/// The variable that names the file.
pub(crate) const VARIABLE: &str = "TARE_CONTRACT_TABLE";

/// Summarises the lines in their order: `contract: host ran · runsc skipped: it is not built`.
pub(crate) fn summary(lines: &str) -> String {
    let mut drivers: Vec<Driver> = Vec::new();
    for (name, what) in lines.lines().filter_map(|line| line.split_once('\t')) {
        let known = drivers.iter().position(|driver| driver.name == name);
        let place = known.unwrap_or_else(|| {
            drivers.push(Driver {
                name: name.to_owned(),
                ..Driver::default()
            });
            drivers.len() - 1
        });
        let driver = &mut drivers[place];
        match what {
            "begun" => driver.n_begun += 1,
            "ran" => driver.n_kept += 1,
            other => driver.skipped = Some(other.to_owned()),
        }
    }
    if drivers.is_empty() {
        return "contract: no driver was tried".to_owned();
    }
    let shown: Vec<String> = drivers.iter().map(Driver::summary).collect();
    format!("contract: {}", shown.join(" · "))
}

#[derive(Default)]
struct Driver {
    name: String,
    n_begun: u32,
    n_kept: u32,
    skipped: Option<String>,
}

impl Driver {
    fn summary(&self) -> String {
        let Self { name, skipped, .. } = self;
        match skipped {
            _ if self.n_kept < self.n_begun => format!("{name} FAILED"),
            Some(why) if self.n_begun == 0 => format!("{name} {why}"),
            _ => format!("{name} ran"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_ran_failed_or_was_skipped_with_its_reason() {
        let lines = "host\tbegun\nhost\tran\nrunsc\tskipped: it is not built\n\
                     docker\tbegun\nhost\tbegun\nhost\tran\n";
        assert_eq!(
            summary(lines),
            "contract: host ran · runsc skipped: it is not built · docker FAILED"
        );
        assert_eq!(summary(""), "contract: no driver was tried");
    }
}
