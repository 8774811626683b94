//! Enums whose variants are one fixed word each in JSON, in stores and in reports.
//!
//! `words!` generates the enum from its words, so that each word is written once. The words never change, because
//! stored runs and dossiers contain them. Those of the dossier are here; others are next to what they belong to.

/// Declares an enum whose variants are words, with `ALL`, `name`, `from_name` and `Display`.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $word:ident: $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $word,)+
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$word),+];

            /// Returns the word.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }

            /// Returns the variant with this [`name`](Self::name).
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|word| word.name() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use words;

words! {
    /// Verdict on a cell, costs first. `ratio > 1` means that the environment costs more.
    pub enum Verdict {
        /// The whole interval is beyond the margin.
        MaterialCost: "material-cost",
        /// A cost whose size relative to the margin is not resolved.
        Cost: "cost",
        /// A real cost within the margin.
        NegligibleCost: "negligible-cost",
        /// No difference shown, and none beyond the margin possible.
        Equivalent: "equivalent",
        /// Neither a difference nor equivalence can be shown.
        Inconclusive: "inconclusive",
        /// A real gain within the margin.
        NegligibleGain: "negligible-gain",
        /// A gain whose size relative to the margin is not resolved.
        Gain: "gain",
        /// The whole interval is beyond the margin, on the side of gains.
        MaterialGain: "material-gain",
    }
}

impl Verdict {
    /// Returns the verdict with baseline and environment swapped.
    #[must_use]
    pub fn mirrored(self) -> Self {
        let place = Self::ALL.iter().position(|verdict| *verdict == self);
        let last = Self::ALL.len() - 1;
        // `ALL` has costs first, then the two neutral verdicts, then gains.
        match self {
            Self::Equivalent | Self::Inconclusive => self,
            _ => Self::ALL[last - place.unwrap_or(last)],
        }
    }

    /// Whether it claims a difference of any size. An A/A run counts these.
    pub fn is_difference(self) -> bool {
        !matches!(self, Self::Equivalent | Self::Inconclusive)
    }

    /// Whether it is a cost that may be beyond the margin.
    pub fn is_cost(self) -> bool {
        matches!(self, Self::MaterialCost | Self::Cost)
    }

    /// Whether it is a gain that may be beyond the margin.
    pub fn is_gain(self) -> bool {
        matches!(self, Self::MaterialGain | Self::Gain)
    }
}

words! {
    /// In-trial summary of a cell.
    pub enum Summary {
        /// The median.
        Typical: "typical",
        /// The best value.
        Floor: "floor",
    }
}

words! {
    /// Result of testing a suspect, the strongest first.
    pub enum Status {
        /// It explains at least half of the overhead.
        Confirmed: "confirmed",
        /// It explains a part; or it was not tested, and the evidence is specific.
        Supported: "supported",
        /// Everything else was ruled out, and it cannot be switched off alone.
        Likely: "likely",
        /// It was tested, and may explain nothing or most of the overhead.
        Undecided: "undecided",
        /// It was not tested.
        Untested: "untested",
        /// It does not explain the overhead.
        Refuted: "refuted",
    }
}

words! {
    /// Why a measurement is missing.
    pub enum Absence {
        /// It cannot be measured here; every attempt would end the same way.
        Unavailable: "unavailable",
        /// It failed.
        Failed: "failed",
    }
}

words! {
    /// How a run deviated from its plan.
    pub enum Deviation {
        /// It had ended, and blocks were added.
        Extended: "extended",
        /// It was ended before its end, and resumed.
        Resumed: "resumed",
    }
}

words! {
    /// Verdict on a published claim.
    pub enum ClaimVerdict {
        /// The interval is within the claim's bounds.
        Holds: "holds",
        /// The interval is outside the claim's bounds.
        Fails: "fails",
        /// The interval includes one of the claim's bounds.
        Undecided: "undecided",
        /// Nothing was measured that could decide it.
        NotTestable: "not-testable",
    }
}

words! {
    /// Result of an item of the checklist, or of a comparison of two arms.
    pub enum CheckResult {
        /// As required; equal.
        Pass: "pass",
        /// Not as required; different, but should be equal.
        Fail: "fail",
        /// Different, and that is part of the comparison.
        Differs: "differs",
        /// Not known, or not checked.
        NotKnown: "n.a.",
    }
}

words! {
    /// The answer of `tare why` as a word.
    pub enum WhyOutcome {
        /// The command is slower.
        Cost: "cost",
        /// The command is faster.
        Gain: "gain",
        /// Only creating the environment has an overhead.
        StartUp: "start-up",
        /// No overhead was found.
        None: "none",
        /// Undecided.
        Undecided: "undecided",
    }
}

words! {
    /// How far the reason of a slowdown or speed-up is known.
    pub enum WhyReason {
        /// One cause is confirmed.
        Confirmed: "confirmed",
        /// Several causes are confirmed, or several that act only together.
        Together: "together",
        /// The confirmed causes explain a part.
        Partly: "partly",
        /// Everything else was ruled out.
        Eliminated: "eliminated",
        /// A few differences are left.
        SeveralLeft: "several-left",
        /// Not found yet.
        NotFound: "not-found",
    }
}

words! {
    /// Subject of a line below the headline of an answer.
    pub enum AnswerLabel {
        /// Whether both sides do the same work.
        Work: "work",
        /// The cause, and the result of testing it.
        Cause: "cause",
        /// The change to make.
        Fix: "fix",
        /// What the change gives up.
        Price: "price",
        /// The unexplained part.
        Unexplained: "unexplained",
        /// Time to start the environment.
        StartUp: "start-up",
        /// What every new environment does once more.
        FirstRun: "first-run",
        /// A different program in the image than on the host.
        Userland: "userland",
        /// Causes that were tested and have no effect.
        RuledOut: "ruled-out",
        /// Causes that were tested without a decision.
        Undecided: "undecided",
        /// Causes that were not tested.
        NotTested: "not-tested",
        /// How to get a better answer.
        Next: "next",
    }
}

words! {
    /// Which of γ, α, β are free in a scaling law.
    pub enum ScalingLaw {
        /// α = β = 0.
        Linear: "linear",
        /// β = 0.
        Amdahl: "amdahl",
        /// α and β free, not negative.
        Universal: "universal",
    }
}

words! {
    /// Layout of a publication's numbers.
    pub enum LayoutKind {
        /// In columns and rows.
        Table: "table",
        /// One bar per value.
        Bars: "bars",
        /// One line per series.
        Lines: "lines",
    }
}

words! {
    /// Why a run stopped.
    pub enum StoppedBy {
        /// Every workload was precise enough.
        Precision: "precision",
        /// All blocks of the plan were done.
        Blocks: "blocks",
        /// The next block would not have ended within the budget.
        Budget: "budget",
        /// The user stopped it.
        Interrupted: "interrupted",
        /// It could not continue.
        Failed: "failed",
        /// It did not end by itself, or is still running; no end is stored.
        Killed: "killed",
    }
}

impl StoppedBy {
    /// Whether the run ended as its study specifies.
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Precision | Self::Blocks | Self::Budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_same_in_json_and_in_text() {
        for verdict in Verdict::ALL {
            let json = serde_json::to_string(&verdict).unwrap();
            assert_eq!(json, format!("\"{verdict}\""));
            assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
            assert_eq!(Verdict::from_name(verdict.name()), Some(verdict));
        }
        assert_eq!(Verdict::from_name("faster"), None);
        assert!(serde_json::from_str::<Verdict>("\"faster\"").is_err());
        assert_eq!(format!("{:>8}|", CheckResult::Pass), "    pass|");
    }

    #[test]
    fn mirrored_verdict_has_same_size_on_opposite_side() {
        assert_eq!(Verdict::MaterialCost.mirrored(), Verdict::MaterialGain);
        assert_eq!(Verdict::Cost.mirrored(), Verdict::Gain);
        assert_eq!(Verdict::NegligibleGain.mirrored(), Verdict::NegligibleCost);
        for verdict in Verdict::ALL {
            assert_eq!(verdict.mirrored().mirrored(), verdict);
            assert_eq!(verdict.mirrored().is_difference(), verdict.is_difference());
        }
    }
}
