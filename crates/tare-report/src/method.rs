//! The method of a run in one paragraph with references, and a checklist of reporting rules, filled in from the
//! dossier and from what the formats guarantee.
//!
//! The rules are those of Hoefler and Belli (HB), of the SIGPLAN checklist of 2018 and of Papadopoulos and others
//! (P). Items that only the author can answer are shown as open.
//!
//! Limits: cannot judge whether the workloads were well chosen.

use tare_model::dossier::Dossier;
use tare_model::study::A_PRIME;
use tare_model::{CheckResult, StoppedBy};

use super::number::percent;
use super::words::purpose;
use tare_core::foreign::harmless;

/// A reference for the method.
pub(crate) struct Reference {
    /// Its bibliography key.
    pub(crate) key: &'static str,
    /// Authors in BibTeX syntax.
    pub(crate) authors: &'static str,
    pub(crate) title: &'static str,
    /// The journal or conference.
    pub(crate) venue: &'static str,
    /// The remaining BibTeX fields.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    pub(crate) year: u32,
}

impl Reference {
    /// Returns the authors without BibTeX markup.
    pub(crate) fn plain_authors(&self) -> String {
        self.authors
            .replace("\\'e", "é")
            .replace("\\'o", "ó")
            .replace("\\r{u}", "ů")
            .replace(" and ", "; ")
    }
}

/// The references, in order of citation.
pub(crate) static REFERENCES: &[Reference] = &[
    Reference {
        key: "hodges1963",
        authors: "Hodges, J. L. and Lehmann, E. L.",
        title: "Estimates of Location Based on Rank Tests",
        venue: "The Annals of Mathematical Statistics",
        fields: &[("volume", "34"), ("number", "2"), ("pages", "598--611")],
        year: 1963,
    },
    Reference {
        key: "wilcoxon1945",
        authors: "Wilcoxon, Frank",
        title: "Individual Comparisons by Ranking Methods",
        venue: "Biometrics Bulletin",
        fields: &[("volume", "1"), ("number", "6"), ("pages", "80--83")],
        year: 1945,
    },
    Reference {
        key: "schuirmann1987",
        authors: "Schuirmann, Donald J.",
        title: "A Comparison of the Two One-Sided Tests Procedure and the Power Approach for Assessing the Equivalence of Average Bioavailability",
        venue: "Journal of Pharmacokinetics and Biopharmaceutics",
        fields: &[("volume", "15"), ("number", "6"), ("pages", "657--680")],
        year: 1987,
    },
    Reference {
        key: "benjamini1995",
        authors: "Benjamini, Yoav and Hochberg, Yosef",
        title: "Controlling the False Discovery Rate: A Practical and Powerful Approach to Multiple Testing",
        venue: "Journal of the Royal Statistical Society: Series B",
        fields: &[("volume", "57"), ("number", "1"), ("pages", "289--300")],
        year: 1995,
    },
    Reference {
        key: "hoefler2015",
        authors: "Hoefler, Torsten and Belli, Roberto",
        title: "Scientific Benchmarking of Parallel Computing Systems: Twelve Ways to Tell the Masses when Reporting Performance Results",
        venue: "Proceedings of the International Conference for High Performance Computing, Networking, Storage and Analysis (SC '15)",
        fields: &[("doi", "10.1145/2807591.2807644")],
        year: 2015,
    },
    Reference {
        key: "papadopoulos2021",
        authors: "Papadopoulos, Alessandro Vittorio and Versluis, Laurens and Bauer, Andr\\'e and Herbst, Nikolas and von Kistowski, J\\'oakim and Ali-Eldin, Ahmed and Abad, Cristina L. and Amaral, Jos\\'e Nelson and T\\r{u}ma, Petr and Iosup, Alexandru",
        title: "Methodological Principles for Reproducible Performance Evaluation in Cloud Computing",
        venue: "IEEE Transactions on Software Engineering",
        fields: &[("volume", "47"), ("number", "8"), ("pages", "1528--1543")],
        year: 2021,
    },
];

/// A sentence and the keys of its references.
pub(crate) type Sentence = (String, &'static [&'static str]);

/// Describes how this run was measured.
pub(crate) fn sentences(dossier: &Dossier) -> Vec<Sentence> {
    let mut shown: Vec<Sentence> = Vec::new();
    let cells = || dossier.cells.iter().chain(&dossier.aa);
    let blocks = cells().map(|cell| cell.n_blocks).max().unwrap_or(0);
    let arms: Vec<String> = dossier
        .arms
        .iter()
        .filter(|arm| arm.available && arm.id != A_PRIME)
        .map(purpose)
        .collect();
    shown.push((
        format!(
            "{} ran the same work in {} in up to {blocks} blocks; each block holds one trial of every arm, back to back, in an order drawn from seed {}.",
            format_args!("Tare {}", harmless(&dossier.tare)),
            match arms.as_slice() {
                [] => "no arm that could be started".to_owned(),
                [one] => format!("one arm ({one})"),
                many => format!("{} arms ({})", many.len(), many.join(", ")),
            },
            dossier.study.seed
        ),
        &["hoefler2015", "papadopoulos2021"],
    ));
    if cells().any(|cell| cell.in_turn) {
        shown.push((
            "Work that can be cut ran interleaved: prepared workers of all arms in slices of milliseconds on one processor, and the difference of a block is the median over these cycles; other work ran as whole trials.".to_owned(),
            &[],
        ));
    }
    if dossier.arms.iter().any(|arm| arm.id == A_PRIME) {
        shown.push((
            "A second copy of the baseline was an arm of its own (A/A control): a difference between the two copies is a false positive.".to_owned(),
            &[],
        ));
    }
    shown.push((
        "Rates were inverted, so that a ratio above 1 always is a slowdown. Ratios are Hodges–Lehmann estimates over blocks on the logarithmic scale.".to_owned(),
        &["hodges1963"],
    ));
    shown.push((
        "Intervals are exact signed-rank intervals at 95 %, widened where blocks depend on each other or starts of the arms differ.".to_owned(),
        &["wilcoxon1945"],
    ));
    let margins: Vec<String> = dossier
        .study
        .margin
        .iter()
        .map(|(class, margin)| format!("{} {}", harmless(class), percent(*margin)))
        .collect();
    shown.push((
        format!(
            "“Within the margin” means that the interval is inside a margin that was declared before the run ({}).",
            margins.join(", ")
        ),
        &["schuirmann1987"],
    ));
    shown.push((
        "Single differences are judged after the correction of Benjamini and Hochberg over the metrics of an arm.".to_owned(),
        &["benjamini1995"],
    ));
    shown.push((
        format!(
            "The plan was hashed before the first trial (SHA-256 {}); the run {}.",
            harmless(&dossier.study.plan_sha256),
            ended(dossier.stopped_by)
        ),
        &[],
    ));
    shown.extend(not_as_planned(dossier).map(|text| (text, &[] as &[_])));
    shown
}

/// Returns the deviations from the plan, one sentence each.
pub(crate) fn not_as_planned(dossier: &Dossier) -> impl Iterator<Item = String> {
    let deviations = dossier.deviations.iter();
    deviations.map(|it| format!("Not as planned: {}.", harmless(&it.detail)))
}

fn ended(stopped_by: StoppedBy) -> &'static str {
    match stopped_by {
        StoppedBy::Precision => "ended when every ratio was as precise as requested",
        StoppedBy::Blocks => "did all planned blocks",
        StoppedBy::Budget => "ended with its time budget",
        StoppedBy::Interrupted => "was interrupted",
        StoppedBy::Failed => "ended by a failure",
        StoppedBy::Killed => "was killed",
    }
}

/// Returns a result in words, after its sign.
pub(crate) fn word(result: CheckResult) -> &'static str {
    match result {
        CheckResult::Pass => "✓ kept",
        CheckResult::Fail => "✗ not kept",
        CheckResult::Differs => "≠ differs",
        CheckResult::NotKnown => "– not known",
    }
}

/// A checklist rule with its result.
pub(crate) struct Checked {
    pub(crate) number: usize,
    pub(crate) rule: &'static str,
    pub(crate) source: &'static str,
    pub(crate) result: CheckResult,
    pub(crate) detail: String,
}

/// How a rule is decided.
enum Decided {
    /// By items of the dossier's checklist.
    By(&'static [&'static str]),
    /// Guaranteed by the formats.
    Form(&'static str),
    /// By whether the dossier holds the blocks.
    Blocks,
    /// Only the author can answer it, or Tare does not meet it.
    Open(&'static str),
}

use Decided::{Blocks, By, Form, Open};

const RULES: &[(&str, &str, Decided)] = &tare_model::rows! {
    ("Absolute values next to every ratio, and the baseline named", "HB1", By(&["absolute-values"])),
    ("The reason for this choice of workloads and resources", "HB2, SIGPLAN", Open("for the author to write")),
    ("Costs summarised by medians, rates turned over", "HB3", By(&["cost-orientation"])),
    ("No mean of ratios", "HB4", Form("ratios are never averaged: each row stands for itself")),
    ("Number of blocks, interval and level on every number", "HB5, P1", By(&["intervals"])),
    ("Nothing assumed normal, diagnostics shown", "HB6", By(&["diagnostics"])),
    ("The interval of the ratio itself, not two that overlap", "HB7", By(&["interval-of-the-ratio"])),
    (
        "The distribution of every cell",
        "HB8, P5",
        Open(
            "the value of every block is drawn, what each tenth of them costs, and in the form `svg` how they are distributed; quantiles inside of trials are not kept in the dossier",
        ),
    ),
    ("Machine, kernel, settings and hashes of every arm", "HB9, P3", By(&["facts"])),
    ("How concurrent instances were started and summarised", "HB10", By(&["concurrency"])),
    ("A bound to compare with", "HB11", By(&["bound"])),
    ("Raw points drawn; lines only between ordered levels", "HB12", Blocks),
    (
        "Axes of ratios logarithmic, with 1 on them; no bar cut off",
        "SIGPLAN",
        Form("every axis of ratios is; what lies beyond one is an arrow with its number"),
    ),
    ("No more digits than the interval supports", "SIGPLAN", Form("two digits of the interval's half-width")),
    (
        "Open-loop load, or a label that says that it is closed",
        "SIGPLAN",
        Form(
            "closed loop: each operation waits for the one before, unless a parameter names a rate",
        ),
    ),
    ("The plan hashed before the first trial, deviations listed", "P1, P6", By(&["plan"])),
    ("The baseline against itself, and what could have been seen", "P6", By(&["a-a", "detectable-effect"])),
    ("Corrected for the number of comparisons", "P6", By(&["many-cells"])),
    ("A unit and a direction for every metric", "P7", By(&["units"])),
    ("What the experiment cost", "P8", By(&["cost-of-the-run"])),
    ("How far the claim goes", "SIGPLAN", By(&["scope"])),
    (
        "Raw data, plan and report in one archive with checksums",
        "P4, ACM",
        Open(
            "not kept in the dossier; `tare report RUN --bundle FILE` packs raw output, study, dossier, page, versions and checksums into one file to publish, and `tare replay FILE` derives every number of it again",
        ),
    ),
    ("Failures and voided trials counted and shown", "SIGPLAN", By(&["failures"])),
    ("Side costs in addition to speed", "SIGPLAN", By(&["side-costs"])),
};

/// Returns the whole checklist.
pub(crate) fn checklist(dossier: &Dossier) -> Vec<Checked> {
    (1..)
        .zip(RULES)
        .map(|(number, (rule, source, decided))| {
            let (result, detail) = outcome(decided, dossier);
            Checked {
                number,
                rule,
                source,
                result,
                detail,
            }
        })
        .collect()
}

fn outcome(decided: &Decided, dossier: &Dossier) -> (CheckResult, String) {
    match decided {
        Form(why) => (CheckResult::Pass, (*why).to_owned()),
        Open(why) => (CheckResult::NotKnown, (*why).to_owned()),
        Blocks => {
            let mut measured = dossier.cells.iter().filter(|cell| cell.n_blocks > 0);
            if measured.all(|cell| !cell.blocks.is_empty()) {
                (
                    CheckResult::Pass,
                    "every block of every cell is drawn in the page, and is in the dossier"
                        .to_owned(),
                )
            } else {
                (
                    CheckResult::NotKnown,
                    "the dossier does not hold the blocks of every cell, because there are too many or an earlier version made it".to_owned(),
                )
            }
        }
        By(items) => {
            let found: Vec<_> = dossier
                .checklist
                .iter()
                .filter(|item| items.contains(&item.id.as_str()))
                .collect();
            let has = |result| found.iter().any(|item| item.result == result);
            let result = [CheckResult::Fail, CheckResult::Pass]
                .into_iter()
                .find(|result| has(*result));
            let details: Vec<String> = found.iter().map(|item| harmless(&item.detail)).collect();
            let detail = if details.is_empty() {
                "not looked at".to_owned()
            } else {
                details.join("; ")
            };
            (result.unwrap_or(CheckResult::NotKnown), detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_core::testing as composed;

    #[test]
    fn every_sentence_rests_on_works_that_are_listed() {
        let dossier = composed::stored();
        let reported = sentences(&dossier);
        for key in reported.iter().flat_map(|(_, keys)| *keys) {
            assert!(REFERENCES.iter().any(|it| it.key == *key), "{key}");
        }
        for reference in REFERENCES {
            let is_cited = reported
                .iter()
                .any(|(_, keys)| keys.contains(&reference.key));
            assert!(is_cited, "{}", reference.key);
        }
    }

    #[test]
    fn every_checklist_item_decides_a_rule() {
        let dossier = composed::stored();
        for item in &dossier.checklist {
            let decides = RULES.iter().any(|(_, _, decided)| match decided {
                By(items) => items.contains(&item.id.as_str()),
                _ => false,
            });
            assert!(decides, "{}", item.id);
        }
        let checked = checklist(&dossier);
        assert_eq!(checked.len(), 24);
        assert!(checked.iter().all(|rule| rule.detail != "not looked at"));
        let failed = dossier.checklist.iter();
        let failed = failed
            .filter(|item| item.result == CheckResult::Fail)
            .count();
        assert_eq!(
            checked.iter().any(|it| it.result == CheckResult::Fail),
            failed > 0
        );
    }
}
