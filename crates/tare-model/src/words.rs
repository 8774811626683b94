//! Closed words: enums that are one word each in JSON, in stores and in reports.
//!
//! `words!` makes the enum with its words, so that a word is written once. The words never change:
//! stored runs and dossiers hold them. Those of the dossier stand here; others stand beside what they belong to.

/// An enum whose variants are words, with `ALL` of them, `name`, `from_name` and `Display`.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $word:ident: $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $word,)+
        }

        impl $name {
            /// Every one, in their order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$word),+];

            /// The word.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }

            /// The one with this [`name`](Self::name).
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
    /// What a cell shows, costs first. `ratio > 1` means that the environment costs more.
    pub enum Verdict {
        /// The whole interval lies beyond the margin.
        MaterialCost: "material-cost",
        /// A cost whose size relative to the margin is not resolved.
        Cost: "cost",
        /// A real cost that lies within the margin.
        NegligibleCost: "negligible-cost",
        /// No difference shown and none beyond the margin possible.
        Equivalent: "equivalent",
        /// Neither a difference nor equivalence can be shown.
        Inconclusive: "inconclusive",
        /// A real gain that lies within the margin.
        NegligibleGain: "negligible-gain",
        /// A gain whose size relative to the margin is not resolved.
        Gain: "gain",
        /// The whole interval lies beyond the margin, on the side of gains.
        MaterialGain: "material-gain",
    }
}

impl Verdict {
    /// What it would be if baseline and environment changed places.
    #[must_use]
    pub fn mirrored(self) -> Self {
        let place = Self::ALL.iter().position(|verdict| *verdict == self);
        let last = Self::ALL.len() - 1;
        // Costs stand first, gains in their order behind what is neither.
        match self {
            Self::Equivalent | Self::Inconclusive => self,
            _ => Self::ALL[last - place.unwrap_or(last)],
        }
    }

    /// Does it claim a difference, of whatever size? This is what an A/A run counts.
    pub fn is_difference(self) -> bool {
        !matches!(self, Self::Equivalent | Self::Inconclusive)
    }

    /// A cost that may be beyond the margin.
    pub fn is_cost(self) -> bool {
        matches!(self, Self::MaterialCost | Self::Cost)
    }

    /// A gain that may be beyond the margin.
    pub fn is_gain(self) -> bool {
        matches!(self, Self::MaterialGain | Self::Gain)
    }
}

words! {
    /// Which in-trial summary a cell is of.
    pub enum Summary {
        /// The median.
        Typical: "typical",
        /// The best.
        Floor: "floor",
    }
}

words! {
    /// What trying a suspect proved, the strongest first.
    pub enum Status {
        /// It explains at least half of the cost.
        Confirmed: "confirmed",
        /// It explains a part; or nothing was tried, and the evidence is specific.
        Supported: "supported",
        /// Everything else was ruled out, and it cannot be switched off alone.
        Likely: "likely",
        /// It was tried, and may explain nothing or most of it.
        Undecided: "undecided",
        /// Nothing was tried.
        Untested: "untested",
        /// It does not explain the cost.
        Refuted: "refuted",
    }
}

words! {
    /// How a measurement is missing.
    pub enum Absence {
        /// It would be so every time.
        Unavailable: "unavailable",
        /// It went wrong.
        Failed: "failed",
    }
}

words! {
    /// In what a run was not carried out as it was planned.
    pub enum Deviation {
        /// It had ended, and blocks were added.
        Extended: "extended",
        /// It was ended before its end, and gone on with.
        Resumed: "resumed",
    }
}

words! {
    /// How a published claim came out.
    pub enum ClaimVerdict {
        /// The interval lies within the claim's bounds.
        Holds: "holds",
        /// It lies outside of them.
        Fails: "fails",
        /// It lies across one of them.
        Undecided: "undecided",
        /// Nothing was measured that could decide.
        NotTestable: "not-testable",
    }
}

words! {
    /// How an item of the checklist, or a comparison of two arms, came out.
    pub enum CheckResult {
        /// As it should be; equal.
        Pass: "pass",
        /// Not as it should be; not equal, and it should be.
        Fail: "fail",
        /// Not equal, and that is part of what is compared.
        Differs: "differs",
        /// Not known, or not asked.
        NotKnown: "n.a.",
    }
}

words! {
    /// The answer of `tare why` in a word.
    pub enum WhyOutcome {
        /// The command is slower.
        Cost: "cost",
        /// The command is faster.
        Gain: "gain",
        /// Only creating the environment costs.
        StartUp: "start-up",
        /// No cost was found.
        None: "none",
        /// It could not be decided.
        Undecided: "undecided",
    }
}

words! {
    /// How far the reason of a slowdown or speed-up is known.
    pub enum WhyReason {
        /// One cause is confirmed.
        Confirmed: "confirmed",
        /// Several causes are confirmed, or several that only act together.
        Together: "together",
        /// What was proved explains a part.
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
    /// What a line below the headline of an answer is about.
    pub enum AnswerLabel {
        /// Whether both sides do the same work.
        Work: "work",
        /// The cause, and what was proved of it.
        Cause: "cause",
        /// What to change.
        Fix: "fix",
        /// What that gives up.
        Price: "price",
        /// How much stays unexplained.
        Unexplained: "unexplained",
        /// What starting the environment takes.
        StartUp: "start-up",
        /// Another program in the image than on the host.
        Userland: "userland",
        /// What was tried and has no effect.
        RuledOut: "ruled-out",
        /// What was tried without a decision.
        Undecided: "undecided",
        /// What was not tried.
        NotTested: "not-tested",
        /// What to do for a better answer.
        Next: "next",
    }
}

words! {
    /// Which of γ, α, β are free in a law of scaling.
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
    /// How a publication lays its numbers out.
    pub enum LayoutKind {
        /// In columns and rows.
        Table: "table",
        /// One bar a value.
        Bars: "bars",
        /// One line a series.
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
        /// It could not go on.
        Failed: "failed",
        /// It did not end by itself, or is still at work; no end is stored.
        Killed: "killed",
    }
}

impl StoppedBy {
    /// Whether the run ended as its study said it should.
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
    fn a_mirrored_verdict_is_the_same_size_on_the_other_side() {
        assert_eq!(Verdict::MaterialCost.mirrored(), Verdict::MaterialGain);
        assert_eq!(Verdict::Cost.mirrored(), Verdict::Gain);
        assert_eq!(Verdict::NegligibleGain.mirrored(), Verdict::NegligibleCost);
        for verdict in Verdict::ALL {
            assert_eq!(verdict.mirrored().mirrored(), verdict);
            assert_eq!(verdict.mirrored().is_difference(), verdict.is_difference());
        }
    }
}
