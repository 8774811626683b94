//! Collects the fingerprint of an arm, as seen from inside it.
//!
//! Every fact is the system's text, trimmed, under a dotted name. One that could not be read is recorded as
//! `unreadable.<name>` with the system's error, so that "no such limit" and "could not look" are distinguished. Read
//! outside every trial.
//! Limits: does not see what only the host knows (the image's digest, the engine's version), and believes whatever an
//! environment fakes for its processes.

use std::collections::BTreeMap;
use std::io;
#[cfg(any(target_os = "linux", test))]
use std::path::Path;

use tare_model::Facts;
use tare_model::fact;
use tare_model::tool::ToolQuestion;

use crate::build;
use crate::meter::Timer;

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod process;
mod tools;
#[cfg(windows)]
mod windows;

/// Longest text of one fact, bytes: facts are for reading, not for storing files.
const TEXT_LIMIT: usize = 4 << 10;

/// Facts by name.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    facts: BTreeMap<String, String>,
}

impl Collector {
    /// Records a fact.
    pub(crate) fn set(&mut self, name: &str, value: impl AsRef<str>) {
        let mut value = value.as_ref().trim().replace('\0', " ");
        if value.len() > TEXT_LIMIT {
            let end = (0..=TEXT_LIMIT)
                .rev()
                .find(|end| value.is_char_boundary(*end))
                .unwrap_or(0);
            value.truncate(end);
            value.push('…');
        }
        self.facts.insert(name.to_owned(), value);
    }

    /// Records why a fact could not be read.
    pub(crate) fn unreadable(&mut self, name: &str, error: &io::Error) {
        self.set(&fact::name_for(fact::UNREADABLE, name), error.to_string());
    }

    /// Records the value of `read`, or its error.
    pub(crate) fn try_set(&mut self, name: &str, read: io::Result<impl AsRef<str>>) {
        match read {
            Ok(value) => self.set(name, value),
            Err(error) => self.unreadable(name, &error),
        }
    }

    /// Records a whole file.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn file(&mut self, name: &str, path: impl AsRef<Path>) {
        self.try_set(name, std::fs::read_to_string(path));
    }
}

/// Collects the facts; `paths` are those whose mount is wanted, `tools` the programs to look up.
pub fn collect(paths: &[String], tools: &[ToolQuestion]) -> Facts {
    let mut facts = Collector::default();
    facts.set(fact::OS, std::env::consts::OS);
    facts.set(fact::MACHINE, std::env::consts::ARCH);
    facts.set(fact::AGENT_BUILD, build::id());
    match std::thread::available_parallelism() {
        Ok(count) => facts.set(fact::CPU_USABLE, count.to_string()),
        Err(error) => facts.unreadable(fact::CPU_USABLE, &error),
    }
    let timer = Timer::measure();
    facts.set(fact::TIMER_COST, timer.cost_ns.to_string());
    if timer.resolution_ns.is_finite() {
        facts.set(fact::TIMER_RESOLUTION, timer.resolution_ns.to_string());
    }
    let environment = std::env::vars_os();
    let bytes: usize = environment
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    facts.set(fact::ENVIRONMENT_BYTES, bytes.to_string());
    #[cfg(target_os = "linux")]
    linux::collect(&mut facts, paths);
    #[cfg(windows)]
    windows::collect(&mut facts, paths);
    #[cfg(not(any(target_os = "linux", windows)))]
    for path in paths {
        facts.unreadable(
            &fact::name_for(fact::MOUNT, path),
            &io::Error::from(io::ErrorKind::Unsupported),
        );
    }
    tools::collect(&mut facts, tools);
    facts.facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_fact_records_reason_under_its_name() {
        let mut facts = Collector::default();
        facts.file("a.b", "/nonexistent/file");
        assert!(!facts.facts.contains_key("a.b"));
        assert!(facts.facts["unreadable.a.b"].contains("o such file"));
    }

    #[test]
    fn a_text_too_long_is_cut_at_a_character() {
        let mut facts = Collector::default();
        facts.set("long", "é".repeat(TEXT_LIMIT));
        assert!(facts.facts["long"].len() <= TEXT_LIMIT + '…'.len_utf8());
        assert!(facts.facts["long"].ends_with('…'));
    }
}
