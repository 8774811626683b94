//! Tables of shared names: one row per name, from which both its constant and its table entry are generated.

/// The writer of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The agent, from inside.
    Agent,
    /// A driver, about the environment it created.
    Driver,
    /// The run, about what happened.
    Run,
    /// The diagnosis of why a command is slower.
    Why,
}

/// How a recorded value is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Given to an arm: a difference from the baseline is a failure of the comparison.
    Given,
    /// A property of the arm: a difference is what is compared, and points to a cause.
    Is,
    /// Read by rules; not compared by itself.
    Read,
    /// Recorded for people, or the name of a whole family; no rule reads it.
    Kept,
}

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Text.
    Text,
    /// Several values in one text.
    List,
    /// `true`, or another word for false.
    Flag,
    /// A number without a unit.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A hash, as digits.
    Digest,
}

/// A row of a table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The name of its constant.
    pub constant: &'static str,
    /// The name itself; a `*` in it stands for the variable part.
    pub name: &'static str,
    /// Type of its value.
    pub measure: Measure,
    /// Its writers.
    pub writers: &'static [Writer],
    /// How it is used.
    pub used: Use,
    /// The declared documentation; [`Name::meaning`] reads it.
    pub(crate) doc: &'static str,
}

impl Name {
    /// Returns its meaning in one sentence.
    pub fn meaning(&self) -> &'static str {
        self.doc.trim()
    }
}

/// Declares names: a constant for each, documented with its meaning, and a table of all. `by` gives the writers of the
/// rows below it.
macro_rules! names {
    (@ [$($writer:ident)+]) => { &[$(Writer::$writer),+] };
    (
        $(#[$about:meta])* $table:ident;
        $(
            by $writers:tt;
            $(
                $(#[doc = $doc:literal])+
                $constant:ident = $name:literal, $measure:ident, $used:ident;
            )+
        )+
    ) => {
        $($(
            $(#[doc = $doc])+
            pub const $constant: &str = $name;
        )+)+

        $(#[$about])*
        pub const $table: &[Name] = &[
            $($(Name {
                constant: stringify!($constant),
                name: $name,
                measure: Measure::$measure,
                writers: names!(@ $writers),
                used: Use::$used,
                doc: concat!($($doc),+),
            },)+)+
        ];
    };
}
pub(crate) use names;
