//! How names that several parts of Tare share are listed: one row each, constant and table from one place.

/// Who writes something down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The agent, from inside.
    Agent,
    /// A driver, of what it made.
    Driver,
    /// The run, of what happened.
    Run,
    /// The question why a command is slower.
    Why,
}

/// What is done with something that was written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// An arm is given it: a difference from the baseline is a failure of the comparison.
    Given,
    /// An arm is so: a difference is what is compared, and says where to look for a cause.
    Is,
    /// Rules read it; by itself it is not compared.
    Read,
    /// Kept for people, or as the name of a whole family; no rule reads it.
    Kept,
}

/// What a text or number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Words.
    Text,
    /// Several values in one text.
    List,
    /// `true`, or another word for no.
    Flag,
    /// A number without a unit of its own.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A hash as digits.
    Digest,
}

/// A row of a table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The constant that stands for it.
    pub constant: &'static str,
    /// The name itself; a `*` in it stands for what differs from place to place.
    pub name: &'static str,
    /// What it is.
    pub measure: Measure,
    /// Who writes it.
    pub writers: &'static [Writer],
    /// What is done with it.
    pub used: Use,
    /// As it is declared; [`Name::meaning`] reads it.
    pub(crate) doc: &'static str,
}

impl Name {
    /// What it means, in a sentence.
    pub fn meaning(&self) -> &'static str {
        self.doc.trim()
    }
}

/// Declares names: a constant for each with its meaning as documentation, and a table of all.
macro_rules! names {
    (
        $(#[$about:meta])* $table:ident;
        $(
            $(#[doc = $doc:literal])+
            $constant:ident = $name:literal, $measure:ident, by [$($writer:ident)+], $used:ident;
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            pub const $constant: &str = $name;
        )+

        $(#[$about])*
        pub const $table: &[Name] = &[
            $(Name {
                constant: stringify!($constant),
                name: $name,
                measure: Measure::$measure,
                writers: &[$(Writer::$writer),+],
                used: Use::$used,
                doc: concat!($($doc),+),
            }),+
        ];
    };
}
pub(crate) use names;
