//! The rows of the tables in which drivers declare their settings.
//!
//! A row has a setting's name, its values, its default, and its meaning. Parsing, errors, `tare list environments`
//! and the tables of the book are derived from it. How settings go together is the driver's concern.

use std::fmt;

use tare_model::Params;

use crate::suggest;

/// A setting that a driver takes.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The name.
    pub name: &'static str,
    /// The values that it takes.
    pub takes: Takes,
    /// The default; empty if the setting is required.
    pub default: &'static str,
    /// The meaning.
    pub doc: &'static str,
    /// Former names, still accepted.
    pub was: &'static [&'static str],
    /// Former words, still accepted, each with the current one.
    pub words: &'static [(&'static str, &'static str)],
}

/// The values that a setting takes.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// `true` or `false`.
    Flag,
    /// A text.
    Text(Form),
    /// A list of texts, or one text with this separator.
    List(Form, Between),
    /// A size in bytes, at least this many; or a text with a unit.
    Size(u64),
    /// A number: minimum, maximum, and unit or description.
    Number(f64, f64, &'static str),
    /// A whole number: minimum, maximum, and unit or description.
    Whole(u32, u32, &'static str),
}

/// The separator of a list that is written as one text.
#[derive(Debug, Clone, Copy)]
pub enum Between {
    /// Commas.
    Commas,
    /// Spaces.
    Spaces,
    /// None: the text is one item.
    Nothing,
}

/// The texts that are accepted.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Completes "it takes"; empty if only `words` are accepted.
    what: &'static str,
    /// Words that are accepted in addition.
    words: &'static [&'static str],
    /// Words to suggest.
    near: &'static [&'static str],
    is_fine: fn(&str) -> bool,
}

impl Form {
    /// Accepts texts for which `is_fine` holds; `what` completes "it takes".
    pub const fn new(what: &'static str, is_fine: fn(&str) -> bool) -> Self {
        Self {
            what,
            words: &[],
            near: &[],
            is_fine,
        }
    }

    /// Accepts only these words.
    pub const fn words(words: &'static [&'static str]) -> Self {
        Self::new("", |_| false).or(words)
    }

    /// Accepts these words too.
    #[must_use]
    pub const fn or(self, words: &'static [&'static str]) -> Self {
        let near = words;
        Self {
            words,
            near,
            ..self
        }
    }

    /// Suggests these words for similar ones.
    #[must_use]
    pub const fn near(self, near: &'static [&'static str]) -> Self {
        Self { near, ..self }
    }

    /// Returns the word that may have been meant.
    pub(super) fn meant(&self, text: &str) -> Option<&'static str> {
        suggest::nearest(text, self.near.iter().copied()).filter(|near| *near != text)
    }

    /// Whether a text is accepted.
    pub(super) fn has(&self, text: &str) -> bool {
        self.words.contains(&text) || (self.is_fine)(text)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.what.is_empty() {
            return f.write_str(self.what);
        }
        for (position, word) in self.words.iter().enumerate() {
            let before = match self.words.len() - position {
                _ if position == 0 => "",
                1 => " or ",
                _ => ", ",
            };
            write!(f, "{before}`{word}`")?;
        }
        Ok(())
    }
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("`true` or `false`"),
            Self::Text(form) | Self::List(form, _) => form.fmt(f),
            Self::Size(least) => {
                f.write_str("bytes or a text such as `256m`")?;
                match least {
                    0 | 1 => Ok(()),
                    least if least % (1 << 20) == 0 => {
                        write!(f, ", at least {} MiB", least >> 20)
                    }
                    least => write!(f, ", at least {least} bytes"),
                }
            }
            Self::Number(least, most, of) => write!(f, "{of} from {least} to {most}"),
            Self::Whole(least, most, of) => write!(f, "{of} from {least} to {most}"),
        }
    }
}

/// Declares the words of a setting: an enum of their meanings, and a table of each word with its meaning.
macro_rules! meanings {
    ($(#[$about:meta])* $vis:vis enum $name:ident, $table:ident {
        $($(#[$doc:meta])* $meaning:ident: $word:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$doc])* $meaning,)+
        }

        $vis const $table: [(&str, $name); [$($word),+].len()] =
            [$(($word, $name::$meaning)),+];
    };
}
pub(super) use meanings;

/// Returns the words of such a table.
pub(super) const fn words<T: Copy, const N: usize>(
    table: &[(&'static str, T); N],
) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = table[at].0;
        at += 1;
    }
    words
}

/// Returns the word for a meaning.
pub(super) fn word_for<T: Copy + PartialEq>(table: &[(&'static str, T)], meant: T) -> &'static str {
    let found = table.iter().find(|(_, one)| *one == meant);
    found.map_or("", |(word, _)| word)
}

/// Returns a note for each former name or word in these settings, with the current one.
pub fn old_words(table: &[Setting], said: &Params) -> Vec<String> {
    let mut notes = Vec::new();
    for setting in table {
        for was in setting.was.iter().filter(|was| said.value(was).is_some()) {
            notes.push(format!("`{was}` is called `{}` now", setting.name));
        }
        let text = said.text(setting.name);
        for (was, now) in setting.words.iter().filter(|(was, _)| text == Some(was)) {
            let name = setting.name;
            notes.push(format!("`{name} = \"{was}\"` is `{name} = \"{now}\"` now"));
        }
    }
    notes
}

/// Declares settings, a constant each: `NAME("name", values, "default", "meaning")`, with former names and words.
/// With the name of a table, it also declares that table of these rows and of constants from elsewhere.
macro_rules! settings {
    ($vis:vis rows; $(
        $constant:ident(
            $name:expr, $kind:ident $(($($of:expr),+))?, $default:literal, $doc:literal
            $(, was $was:literal)? $(, $old:literal is $new:literal)*
        );
    )+) => {$(
        $vis const $constant: $crate::env::Setting = $crate::env::Setting {
            name: $name,
            takes: $crate::env::setting::Takes::$kind $(($($of),+))?,
            default: $default,
            doc: $doc,
            was: &[$($was)?],
            words: &[$(($old, $new)),*],
        };
    )+};
    ($vis:vis $table:ident; $($constant:ident $(($($row:tt)+))?;)+) => {
        $($($crate::env::setting::settings! { $vis rows; $constant($($row)+); })?)+

        /// The settings of the driver.
        $vis static $table: &[$crate::env::Setting] = &[$($constant),+];
    };
}
pub(super) use settings;

#[cfg(test)]
mod tests {
    use tare_model::ArmId;

    use super::*;
    use crate::env::{self, DRIVERS, SettingsError};

    #[test]
    fn settings_are_documented_and_names_are_unique() {
        for driver in DRIVERS {
            let mut names: Vec<&str> = Vec::new();
            for setting in driver.settings() {
                let takes = setting.takes.to_string();
                assert!(!setting.doc.is_empty() && !takes.is_empty(), "{setting:?}");
                names.extend([setting.name].iter().chain(setting.was));
            }
            let n_names = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), n_names, "{} has a name twice", driver.id());
        }
    }

    #[test]
    fn accepted_values_are_described_in_words() {
        let shown = |takes: Takes| takes.to_string();
        assert_eq!(shown(Takes::Text(Form::words(&["a"]))), "`a`");
        let several = Form::words(&["a", "b", "c"]);
        assert_eq!(shown(Takes::Text(several)), "`a`, `b` or `c`");
        assert_eq!(
            shown(Takes::Size(6 << 20)),
            "bytes or a text such as `256m`, at least 6 MiB"
        );
        assert_eq!(shown(Takes::Whole(1, 9, "seconds")), "seconds from 1 to 9");
    }

    fn refused(driver: &str, settings: &Params) -> SettingsError {
        let driver = env::find(driver).unwrap();
        let configured = driver.configure(ArmId::new("arm").unwrap(), settings);
        configured.err().unwrap_or_else(|| panic!("{settings:?}"))
    }

    #[test]
    fn hostile_setting_values_never_reach_an_engine() {
        let hostile = [
            "x\u{1b}[31m",
            "a\"b",
            "a'b",
            "a b",
            "a\nb",
            "../x",
            "a/../b",
            "a?x=1",
            "a#b",
            "a%2fb",
            "$(id)",
            "",
            "-x",
            "--privileged",
            "é",
        ];
        let both = [
            "image", "runtime", "user", "cpuset", "cap_add", "ulimits", "network",
        ];
        let dockers = [
            "log_driver",
            "apparmor",
            "platform",
            "context",
            "bind_folder",
            "programs",
            "packages",
            "files",
        ];
        for (driver, more) in [("docker", &dockers[..]), ("podman", &["as", "seccomp"])] {
            for name in both.iter().chain(more) {
                for text in hostile {
                    let error = refused(driver, &Params::new().with(name, text));
                    assert_eq!(error.setting, *name, "{text:?}");
                    let shown = format!("{error} {:?}", error.hint);
                    assert!(!shown.contains(['\u{1b}', '\n']), "{shown:?}");
                }
            }
        }
    }

    #[test]
    fn privileged_together_with_capabilities_is_refused() {
        let both = Params::new()
            .with("privileged", true)
            .with("cap_drop", "ALL");
        for driver in ["docker", "podman"] {
            assert_eq!(refused(driver, &both).setting, "privileged");
        }
    }
}
