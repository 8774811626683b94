//! Reading settings by name and kind, each with an error that names the setting and what it takes.
//!
//! Here is the strictness that all settings share; which settings there are and how they go together is not
//! known here.

use std::path::PathBuf;

use tare_model::launch::Bind;
use tare_model::{Params, Value};

use super::super::SettingsError;
use super::super::grammar::{CAPABILITIES, ULIMITS, is_safe_path, parse_bind, parse_size};
use super::catalogue::SETTINGS;

/// A limit of a process; -1 means none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ulimit {
    pub(super) name: String,
    pub(super) soft: i64,
    pub(super) hard: i64,
}

pub(super) fn unknown_setting(name: &str) -> SettingsError {
    let hint = nearest(name, SETTINGS.iter().map(|spec| spec.name)).map_or_else(
        || {
            let names: Vec<&str> = SETTINGS.iter().map(|spec| spec.name).collect();
            format!("`docker` takes {}", names.join(", "))
        },
        |near| format!("did you mean `{near}`?"),
    );
    SettingsError {
        setting: name.to_owned(),
        problem: format!("`docker` has no setting `{}`", name.escape_debug()),
        hint: Some(hint),
    }
}

/// The candidate that is spelled most alike, if any is alike at all.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// Reads settings by name and kind.
pub(super) struct Reader<'a>(pub(super) &'a Params);

impl Reader<'_> {
    pub(super) fn wrong(name: &str, value: &Value, expected: &str) -> SettingsError {
        SettingsError {
            setting: name.to_owned(),
            problem: format!(
                "`{name}` cannot be `{}`",
                super::errors::printable(&value.to_string())
            ),
            hint: Some(format!("it takes {expected}")),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, SettingsError> {
        match self.0.value(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(value) => Err(Self::wrong(name, value, "`true` or `false`")),
        }
    }

    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, SettingsError> {
        let Some(value) = self.0.value(name) else {
            return Ok(None);
        };
        if let Value::Text(text) = value
            && let Some((_, choice)) = choices.iter().find(|(word, _)| word == text)
        {
            return Ok(Some(*choice));
        }
        let words: Vec<String> = choices
            .iter()
            .map(|(word, _)| format!("`{word}`"))
            .collect();
        Err(Self::wrong(name, value, &words.join(" or ")))
    }

    pub(super) fn word(
        &self,
        name: &str,
        is_fine: fn(&str) -> bool,
        expected: &str,
    ) -> Result<Option<String>, SettingsError> {
        let Some(value) = self.0.value(name) else {
            return Ok(None);
        };
        let text = match value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            _ => return Err(Self::wrong(name, value, expected)),
        };
        if is_fine(&text) {
            Ok(Some(text))
        } else {
            Err(Self::wrong(name, value, expected))
        }
    }

    pub(super) fn cpus(&self) -> Result<Option<i64>, SettingsError> {
        let expected = "a number from 0.01 up, such as 1.5";
        let Some(value) = self.0.value("cpus") else {
            return Ok(None);
        };
        let cpus = match value {
            Value::Int(number) => *number as f64,
            Value::Float(number) => *number,
            _ => return Err(Self::wrong("cpus", value, expected)),
        };
        if (0.01..=4096.0).contains(&cpus) {
            Ok(Some((cpus * 1e9).round() as i64))
        } else {
            Err(Self::wrong("cpus", value, expected))
        }
    }

    pub(super) fn size(&self, name: &str, least: i64) -> Result<Option<i64>, SettingsError> {
        let Some(value) = self.0.value(name) else {
            return Ok(None);
        };
        let bytes = match value {
            Value::Int(bytes) => Some(*bytes),
            Value::Text(text) => parse_size(text),
            _ => None,
        };
        bytes
            .filter(|bytes| *bytes >= least)
            .map(Some)
            .ok_or_else(|| {
                let expected = format!("bytes or a text such as `256m`, at least {least} bytes");
                Self::wrong(name, value, &expected)
            })
    }

    pub(super) fn capabilities(&self, name: &str) -> Result<Vec<String>, SettingsError> {
        let expected = "capability names such as [\"SYS_NICE\"], or \"ALL\"";
        let mut names = Vec::new();
        for word in self.texts(name, expected)? {
            let upper = word.to_ascii_uppercase();
            let plain = upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned();
            if plain != "ALL" && !CAPABILITIES.contains(&plain.as_str()) {
                let mut error = Self::wrong(name, &Value::Text(word.to_owned()), expected);
                if let Some(near) = nearest(&plain, CAPABILITIES.into_iter()) {
                    error.hint = Some(format!("did you mean `{near}`?"));
                }
                return Err(error);
            }
            names.push(plain);
        }
        Ok(names)
    }

    /// The texts of a list, or of one text with commas.
    pub(super) fn texts(&self, name: &str, expected: &str) -> Result<Vec<&str>, SettingsError> {
        let Some(value) = self.0.value(name) else {
            return Ok(Vec::new());
        };
        match value {
            Value::Text(text) => Ok(text.split(',').map(str::trim).collect()),
            Value::List(values) => values
                .iter()
                .map(|item| match item {
                    Value::Text(text) => Ok(text.as_str()),
                    _ => Err(Self::wrong(name, value, expected)),
                })
                .collect(),
            _ => Err(Self::wrong(name, value, expected)),
        }
    }

    /// A list of texts that are each fine.
    pub(super) fn words(
        &self,
        name: &str,
        is_fine: fn(&str) -> bool,
        expected: &str,
    ) -> Result<Vec<String>, SettingsError> {
        self.texts(name, expected)?
            .into_iter()
            .map(|word| {
                if is_fine(word) {
                    Ok(word.to_owned())
                } else {
                    Err(Self::wrong(name, &Value::Text(word.to_owned()), expected))
                }
            })
            .collect()
    }

    /// `name=soft[:hard]`, as `--ulimit` of `docker run` reads it.
    pub(super) fn ulimits(&self) -> Result<Vec<Ulimit>, SettingsError> {
        let expected = "limits such as [\"nofile=1024:524288\"]";
        let mut limits = Vec::new();
        for word in self.texts("ulimits", expected)? {
            let wrong = || Self::wrong("ulimits", &Value::Text(word.to_owned()), expected);
            let (name, values) = word.split_once('=').ok_or_else(wrong)?;
            if !ULIMITS.contains(&name) {
                let mut error = wrong();
                if let Some(near) = nearest(name, ULIMITS.into_iter()) {
                    error.hint = Some(format!("did you mean `{near}`?"));
                }
                return Err(error);
            }
            let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= -1);
            let (soft, hard) = values.split_once(':').unwrap_or((values, values));
            let soft = number(soft).ok_or_else(wrong)?;
            let hard = number(hard).ok_or_else(wrong)?;
            let is_ordered = hard == -1 || (soft != -1 && soft <= hard);
            if !is_ordered {
                let mut error = wrong();
                error.hint = Some("the soft limit may not be above the hard one".into());
                return Err(error);
            }
            limits.push(Ulimit {
                name: name.to_owned(),
                soft,
                hard,
            });
        }
        Ok(limits)
    }

    /// `source:target[:ro]`, as `--volume` of `docker run` reads it.
    pub(super) fn binds(&self) -> Result<Vec<Bind>, SettingsError> {
        let expected = "binds such as [\"/srv/data:/data\"] or [\"/srv/data:/data:ro\"]";
        self.texts("binds", expected)?
            .into_iter()
            .map(|word| {
                parse_bind(word)
                    .ok_or_else(|| Self::wrong("binds", &Value::Text(word.to_owned()), expected))
            })
            .collect()
    }

    /// A port of this machine.
    pub(super) fn port(&self) -> Result<Option<u16>, SettingsError> {
        match self.0.value("port") {
            None => Ok(None),
            Some(value) => match value {
                Value::Int(port @ 1..=65_535) => Ok(Some(*port as u16)),
                _ => Err(Self::wrong("port", value, "a number from 1 to 65535")),
            },
        }
    }

    /// An absolute path without `..` and control characters.
    pub(super) fn path(&self, name: &str) -> Result<Option<PathBuf>, SettingsError> {
        let path = self.word(name, is_safe_path, "an absolute path")?;
        Ok(path.map(PathBuf::from))
    }
}
