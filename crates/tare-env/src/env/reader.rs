//! Reads an arm's settings by their table; every error names the setting and what it takes.
//!
//! Contains the checks that drivers share. How settings go together is the driver's concern.
//! Limits: an engine may still refuse a setting.

use crate::env::prelude::*;

use tare_model::{Value, whole_part};

use super::common::{BINDS, CAP_ADD, CAP_DROP, CPUSET, FILES, PACKAGES, PROGRAMS, ULIMIT};
use super::grammar::{Ulimit, parse_bind, parse_size, parse_ulimit, plain_capability};
use super::setting::{Between, Takes};
use crate::suggest;

enum Read {
    Flag(bool),
    Text(String),
    List(Vec<String>),
    Size(u64),
    Number(f64),
}

/// The settings, each parsed by its row.
pub(crate) struct Reader<'a> {
    /// By current name; with the name that was used.
    read: BTreeMap<&'static str, (&'a str, Read)>,
    /// All settings of the driver.
    table: &'static [Setting],
}

impl<'a> Reader<'a> {
    /// Parses the settings of an arm of `driver`.
    ///
    /// # Errors
    /// A name that is not in the table, with a suggestion; a value that its row does not take; a missing required
    /// setting.
    pub(super) fn new(
        driver: &str,
        table: &'static [Setting],
        params: &'a Params,
    ) -> Result<Self, SettingsError> {
        let mut read = BTreeMap::new();
        for (said, value) in &params.0 {
            let is_it =
                |row: &&Setting| row.name == said.as_str() || row.was.contains(&said.as_str());
            let row = table.iter().find(is_it).ok_or_else(|| {
                let problem = format!("`{driver}` has no setting `{}`", printable(said));
                let names = table.iter().map(|row| row.name);
                SettingsError::new(said, problem, suggest::hint(said, names))
            })?;
            let value = read_value(row, value).map_err(|shown| {
                let problem = format!("`{said}` cannot be `{}`", printable(&shown));
                SettingsError::new(said, problem, hint(row, &shown))
            })?;
            if read.insert(row.name, (said.as_str(), value)).is_some() {
                let problem = format!("`{said}` and `{}` are one setting", row.name);
                return Err(SettingsError::new(
                    said,
                    problem,
                    "leave one of them out".into(),
                ));
            }
        }
        let missing = |row: &&Setting| row.default.is_empty() && !read.contains_key(row.name);
        match table.iter().find(missing) {
            None => Ok(Self { read, table }),
            Some(row) => {
                let problem = format!("`{driver}` needs `{}`", row.name);
                let hint = format!("it takes {}", row.takes);
                Err(SettingsError::new(row.name, problem, hint))
            }
        }
    }

    fn get(&self, row: &Setting) -> Option<&Read> {
        self.read.get(row.name).map(|(_, read)| read)
    }

    pub(super) fn is_given(&self, row: &Setting) -> bool {
        self.read.contains_key(row.name)
    }

    /// Returns the error that a setting contradicts others, under the name that was used.
    pub(super) fn refused(&self, row: &Setting, problem: &str, hint: &str) -> SettingsError {
        let shown = self.read.get(row.name).map_or(row.name, |(said, _)| said);
        SettingsError::new(shown, problem.to_owned(), hint.to_owned())
    }

    /// Refuses settings that have no effect together with `row`, if that is set: all except `may_be`.
    pub(super) fn alone(
        &self,
        row: &Setting,
        may_be: &[Setting],
        why: &str,
        hint: &str,
    ) -> Result<(), SettingsError> {
        let is_other = |one: &&Setting| {
            self.is_given(one) && may_be.iter().all(|known| known.name != one.name)
        };
        match self
            .table
            .iter()
            .find(is_other)
            .filter(|_| self.is_given(row))
        {
            None => Ok(()),
            Some(one) => {
                let (name, beside) = (one.name, row.name);
                let problem = format!("`{name}` has no effect with `{beside}`: {why}");
                Err(self.refused(one, &problem, hint))
            }
        }
    }

    /// Refuses the first contradiction that holds. Each has a setting, the problem with SELF for its name, and a
    /// hint.
    pub(super) fn consistent(
        &self,
        contradictions: &[(bool, Setting, (&str, &str))],
    ) -> Result<(), SettingsError> {
        let found = contradictions.iter().find(|(is_so, ..)| *is_so);
        found.map_or(Ok(()), |(_, row, (problem, hint))| {
            Err(self.refused(row, &problem.replace("SELF", row.name), hint))
        })
    }

    pub(super) fn flag(&self, row: &Setting) -> Option<bool> {
        match self.get(row)? {
            Read::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn is_on(&self, row: &Setting) -> bool {
        self.flag(row) == Some(true)
    }

    pub(super) fn text(&self, row: &Setting) -> Option<&str> {
        match self.get(row)? {
            Read::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn owned(&self, row: &Setting) -> Option<String> {
        self.text(row).map(str::to_owned)
    }

    /// Returns the meaning of the word.
    pub(super) fn word<T: Copy>(&self, row: &Setting, table: &[(&str, T)]) -> Option<T> {
        let shown = self.text(row)?;
        let found = table.iter().find(|(word, _)| *word == shown);
        found.map(|(_, meant)| *meant)
    }

    pub(super) fn list(&self, row: &Setting) -> &[String] {
        match self.get(row) {
            Some(Read::List(items)) => items,
            _ => &[],
        }
    }

    /// Whether a list contains one of these words together with others.
    pub(super) fn is_mixed(&self, row: &Setting, alone: &[&str]) -> bool {
        let list = self.list(row);
        list.len() > 1 && list.iter().any(|item| alone.contains(&item.as_str()))
    }

    pub(super) fn size(&self, row: &Setting) -> Option<u64> {
        match self.get(row)? {
            Read::Size(bytes) => Some(*bytes),
            _ => None,
        }
    }

    pub(super) fn number(&self, row: &Setting) -> Option<f64> {
        match self.get(row)? {
            Read::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the number of a row that takes whole numbers.
    pub(super) fn whole<T: TryFrom<u64>>(&self, row: &Setting) -> Option<T> {
        T::try_from(whole_part(self.number(row)?)).ok()
    }

    /// Returns the host files to pack.
    pub(super) fn wanted(&self) -> FileRequest {
        FileRequest {
            programs: self.list(&PROGRAMS).to_vec(),
            packages: self.list(&PACKAGES).to_vec(),
            files: self.list(&FILES).to_vec(),
            told_by: Vec::new(),
        }
    }

    /// Returns the CPUs that may be used, in the kernel's format.
    pub(super) fn cpuset(&self) -> Option<String> {
        let list = self.list(&CPUSET);
        (!list.is_empty()).then(|| list.join(","))
    }

    pub(super) fn binds(&self) -> Vec<Bind> {
        let binds = self.list(&BINDS).iter();
        binds.filter_map(|bind| parse_bind(bind)).collect()
    }

    pub(super) fn ulimits(&self) -> Vec<Ulimit> {
        let limits = self.list(&ULIMIT).iter();
        limits.filter_map(|limit| parse_ulimit(limit)).collect()
    }

    /// Returns the capabilities to add and to drop.
    pub(super) fn capabilities(&self) -> [Vec<String>; 2] {
        let plain = |row: &Setting| self.list(row).iter().map(|it| plain_capability(it));
        [CAP_ADD, CAP_DROP].map(|row| plain(&row).collect())
    }
}

/// Returns a hint: the word that may have been meant, or what the setting takes.
fn hint(row: &Setting, said: &str) -> String {
    let (Takes::Text(form) | Takes::List(form, _)) = row.takes else {
        return format!("it takes {}", row.takes);
    };
    let name = said.split_once('=').map_or(said, |(name, _)| name);
    let meant = form
        .meant(name)
        .or_else(|| form.meant(&plain_capability(name)));
    meant.map_or_else(
        || format!("it takes {form}"),
        |near| format!("did you mean `{near}`?"),
    )
}

/// Returns a text; a whole number is converted to one.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Parses a value by its row; the error is the wrong part.
fn read_value(row: &Setting, value: &Value) -> Result<Read, String> {
    let number = || match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let read = match row.takes {
        Takes::Flag => match value {
            Value::Bool(flag) => Some(Read::Flag(*flag)),
            _ => None,
        },
        Takes::Text(form) => {
            let today = |text: String| {
                let old = row.words.iter().find(|(old, _)| *old == text);
                old.map_or(text, |(_, now)| (*now).to_owned())
            };
            let shown = text(value).map(today).filter(|text| form.has(text));
            shown.map(Read::Text)
        }
        Takes::List(form, between) => {
            let items = items(value, between)?;
            if let Some(wrong) = items.iter().find(|item| !form.has(item)) {
                return Err(wrong.clone());
            }
            Some(Read::List(items))
        }
        Takes::Size(least) => {
            let bytes = match value {
                Value::Int(bytes) => u64::try_from(*bytes).ok(),
                Value::Text(text) => parse_size(text),
                _ => None,
            };
            // Engines and emulators use signed numbers.
            let fits = |bytes: &u64| *bytes >= least && i64::try_from(*bytes).is_ok();
            bytes.filter(fits).map(Read::Size)
        }
        Takes::Number(least, most, _) => number()
            .filter(|number| (least..=most).contains(number))
            .map(Read::Number),
        Takes::Whole(least, most, _) => number()
            .filter(|number| {
                number.fract() == 0.0 && (f64::from(least)..=f64::from(most)).contains(number)
            })
            .map(Read::Number),
    };
    read.ok_or_else(|| value.to_string())
}

fn items(value: &Value, between: Between) -> Result<Vec<String>, String> {
    if let Value::List(values) = value {
        let item = |item: &Value| text(item).ok_or_else(|| item.to_string());
        return values.iter().map(item).collect();
    }
    let text = text(value).ok_or_else(|| value.to_string())?;
    Ok(match between {
        Between::Commas => text.split(',').map(|item| item.trim().to_owned()).collect(),
        Between::Spaces => text.split_whitespace().map(str::to_owned).collect(),
        Between::Nothing => vec![text],
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::super::common::{CPUS, MEMORY, NO_NEW_PRIVILEGES, SECCOMP};
    use super::*;

    /// Returns a single setting.
    pub(crate) fn with(name: &str, value: impl Into<Value>) -> Params {
        Params::new().with(name, value)
    }

    /// Asserts that `read` refuses a value under its setting's name, with a hint, and without terminal control
    /// characters.
    pub(crate) fn assert_refuses<S>(
        read: impl Fn(&Params) -> Result<S, SettingsError>,
        name: &str,
        value: impl Into<Value>,
    ) {
        let value = value.into();
        let Err(error) = read(&with(name, value.clone())) else {
            panic!("`{name}` is read from {value:?}");
        };
        assert_eq!(error.setting, name, "{value:?}");
        assert!(error.hint.is_some(), "{name}: {value:?}");
        assert!(!error.problem.contains('\u{1b}'), "{value:?}");
    }

    /// Asserts that `read` refuses every value listed under the name of its setting.
    pub(crate) fn assert_refused<S>(
        read: impl Fn(&Params) -> Result<S, SettingsError>,
        values: &serde_json::Value,
    ) {
        let values: BTreeMap<String, Vec<Value>> = serde_json::from_value(values.clone()).unwrap();
        for (name, values) in values {
            for value in values {
                assert_refuses(&read, &name, value);
            }
        }
    }

    static TABLE: &[Setting] = &tare_model::rows! {
        CPUS, CPUSET, MEMORY, NO_NEW_PRIVILEGES, SECCOMP, CAP_ADD, ULIMIT,
    };

    fn refused(name: &str, value: impl Into<Value>) -> SettingsError {
        Reader::new("x", TABLE, &with(name, value))
            .err()
            .expect(name)
    }

    #[test]
    fn processors_are_a_number_or_its_text() {
        for (value, expected) in [
            (Value::Float(0.5), 0.5),
            ("0.5".into(), 0.5),
            (" 2 ".into(), 2.0),
            (Value::Int(3), 3.0),
        ] {
            let params = with("cpus", value);
            let read = Reader::new("x", TABLE, &params).unwrap();
            assert_eq!(read.number(&CPUS), Some(expected));
        }
        let values: [Value; 6] = [
            0i64.into(),
            f64::NAN.into(),
            "-1".into(),
            "inf".into(),
            "half".into(),
            true.into(),
        ];
        for value in values {
            assert_eq!(refused("cpus", value).setting, "cpus");
        }
    }

    #[test]
    fn lists_are_lists_or_one_text() {
        let list = Value::List(vec![Value::Int(0), "2-3".into()]);
        for value in [list, "0, 2-3".into()] {
            let params = with("cpuset", value);
            let read = Reader::new("x", TABLE, &params).unwrap();
            assert_eq!(read.cpuset().as_deref(), Some("0,2-3"));
        }
        let params = with("cpuset", 1i64);
        let read = Reader::new("x", TABLE, &params).unwrap();
        assert_eq!(read.cpuset().as_deref(), Some("1"));
    }

    #[test]
    fn near_miss_in_setting_gets_a_suggestion() {
        let hints = [
            refused("memroy", "1g"),
            refused("seccomp", "unconfine"),
            refused("cap_add", "SYS_NIC"),
            refused("cap_add", "cap_sys_nic"),
            refused("ulimits", "nofil=5"),
        ]
        .map(|error| error.hint.unwrap());
        let names = ["memory", "unconfined", "SYS_NICE", "SYS_NICE", "nofile"];
        assert_eq!(hints, names.map(|name| format!("did you mean `{name}`?")));
        assert!(refused("memory", "2x").hint.unwrap().contains("`256m`"));
    }

    #[test]
    fn old_setting_names_are_read_and_used_in_errors() {
        let params = Params::new()
            .with("no_new_privs", true)
            .with("seccomp", "off");
        let read = Reader::new("x", TABLE, &params).unwrap();
        assert_eq!(read.flag(&NO_NEW_PRIVILEGES), Some(true));
        assert_eq!(read.text(&SECCOMP), Some("unconfined"));
        let error = read.refused(&NO_NEW_PRIVILEGES, "no", "yes");
        assert_eq!(error.setting, "no_new_privs");
        assert_eq!(super::super::setting::old_words(TABLE, &params).len(), 2);
        let both = params.with("no_new_privileges", true);
        assert!(Reader::new("x", TABLE, &both).is_err());
        assert_eq!(refused("no_new_privs", "yes").setting, "no_new_privs");
    }
}
