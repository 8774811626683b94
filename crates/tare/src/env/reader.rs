//! Reading an arm's settings by name and kind, each with an error that names the setting and what it takes.
//!
//! Here is the strictness that drivers share: sizes, counts, names of capabilities and limits. Which
//! settings a driver has and how they go together is the driver's own business. What cannot be seen from
//! here is whether an engine grants what is asked for.

use std::path::PathBuf;

use tare_model::launch::Bind;
use tare_model::{Params, Value};

use super::grammar::{
    self, CAPABILITIES, ULIMITS, is_package, is_program, is_safe_path, parse_bind, parse_size,
};
use super::text::printable;
use super::{SettingSpec, SettingsError, Wanted};
use crate::suggest::nearest;

/// Which programs of this machine an image is packed with.
pub(super) const PROGRAMS: SettingSpec = SettingSpec {
    name: "programs",
    doc: "programs of this machine to pack with their libraries, a list such as [\"python3\", \"/opt/x/bin/y\"]",
};
/// Which packages.
pub(super) const PACKAGES: SettingSpec = SettingSpec {
    name: "packages",
    doc: "packages of this machine (dpkg or rpm) whose files to pack, a list",
};
/// Which other files.
pub(super) const FILES: SettingSpec = SettingSpec {
    name: "files",
    doc: "files and folders of this machine to pack, a list of absolute paths",
};

/// A limit of a process; -1 means none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ulimit {
    pub(super) name: String,
    pub(super) soft: i64,
    pub(super) hard: i64,
}

/// Reads settings by name and kind.
pub(super) struct Reader<'a> {
    pub(super) params: &'a Params,
}

impl<'a> Reader<'a> {
    /// Takes the settings of an arm of `driver`; a name that is not in `specs` is an error with the name that
    /// may have been meant.
    pub(super) fn new(
        driver: &str,
        specs: &[SettingSpec],
        params: &'a Params,
    ) -> Result<Self, SettingsError> {
        let names = || specs.iter().map(|spec| spec.name);
        let Some(name) = params
            .0
            .keys()
            .find(|name| !names().any(|known| known == *name))
        else {
            return Ok(Self { params });
        };
        let hint = nearest(name, names()).map_or_else(
            || {
                let names: Vec<&str> = names().collect();
                format!("`{driver}` takes {}", names.join(", "))
            },
            |near| format!("did you mean `{near}`?"),
        );
        Err(SettingsError {
            setting: name.to_owned(),
            problem: format!("`{driver}` has no setting `{}`", printable(name)),
            hint: Some(hint),
        })
    }

    pub(super) fn wrong(name: &str, value: &Value, expected: &str) -> SettingsError {
        SettingsError {
            setting: name.to_owned(),
            problem: format!("`{name}` cannot be `{}`", printable(&value.to_string())),
            hint: Some(format!("it takes {expected}")),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, SettingsError> {
        match self.params.value(name) {
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
        let Some(value) = self.params.value(name) else {
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
        let Some(value) = self.params.value(name) else {
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
        let Some(value) = self.params.value("cpus") else {
            return Ok(None);
        };
        grammar::cpus(value)
            .map(|cpus| Some((cpus * 1e9).round() as i64))
            .ok_or_else(|| Self::wrong("cpus", value, expected))
    }

    pub(super) fn size(&self, name: &str, least: i64) -> Result<Option<i64>, SettingsError> {
        let Some(value) = self.params.value(name) else {
            return Ok(None);
        };
        let bytes = match value {
            Value::Int(bytes) => Some(*bytes),
            Value::Text(text) => parse_size(text).and_then(|bytes| i64::try_from(bytes).ok()),
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

    /// The texts of a list, or of one text with commas.
    fn texts(&self, name: &str, expected: &str) -> Result<Vec<&str>, SettingsError> {
        let Some(value) = self.params.value(name) else {
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

    /// What of the host's files to pack: `programs`, `packages` and `files`.
    pub(super) fn wanted(&self) -> Result<Wanted, SettingsError> {
        Ok(Wanted {
            programs: self.words("programs", is_program, "names or absolute paths")?,
            packages: self.words("packages", is_package, "names of packages")?,
            files: self.words("files", is_safe_path, "absolute paths")?,
            told_by: Vec::new(),
        })
    }

    /// A container's own program with its arguments: a list, or a text that is split at spaces.
    pub(super) fn entry(&self) -> Result<Vec<String>, SettingsError> {
        let words: Vec<String> = match self.params.value("entry") {
            None => Vec::new(),
            Some(Value::Text(text)) => text.split(' ').map(str::to_owned).collect(),
            Some(_) => self
                .texts("entry", "a program and its arguments")?
                .into_iter()
                .map(str::to_owned)
                .collect(),
        };
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        match self.params.value("entry") {
            Some(value) if words.is_empty() || words.iter().any(|word| word.contains('\0')) => {
                Err(Self::wrong(
                    "entry",
                    value,
                    "a program and its arguments, for example `sleep infinity`",
                ))
            }
            _ => Ok(words),
        }
    }

    /// How long a container may take to obey the request to stop, seconds.
    pub(super) fn stop_after(&self) -> Result<Option<u16>, SettingsError> {
        match self.params.value("stop_after") {
            None => Ok(None),
            Some(Value::Int(seconds @ 1..=600)) => Ok(Some(*seconds as u16)),
            Some(value) => Err(Self::wrong("stop_after", value, "seconds from 1 to 600")),
        }
    }

    /// A port of this machine.
    pub(super) fn port(&self, name: &str) -> Result<Option<u16>, SettingsError> {
        match self.params.value(name) {
            None => Ok(None),
            Some(Value::Int(port @ 1..=65_535)) => Ok(Some(*port as u16)),
            Some(value) => Err(Self::wrong(name, value, "a number from 1 to 65535")),
        }
    }

    pub(super) fn capabilities(&self, name: &str) -> Result<Vec<String>, SettingsError> {
        let expected = "capability names such as [\"SYS_NICE\"], or \"ALL\"";
        let mut names = Vec::new();
        for word in self.texts(name, expected)? {
            let upper = word.to_ascii_uppercase();
            let plain = upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned();
            if plain != "ALL" && !CAPABILITIES.contains(&plain.as_str()) {
                let mut error = Self::wrong(name, &Value::Text(word.to_owned()), expected);
                if let Some(near) = nearest(&plain, CAPABILITIES) {
                    error.hint = Some(format!("did you mean `{near}`?"));
                }
                return Err(error);
            }
            names.push(plain);
        }
        Ok(names)
    }

    /// `name=soft[:hard]`, as `--ulimit` of engines' commands reads it.
    pub(super) fn ulimits(&self, name: &str) -> Result<Vec<Ulimit>, SettingsError> {
        let expected = "limits such as [\"nofile=1024:524288\"]";
        let mut limits = Vec::new();
        for word in self.texts(name, expected)? {
            let wrong = || Self::wrong(name, &Value::Text(word.to_owned()), expected);
            let (kind, values) = word.split_once('=').ok_or_else(wrong)?;
            if !ULIMITS.contains(&kind) {
                let mut error = wrong();
                if let Some(near) = nearest(kind, ULIMITS) {
                    error.hint = Some(format!("did you mean `{near}`?"));
                }
                return Err(error);
            }
            let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= -1);
            let (soft, hard) = values.split_once(':').unwrap_or((values, values));
            let soft = number(soft).ok_or_else(wrong)?;
            let hard = number(hard).ok_or_else(wrong)?;
            if hard != -1 && (soft == -1 || soft > hard) {
                let mut error = wrong();
                error.hint = Some("the soft limit may not be above the hard one".into());
                return Err(error);
            }
            limits.push(Ulimit {
                name: kind.to_owned(),
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

    /// An absolute path without `..` and control characters; `None` for a text that does not begin with `/`.
    pub(super) fn path(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<PathBuf>, SettingsError> {
        let Some(value) = self.params.value(name) else {
            return Ok(None);
        };
        match value {
            Value::Text(text) if text.starts_with('/') => {
                if is_safe_path(text) {
                    Ok(Some(PathBuf::from(text)))
                } else {
                    Err(Self::wrong(name, value, expected))
                }
            }
            _ => Ok(None),
        }
    }
}
