//! What settings are: the rows of the tables in which drivers declare what they take.
//!
//! A row says what a setting is called, which values it takes, what it is where it is not said, and what it means.
//! The reading of what is said, its errors, `tare list environments` and the book's tables come from that. How
//! settings go together is the driver's own business.

use std::fmt;

use tare_model::Params;

use crate::suggest;

/// A setting that a driver takes.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Which values.
    pub takes: Takes,
    /// What it is where it is not said; empty if it must be.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What it was called before; still understood.
    pub was: &'static [&'static str],
    /// Words of before that are still understood, each with today's.
    pub words: &'static [(&'static str, &'static str)],
}

/// Which values a setting takes.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// `true` or `false`.
    Flag,
    /// A text.
    Text(Form),
    /// A list of texts, or one text that is divided there.
    List(Form, Between),
    /// Bytes, at least so many; or a text with a unit.
    Size(u64),
    /// A number from, to, and of what.
    Number(f64, f64, &'static str),
    /// A whole number from, to, and of what.
    Whole(u32, u32, &'static str),
}

/// What stands between the items of a list that is written as one text.
#[derive(Debug, Clone, Copy)]
pub enum Between {
    /// Commas.
    Commas,
    /// Spaces.
    Spaces,
    /// Nothing: the text is one item.
    Nothing,
}

/// Which texts.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// As the end of "it takes"; empty for one of the words.
    what: &'static str,
    /// Words that are fine besides.
    words: &'static [&'static str],
    /// Words that may have been meant.
    near: &'static [&'static str],
    is_fine: fn(&str) -> bool,
}

impl Form {
    /// Texts for which `is_fine` holds; `what` is the end of "it takes".
    pub const fn of(what: &'static str, is_fine: fn(&str) -> bool) -> Self {
        Self {
            what,
            words: &[],
            near: &[],
            is_fine,
        }
    }

    /// These words and no others.
    pub const fn words(words: &'static [&'static str]) -> Self {
        Self::of("", |_| false).or(words)
    }

    /// These words too.
    #[must_use]
    pub const fn or(self, words: &'static [&'static str]) -> Self {
        let near = words;
        Self {
            words,
            near,
            ..self
        }
    }

    /// With words that are suggested for what is nearly one.
    #[must_use]
    pub const fn near(self, near: &'static [&'static str]) -> Self {
        Self { near, ..self }
    }

    /// The word that may have been meant.
    pub(super) fn meant(&self, text: &str) -> Option<&'static str> {
        suggest::nearest(text, self.near.iter().copied()).filter(|near| *near != text)
    }

    /// Whether a text is one of them.
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

/// Declares what the words of a setting mean: an enum, and under the name of a table each word with its meaning.
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

/// The words of a table that says what each stands for.
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

/// The word of such a table for something.
pub(super) fn said<T: Copy + PartialEq>(table: &[(&'static str, T)], meant: T) -> &'static str {
    let found = table.iter().find(|(_, one)| *one == meant);
    found.map_or("", |(word, _)| word)
}

/// What is said with words of before, each with today's.
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

/// Declares settings, a constant each: `NAME("name", what it takes, "default", "meaning")`, with what it was called
/// and which words it had before. Under the name of a table it is made of these rows and of constants from elsewhere.
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

        /// What the driver takes.
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
    fn every_setting_says_what_it_means_and_what_it_is_where_it_is_not_said() {
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
    fn what_a_setting_takes_is_told_in_words() {
        let told = |takes: Takes| takes.to_string();
        assert_eq!(told(Takes::Text(Form::words(&["a"]))), "`a`");
        let several = Form::words(&["a", "b", "c"]);
        assert_eq!(told(Takes::Text(several)), "`a`, `b` or `c`");
        assert_eq!(
            told(Takes::Size(6 << 20)),
            "bytes or a text such as `256m`, at least 6 MiB"
        );
        assert_eq!(told(Takes::Whole(1, 9, "seconds")), "seconds from 1 to 9");
    }

    fn refused(driver: &str, settings: &Params) -> SettingsError {
        let driver = env::find(driver).unwrap();
        let configured = driver.configure(ArmId::new("arm").unwrap(), settings);
        configured.err().unwrap_or_else(|| panic!("{settings:?}"))
    }

    #[test]
    fn quotes_options_paths_and_control_characters_reach_no_engine() {
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
