//! Describes cells in words: names of metrics and verdicts.
//!
//! Sentences use the cell's numbers, so that none can claim more than the interval does. An overhead is given as the
//! range of the interval, not as a point. "Equivalent" names its margin, "inconclusive" names the detectable effect:
//! neither is ever "no overhead".

use std::collections::{BTreeMap, BTreeSet};

use tare_model::arm::{COMMAND, Suspect};
use tare_model::distinguishing::{distinguishing_params, distinguishing_words};
use tare_model::dossier::{Dossier, DossierArm, DossierCell, Span};
use tare_model::study::A_PRIME;
use tare_model::{Params, Value};
use tare_stats::Verdict;

use tare_core::analyze::{
    EFFECT_MOVES, NOT_AFTER_CORRECTION, blocks_to_pass, claims_difference, counted, is_held_up,
};

use super::number::{percent, range};
use super::phrases;
pub(crate) use super::phrases::{sentence, spoken};
use super::starting::times;
pub(crate) use super::starting::{effect, effect_or_dash, is_start, ratio};
use tare_core::foreign::{NO_BREAK, harmless};

/// The meaning of a verdict; each format has its sign and colour for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Overhead beyond the margin.
    Cost,
    /// Overhead of unresolved size.
    SomeCost,
    /// Within the margin.
    Nothing,
    /// A gain.
    Less,
    /// Inconclusive, or not measured.
    Open,
}

/// The names of all cells of a dossier: `syscall.getppid.time` is `syscall getppid`, plus what distinguishes it from
/// other cells of the metric.
pub(crate) struct Names<'a> {
    /// Metrics whose short name is not unique.
    ambiguous: BTreeSet<&'a str>,
    /// The parameters that distinguish the cells of one arm and metric.
    telling: BTreeMap<(&'a str, &'a str), Vec<&'a str>>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(dossier: &'a Dossier) -> Self {
        let mut spoken_as: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        let mut twins: BTreeMap<(&str, &str), Vec<&DossierCell>> = BTreeMap::new();
        for cell in dossier.cells.iter().chain(&dossier.aa) {
            let of_same = twins.entry((&cell.arm, &cell.metric)).or_default();
            if of_same.is_empty() {
                let metrics = spoken_as.entry(spoken(&cell.metric)).or_default();
                metrics.insert(&cell.metric);
            }
            of_same.push(cell);
        }
        let several = spoken_as.into_values().filter(|metrics| metrics.len() > 1);
        let telling = |(key, twins): (_, Vec<&'a DossierCell>)| {
            let params: Vec<_> = twins.iter().map(|twin| &twin.params).collect();
            (key, distinguishing_params(&params))
        };
        Self {
            ambiguous: several.flatten().collect(),
            telling: twins.into_iter().map(telling).collect(),
        }
    }

    /// Returns the name of a cell of the dossier.
    pub(crate) fn name(&self, cell: &DossierCell) -> String {
        let name = if self.ambiguous.contains(cell.metric.as_str()) {
            cell.metric.replace(['.', '-', '_'], " ")
        } else {
            spoken(&cell.metric)
        };
        let shown: Vec<String> = std::iter::once(name).chain(self.details(cell)).collect();
        harmless(&shown.join(" "))
    }

    /// Returns the name of a cell for a sentence.
    pub(crate) fn phrase(&self, cell: &DossierCell) -> String {
        let Some(phrase) = phrases::name_of(&cell.metric) else {
            return self.name(cell);
        };
        let mut details = self.details(cell);
        if let Some(path) = cell.path.map(|path| path.to_string()) {
            let there = path.replace("arm", called(&cell.arm));
            details
                .iter_mut()
                .filter(|it| **it == path)
                .for_each(|it| it.clone_from(&there));
        }
        // A proper name, such as that of a benchmark, says itself what it is.
        if let [only] = &mut details[..]
            && let Some((_, value)) = only.split_once('=')
            && value.contains(char::is_uppercase)
        {
            *only = value.to_owned();
        }
        let is_param = |detail: &String| detail.contains('=');
        let at = details.first().is_some_and(is_param).then_some("at");
        let details = details.iter().map(String::as_str);
        let shown: Vec<&str> = [phrase].into_iter().chain(at).chain(details).collect();
        harmless(&shown.join(" "))
    }

    /// Returns what distinguishes the cell from others of its metric.
    fn details(&self, cell: &DossierCell) -> Vec<String> {
        let key = (cell.arm.as_str(), cell.metric.as_str());
        let telling = self.telling.get(&key).map_or(&[][..], Vec::as_slice);
        distinguishing_words(
            (&cell.params, telling),
            cell.path,
            cell.instances,
            cell.spread,
        )
    }
}

/// Returns the name of one cell; use [`Names`] for many.
pub(crate) fn name(cell: &DossierCell, dossier: &Dossier) -> String {
    Names::new(dossier).name(cell)
}

/// Returns the verdict as a clause, and its tone. The clause says if the processor is emulated or the programs
/// differ, so that the number is not mistaken for the overhead of an environment.
pub(crate) fn verdict(cell: &DossierCell) -> (String, Tone) {
    let (mut clause, tone) = unqualified(cell);
    let has = |id: &str| is_flagged(cell, id);
    if has("cut-off") && cell.verdict.is_cost() {
        let times = cell.ratio.map_or(1.0, |ratio| ratio.low);
        clause = format!(
            "at least {} slower: runs were ended at their limit",
            size(times)
        );
    }
    if is_moving(cell) {
        clause = format!("{clause}; the effect itself moves");
    }
    if has("emulated") {
        clause = format!("emulated: {clause}");
    }
    if has("different-tool") {
        clause = format!("not attributable to the environment: {clause}");
    }
    (clause, tone)
}

fn unqualified(cell: &DossierCell) -> (String, Tone) {
    let margin = percent(cell.margin);
    let Some(ratio) = cell.ratio else {
        return (without_ratio(cell), Tone::Open);
    };
    let more = || sized(cell, &ratio, true);
    let less = || sized(cell, &ratio, false);
    let unresolved = |text: String| format!("{text} (margin {margin})");
    let negligible = |text: String| (format!("negligible: {text}"), Tone::Nothing);
    match cell.verdict {
        Verdict::MaterialCost => (more(), Tone::Cost),
        Verdict::Cost => (unresolved(more()), Tone::SomeCost),
        Verdict::NegligibleCost => negligible(more()),
        Verdict::Equivalent => (format!("within {margin}"), Tone::Nothing),
        Verdict::NegligibleGain => negligible(less()),
        Verdict::Gain => (unresolved(less()), Tone::Less),
        Verdict::MaterialGain => (less(), Tone::Less),
        Verdict::Inconclusive => {
            let mde = cell.mde.filter(|_| !is_start(cell));
            let seen = mde
                .map(|effect| format!(": could have detected {} (80 % power)", percent(effect)))
                .unwrap_or_default();
            (format!("inconclusive{seen}"), Tone::Open)
        }
    }
}

/// Returns the baseline arm.
pub(crate) fn baseline(dossier: &Dossier) -> Option<&DossierArm> {
    dossier.arms.iter().find(|arm| arm.baseline)
}

/// Whether a cell has this flag.
pub(crate) fn is_flagged(cell: &DossierCell, id: &str) -> bool {
    cell.flags.iter().any(|flag| flag.id == id)
}

/// Whether a cell may show something other than its metric.
pub(crate) fn is_doubtful(cell: &DossierCell) -> bool {
    cell.flags.iter().any(|flag| is_doubt(&flag.id))
}

/// Whether a ratio is wide because the effect varies between blocks.
pub(crate) fn is_moving(cell: &DossierCell) -> bool {
    is_flagged(cell, EFFECT_MOVES)
}

/// Replaces the verdict if there are too few blocks.
pub(crate) const TOO_FEW: &str = "too few blocks";

/// Returns the verdict in one or two words, for use next to the numbers.
pub(crate) fn short_verdict(cell: &DossierCell) -> String {
    if cell.ratio.is_none() {
        let flags = [("not-measured", "not measured"), ("no-ratio", "no ratio")];
        let known = flags.into_iter().find(|(id, _)| is_flagged(cell, id));
        return known.map_or(TOO_FEW, |(_, word)| word).to_owned();
    }
    let word = match cell.verdict {
        Verdict::MaterialCost => "overhead".to_owned(),
        Verdict::Cost => "some overhead".to_owned(),
        Verdict::NegligibleCost | Verdict::Equivalent | Verdict::NegligibleGain => {
            format!("within {}", percent(cell.margin))
        }
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::Gain => "some gain".to_owned(),
        Verdict::MaterialGain => "gain".to_owned(),
    };
    let doubt = if is_by_itself(cell) { "?" } else { "" };
    format!("{word}{doubt}")
}

/// Same as `short_verdict`, with warnings: emulated processor, different programs, doubtful value.
pub(crate) fn guarded_verdict(cell: &DossierCell) -> String {
    let mut words = short_verdict(cell);
    for (is_so, word) in [
        (is_flagged(cell, "emulated"), ", emulated"),
        (is_flagged(cell, "different-tool"), ", different tool"),
        (is_moving(cell), ", moves"),
        (is_doubtful(cell), ", doubtful"),
    ] {
        if is_so {
            words.push_str(word);
        }
    }
    words
}

/// Whether a cell shows a difference that does not survive the correction for many metrics.
pub(crate) fn is_by_itself(cell: &DossierCell) -> bool {
    (cell.verdict.is_cost() || cell.verdict.is_gain()) && !is_held_up(cell)
}

/// Whether that counts against the cell. If no result with this number of blocks could pass the correction, it does
/// not, and [`TooFew`] reports it once for the arm.
pub(crate) fn is_doubted(cell: &DossierCell) -> bool {
    is_by_itself(cell) && is_flagged(cell, NOT_AFTER_CORRECTION)
}

/// Too few blocks for any single difference of an arm to survive the correction; reported once instead of in each
/// row.
pub(crate) struct TooFew {
    family: usize,
    n_blocks: u32,
    pub(crate) needed: u32,
}

impl TooFew {
    /// Checks the cells of an arm; `None` if there are enough blocks.
    pub(crate) fn check(cells: &[&DossierCell]) -> Option<Self> {
        let family = cells.iter().filter(|cell| cell.q.is_some()).count();
        let needed = blocks_to_pass(family);
        let all = cells.iter();
        let concerned = all.filter(|cell| is_by_itself(cell) && claims_difference(cell));
        let concerned = concerned.filter(|cell| cell.n_blocks < needed);
        Some(Self {
            family,
            n_blocks: concerned.map(|cell| cell.n_blocks).max()?,
            needed,
        })
    }

    /// Returns the note for the reader.
    pub(crate) fn clause(&self) -> String {
        format!(
            "{} blocks are too few to confirm a single difference among {} metrics ({} would do)",
            self.n_blocks, self.family, self.needed
        )
    }
}

fn without_ratio(cell: &DossierCell) -> String {
    if is_flagged(cell, "not-measured") {
        "not measured".to_owned()
    } else if is_flagged(cell, "no-ratio") {
        "no ratio: a value is not above 0".to_owned()
    } else {
        format!(
            "inconclusive: {} are too few",
            counted(cell.n_blocks as usize, "block")
        )
        .replace("1 block are", "1 block is")
    }
}

/// Formats `15–17 % slower`, `2.1–2.3× slower`, `3–5 % faster`: the range of the interval.
fn sized(cell: &DossierCell, ratio: &Span, is_more: bool) -> String {
    let size = match &cell.difference {
        Some(difference) if is_start(cell) => times(difference, &cell.unit),
        _ => sizes(ratio),
    };
    format!("{size} {}", direction(cell, is_more))
}

/// Formats the range of a change: factors if all of it is twofold or more, else percent of the baseline.
fn sizes(ratio: &Span) -> String {
    let percent = |low: f64, high: f64| format!("{}{NO_BREAK}%", range(100.0 * low, 100.0 * high));
    if ratio.low >= FACTOR {
        format!("{}×", range(ratio.low, ratio.high))
    } else if ratio.point >= 1.0 {
        percent(ratio.low - 1.0, ratio.high - 1.0)
    } else if ratio.high <= 1.0 / FACTOR {
        format!("{}×", range(1.0 / ratio.high, 1.0 / ratio.low))
    } else {
        percent(1.0 - ratio.high, 1.0 - ratio.low)
    }
}

/// From this factor on, a change is given as a factor, below it in percent.
const FACTOR: f64 = 2.0;

/// Formats the size of a change without direction: `16 %`, `2.6×`; a decrease in percent of the baseline.
pub(crate) fn size(ratio: f64) -> String {
    let factor = if ratio < 1.0 { 1.0 / ratio } else { ratio };
    if factor >= FACTOR {
        return format!("{factor:.*}×", usize::from(factor < 10.0));
    }
    let percent = 100.0 * (ratio - 1.0).abs();
    format!("{percent:.*}{NO_BREAK}%", usize::from(percent < 10.0))
}

/// Whether the metric is an amount (memory, disk space, a count), where more is not slower.
pub(crate) fn is_amount(cell: &DossierCell) -> bool {
    matches!(cell.unit.as_str(), "B" | "count")
}

/// Returns the direction of a change: slower or faster for time and rates, more or less for amounts.
pub(crate) fn direction(cell: &DossierCell, is_more: bool) -> &'static str {
    match (is_amount(cell), is_more) {
        (true, true) => "more",
        (true, false) => "less",
        (false, true) => "slower",
        (false, false) => "faster",
    }
}

/// Returns the name of an arm, with its purpose if Tare chose it: a step of a ladder, or a suspect's trial.
pub(crate) fn purpose(arm: &DossierArm) -> String {
    purpose_by(&arm.id, &arm.settings)
}

/// Same as `purpose`, by name and stored settings.
pub(crate) fn purpose_by(arm: &str, settings: &Params) -> String {
    let setting = |name: &str| settings.0.get(&format!("{COMMAND}{name}"));
    let causes = || {
        let Some(Value::List(suspects)) = setting("causes") else {
            return None;
        };
        let read = |text: &Value| serde_json::from_str::<Suspect>(&text.to_string()).ok();
        let causes: Vec<String> = suspects
            .iter()
            .filter_map(read)
            .map(|it| it.cause)
            .collect();
        (!causes.is_empty()).then(|| format!("to try {}", causes.join(" and ")))
    };
    let what = match (setting("metric"), setting("rung"), setting("title")) {
        // The arm that the user asked about.
        (Some(_), ..) => None,
        (None, Some(_), Some(title)) => Some(format!("up to {title}")),
        _ => causes(),
    };
    let id = called(arm);
    harmless(&what.map_or_else(|| id.to_owned(), |what| format!("{id} ({what})")))
}

/// Same as `purpose`, by name.
pub(crate) fn purpose_of(arm: &str, dossier: &Dossier) -> String {
    let known = dossier.arms.iter().find(|other| other.id == arm);
    known.map_or_else(|| harmless(called(arm)), purpose)
}

/// Returns the displayed name of an arm.
pub fn called(arm: &str) -> &str {
    if arm == A_PRIME { "A′" } else { arm }
}

/// Formats a command for a shell: words that a shell would split or interpret are quoted. The first word is never
/// quoted, because it may stand for the beginning of a line.
pub fn command_line(command: &[String]) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_=+.,:/@%…".contains(letter);
    let words = command.iter().enumerate().map(|(place, word)| {
        if place == 0 || (!word.is_empty() && word.chars().all(is_plain)) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the meaning of a flag that the table must show; `None` for harmless ones.
pub(crate) fn meaning(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "emulated" => {
            "EMULATED: a processor or a system imitated by software, not what the environment costs"
        }
        "different-tool" => {
            "DIFFERENT TOOL: not the same program on both sides, so the ratio is not attributable to the environment"
        }
        "autocorrelated" => "blocks depend on each other: the interval is widened",
        "launches-differ" => "starts of the arms differ: the interval is widened",
        "one-launch" => {
            "the arms were started once: what differs from start to start is in no interval"
        }
        "drifting-effect" => "the effect drifts during the run: equivalence cannot be claimed",
        "effect-moves" => {
            "MOVES: the effect itself changes from block to block, while the baseline's two copies agree: not the machine's noise"
        }
        "rare-slices" => {
            "few slow slices: all together differ by more or less than the typical one"
        }
        "order-effect" => "the ratio depends on the arm's place in the block",
        "fragile" => "one block decides: without it the verdict would be another",
        "bimodal" => "the ratio has two modes: the middle describes neither",
        "tails" => "heavy tails: the mean tells another story than the typical value",
        "no-spread" => "every block gave the same: a count, or a clock too coarse to see the noise",
        "repeated-trials" => "trials were repeated in their block",
        "steal" => "the hypervisor took time away",
        "contended" => "some blocks lost more than 5 % to the hypervisor",
        "throttled" => "ERROR, not comparable: a processor quota that the study does not ask for",
        "clock-confounded" => "the processor's frequency or the clock differs between the arms",
        "not-steady" => "the series inside the trials do not settle",
        "coarse-timer" => "batches are too short for the clock",
        "not-linear" => "twice the work does not take twice the time",
        "slow-clock" => "reading the clock is a system call here",
        "other-processor" => "arm and baseline took their turns on different processors",
        "incomplete-blocks" => "blocks with a value on one side only are left out",
        "not-significant-after-correction" => {
            "significant by itself, not among the cells of its arm: measure it again before believing it"
        }
        "page-cache" => {
            "DOUBTFUL: the bytes did not come from or go to the device, but the page cache"
        }
        "shallow-queue" => "DOUBTFUL: far fewer requests were in flight than the study asks for",
        "short-interval" => "DOUBTFUL: the tool timed an interval that is short against its clock",
        "little-overlap" => "the instances were not at work at the same time",
        "no-common-clock" => "the instances have no clock in common",
        "more-threads-than-cpus" => "more threads than processors: they waited for each other",
        "log-arithmetic" => "DOUBTFUL: the tool's own figures do not fit together",
        "impossible-cpu-time" => "DOUBTFUL: more processor time was accounted than there was",
        "retransmits" => "packets were sent again",
        "packet-loss" => "packets were lost or came twice",
        "other-answers" => "the server answers with other contents than the baseline's",
        "reconnects" => "the server closed connections that were to stay open",
        "cut-off" => {
            "runs were ended at their limit and count as at least so long: the ratio is a lower bound"
        }
        "gaps" => "the tool did not measure all of the time",
        "output-cut" => "the tool printed more than was kept",
        _ => return None,
    })
}

/// Whether a flag means that something other than the named metric was measured.
pub(crate) fn is_doubt(flag: &str) -> bool {
    meaning(flag).is_some_and(|meaning| meaning.starts_with("DOUBTFUL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_shell_quoted() {
        let shown = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            command_line(&words)
        };
        assert_eq!(shown(&["ls", "-l", "--a=b", "/x"]), "ls -l --a=b /x");
        assert_eq!(
            shown(&["docker run … image", "sh", "-c", "echo $i, it's", ""]),
            r"docker run … image sh -c 'echo $i, it'\''s' ''"
        );
    }

    #[test]
    fn every_sanity_flag_is_explained_below_table() {
        for kind in tare_core::workload::sanity::KINDS {
            assert!(meaning(kind).is_some(), "{kind}");
        }
    }
}
