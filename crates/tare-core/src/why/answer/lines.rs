//! Writes the lines below the headline: the cause as far as it is proved, the fix and its price, what was ruled out,
//! and what was not tested.

use tare_model::arm::FirstRun;
use tare_model::dossier::{AnswerLine, DossierFinding, DossierLadder, Span};
use tare_model::{AnswerLabel, ArmSpec, Status, WhyOutcome, WhyReason};

use super::{Spent, Terms, plural, size};
use crate::cause;
use crate::driver::user_container::{
    self as own_env, ALIKE, AS_TYPED, NOT_MEASURED, NOT_REMOVED, OWN, STARTING,
};
use crate::foreign::harmless;
use crate::why::more_blocks::is_most;
use crate::why::observed::COMPLAINT;
use crate::why::user_container;

/// The maximum number of causes shown with a fix; the breakdown lists the rest.
const CAUSES_MOST: usize = 3;
/// The maximum number of names in one line.
const NAMES_MOST: usize = 6;
/// The maximum number of remaining differences that counts as a result.
const LEFT_MOST: usize = 4;
/// From this share on, "the slowdown goes away", not "a part of it".
const ALL_FROM: f64 = 0.9;
/// Below both of these, in per cent, no unexplained part is reported: its point estimate and its upper bound.
const UNEXPLAINED: (f64, f64) = (5.0, 25.0);

/// The input of the lines.
#[derive(Debug)]
pub(crate) struct Below<'a> {
    pub(crate) outcome: WhyOutcome,
    pub(crate) env: &'a ArmSpec,
    pub(crate) arms: &'a [ArmSpec],
    pub(crate) findings: &'a [DossierFinding],
    pub(crate) explained: Option<&'a Span>,
    pub(crate) userland: Option<String>,
    pub(crate) ladder: Option<&'a DossierLadder>,
    pub(crate) is_interrupted: bool,
    pub(crate) terms: Terms,
    pub(crate) spent: &'a Spent,
}

/// How far the reason is known, and the lines.
pub(crate) fn below(it: &Below<'_>) -> (Option<WhyReason>, Vec<AnswerLine>) {
    let work = it.doubts().map(|text| line(AnswerLabel::Work, text));
    let userland = it.userland.clone();
    let userland = userland.map(|text| line(AnswerLabel::Userland, text));
    let noun = match it.outcome {
        WhyOutcome::Cost => it.terms.loss,
        WhyOutcome::Gain => it.terms.gain,
        _ => {
            let start = it.starts();
            let alike = it.alike().into_iter();
            let alike = alike.map(|text| line(AnswerLabel::NotTested, text));
            let lines = work.chain(start).chain(userland).chain(alike);
            return (None, lines.collect());
        }
    };
    let mut lines: Vec<AnswerLine> = work.collect();
    let (reason, about_cause) = it.cause(noun);
    lines.extend(about_cause);
    let unexplained = it.explained.and_then(|share| unexplained(share, noun));
    let is_found = matches!(reason, WhyReason::Confirmed | WhyReason::Together);
    let is_whole = is_found && unexplained.is_none();
    lines.extend(it.starts());
    lines.extend(unexplained.map(|text| line(AnswerLabel::Unexplained, text)));
    lines.extend(userland);
    let ruled_out = it
        .with_status(Status::Refuted)
        .filter(|pair| !it.has_members(pair));
    let ruled_out = ruled_out.map(|finding| match finding.share {
        Some(share) if !is_found => format!("{} ({})", name(finding), percents(&share)),
        _ => name(finding),
    });
    lines.extend(list(AnswerLabel::RuledOut, ruled_out.collect()));
    if is_whole {
        return (Some(reason), lines);
    }
    let undecided: Vec<&DossierFinding> = it
        .with_status(Status::Undecided)
        .filter(|finding| !it.is_in_confirmed_set(finding))
        .collect();
    let (of_pair, untested): (Vec<_>, Vec<_>) = it
        .with_status(Status::Untested)
        .partition(|finding| it.is_half_of_cause(finding));
    let first = of_pair.into_iter();
    let first = first.chain(undecided.iter().copied());
    let first = first.chain(untested.iter().copied());
    let first: Vec<String> = first.take(2).map(short_name).collect();
    let untested: Vec<String> = untested.into_iter().map(with_reason).collect();
    let undecided = undecided.into_iter().map(name).collect();
    lines.extend(list(AnswerLabel::Undecided, undecided));
    lines.extend(list(AnswerLabel::NotTested, untested));
    let is_elsewhere = it.in_every_container().is_some();
    if !is_found && !it.is_interrupted && !first.is_empty() && !is_elsewhere {
        let text = format!(
            "`--budget {}` would try first: {}",
            it.spent.with_search(),
            first.join(", ")
        );
        lines.push(line(AnswerLabel::Next, text));
    }
    (Some(reason), lines)
}

impl<'a> Below<'a> {
    fn with_status(&self, status: Status) -> impl Iterator<Item = &'a DossierFinding> {
        let findings = self.findings.iter();
        findings.filter(move |finding| finding.status == status)
    }

    /// Whether this is a pair, each of whose members already has the same result alone.
    fn has_members(&self, pair: &DossierFinding) -> bool {
        members(pair).is_some_and(|mut ids| {
            ids.all(|id| {
                let mut same = self.with_status(pair.status);
                same.any(|it| it.cause.strip_prefix(OWN) == Some(id))
            })
        })
    }

    /// Whether it was removed only with others, which are confirmed together.
    fn is_in_confirmed_set(&self, finding: &DossierFinding) -> bool {
        let mut confirmed = self.with_status(Status::Confirmed);
        finding.arm.is_some() && confirmed.any(|it| it.arm == finding.arm)
    }

    /// Whether this is one of a pair that takes the slowdown away together.
    fn is_half_of_cause(&self, finding: &DossierFinding) -> bool {
        let id = finding.cause.strip_prefix(OWN);
        [Status::Confirmed, Status::Supported]
            .into_iter()
            .flat_map(|status| self.with_status(status))
            .filter_map(members)
            .any(|mut ids| ids.any(|member| Some(member) == id))
    }

    /// Reasons to doubt that both sides do the same work.
    fn doubts(&self) -> impl Iterator<Item = String> + use<'_> {
        let asked = self.env.role.asked.iter();
        let carried = asked.flat_map(|asked| &asked.carried);
        carried.filter(|text| text.starts_with(COMPLAINT)).cloned()
    }

    /// The cause as far as it is proved.
    fn cause(&self, noun: &str) -> (WhyReason, Vec<AnswerLine>) {
        let mut confirmed: Vec<&DossierFinding> = self.with_status(Status::Confirmed).collect();
        // Two names of one switch share one measurement.
        confirmed.dedup_by(|later, first| later.arm == first.arm);
        if !confirmed.is_empty() {
            let are_several = confirmed.len() > 1 || is_pair(confirmed[0]);
            let shown = confirmed.iter().take(CAUSES_MOST);
            let lines = shown.flat_map(|finding| self.finding_lines(finding, "confirmed", noun));
            let reason = if are_several {
                WhyReason::Together
            } else {
                WhyReason::Confirmed
            };
            return (reason, lines.collect());
        }
        let set = self
            .with_status(Status::Supported)
            .find(|it| it.cause == user_container::SEVERAL);
        if let Some(share) = set.and_then(|set| set.share) {
            let text = format!(
                "not found yet: several differences together cause {} of the {noun}",
                percents(&share).replace(" of it", "")
            );
            return (WhyReason::SeveralLeft, vec![line(AnswerLabel::Cause, text)]);
        }
        let supported = self
            .with_status(Status::Supported)
            .filter(|it| it.arm.is_some());
        let parts = supported.take(CAUSES_MOST);
        let parts: Vec<AnswerLine> = parts
            .flat_map(|finding| {
                let word = if is_most(finding) {
                    "not proved within the time"
                } else {
                    "a part of it"
                };
                self.finding_lines(finding, word, noun)
            })
            .collect();
        if !parts.is_empty() {
            return (WhyReason::Partly, parts);
        }
        if let Some(likely) = self.with_status(Status::Likely).next() {
            let tried = likely.tried.as_deref().unwrap_or_default();
            let text = format!(
                "{}: likely: everything else was ruled out; {tried}",
                name(likely)
            );
            return (WhyReason::Eliminated, self.with_advice(text, likely));
        }
        let (reason, text) = self.not_found();
        (reason, vec![line(AnswerLabel::Cause, text)])
    }

    fn finding_lines(&self, finding: &DossierFinding, word: &str, noun: &str) -> Vec<AnswerLine> {
        let went = finding.share.map_or_else(String::new, |share| {
            format!("; {}", self.went(finding, &share, noun))
        });
        self.with_advice(format!("{}: {word}{went}", name(finding)), finding)
    }

    /// A cause with its fix and price; a cause of a speed-up has no fix.
    fn with_advice(&self, text: String, finding: &DossierFinding) -> Vec<AnswerLine> {
        let is_gain = self.outcome == WhyOutcome::Gain;
        let more = [
            (AnswerLabel::Fix, &finding.advice),
            (AnswerLabel::Price, &finding.price),
        ];
        let more = more
            .into_iter()
            .filter(|(_, text)| !(is_gain || text.is_empty()));
        let more = more.map(|(label, text)| line(label, text.clone()));
        std::iter::once(line(AnswerLabel::Cause, text))
            .chain(more)
            .collect()
    }

    /// The result of trying the finding's switch.
    fn went(&self, finding: &DossierFinding, share: &Span, noun: &str) -> String {
        let mut suspects = self
            .arms
            .iter()
            .filter(|arm| Some(arm.id.as_str()) == finding.arm.as_deref())
            .flat_map(|arm| &arm.role.suspects);
        let is_outside = suspects.any(|it| it.cause == finding.cause && it.is_outside);
        let it = if is_pair(finding) { "them" } else { "it" };
        let part = if share.point >= ALL_FROM {
            ""
        } else {
            "a part of "
        };
        let (how, verb) = if is_outside {
            (format!("with {it} outside"), "appears there too")
        } else {
            (format!("without {it}"), "goes away")
        };
        format!("{how} {part}the {noun} {verb}: {}", percents(share))
    }

    /// What each start costs.
    fn starts(&self) -> impl Iterator<Item = AnswerLine> + use<> {
        let start = self.start_up();
        let first_run = self.first_run();
        start
            .map(|text| line(AnswerLabel::StartUp, text))
            .into_iter()
            .chain(first_run.map(|text| line(AnswerLabel::FirstRun, text)))
    }

    /// What the first run in every new container does that the next need not.
    fn first_run(&self) -> Option<String> {
        let asked = self.env.role.asked.as_ref()?;
        let FirstRun {
            first_ns,
            next_ns,
            written,
        } = asked.first_run.as_ref()?;
        let places: Vec<String> = written
            .iter()
            .map(|(place, n)| match n {
                1 => format!("`{}`", harmless(place)),
                _ => format!("{n} files in `{}`", harmless(place)),
            })
            .collect();
        let written = if places.is_empty() {
            "Have what it writes".to_owned()
        } else {
            format!("It writes {}: have that", places.join(", "))
        };
        Some(format!(
            "{} in a new container, {} in its next run; each new container pays the first again. {written} in the image (run the command once when it is built) or in a volume",
            size::time(*first_ns as f64),
            size::time(*next_ns as f64),
        ))
    }

    /// The start-up time, if it was measured on the user's container.
    fn start_up(&self) -> Option<String> {
        let asked = self.env.role.asked.as_ref()?;
        let carried = asked.carried.iter();
        let is_known = |line: &&String| line.starts_with(STARTING) || line.starts_with(AS_TYPED);
        let known: Vec<&str> = carried.filter(is_known).map(String::as_str).collect();
        let life_ns = asked.life_ns?;
        own_env::is_own(&self.env.settings).then(|| {
            if known.is_empty() {
                let life = size::time(life_ns as f64);
                return format!("{STARTING}{life}, once; it is not in these numbers");
            }
            known.join("; ")
        })
    }

    /// Notes on what both sides share, which could be slow on both, and on what was not measured.
    fn alike(&self) -> Vec<String> {
        let asked = self.env.role.asked.iter();
        let carried = asked.flat_map(|asked| &asked.carried);
        let message = carried.filter_map(|text| {
            let mounted = text.strip_prefix(ALIKE).map(|mounted| {
                format!("what both sides have: a file system that is slow on both is in no difference: {mounted}")
            });
            let kept = text.strip_prefix(NOT_REMOVED);
            let kept = kept.map(|kept| format!("what both sides have, and what it costs is in no difference: {kept}"));
            let is_missing = text.starts_with(NOT_MEASURED);
            mounted.or(kept).or_else(|| is_missing.then(|| text.clone()))
        });
        message.collect()
    }

    /// The share of the slowdown in a container without any of the differences, if it is at least half.
    fn in_every_container(&self) -> Option<f64> {
        let ladder = self.ladder?;
        let rung = ladder
            .rungs
            .iter()
            .find(|rung| rung.arm == user_container::PLAIN)?;
        let (adds, total) = (rung.adds?, ladder.total?);
        let share = adds.point / total.point;
        (adds.low > 0.0 && share >= 0.5).then_some(share)
    }

    fn not_found(&self) -> (WhyReason, String) {
        let is_left =
            |it: &&DossierFinding| matches!(it.status, Status::Undecided | Status::Untested);
        let left = self.findings.iter().filter(is_left).count();
        let is_own = own_env::is_own(&self.env.settings);
        let was_tried = self.findings.iter().any(|it| it.arm.is_some());
        let n_ruled_out = self.with_status(Status::Refuted).count();
        if is_own && n_ruled_out > 0 && (1..=LEFT_MOST).contains(&left) {
            let number = u32::try_from(left).unwrap_or(u32::MAX);
            let are = if left == 1 { "is" } else { "are" };
            let text = format!(
                "not found yet: {} {are} left, everything else was ruled out",
                plural(number, "difference")
            );
            return (WhyReason::SeveralLeft, text);
        }
        if let Some(share) = self.in_every_container() {
            let text = format!(
                "not found yet: {:.0} % of it is in every container, also without these differences (its layers, cgroups, the runtime); `tare why --env oci -- CMD` takes that apart",
                100.0 * share.min(1.0)
            );
            return (WhyReason::NotFound, text);
        }
        let mut others = self.arms.iter().filter(|arm| arm.id != self.env.id);
        let was_run = others.any(|arm| !arm.role.suspects.is_empty());
        let text = match (was_tried, self.ladder.is_some()) {
            (false, _) if is_own && was_run => "not found yet: what was tried is not decided",
            (false, _) if is_own => "not found yet: there was no time to test any difference",
            (_, true) => "not found yet; the breakdown shows which step adds it",
            _ => "not found yet",
        };
        (WhyReason::NotFound, text.to_owned())
    }
}

fn line(label: AnswerLabel, text: String) -> AnswerLine {
    AnswerLine { label, text }
}

/// Names in one line, up to the maximum.
fn list(label: AnswerLabel, mut names: Vec<String>) -> Option<AnswerLine> {
    let n_more = names.len().saturating_sub(NAMES_MOST);
    names.truncate(NAMES_MOST);
    if n_more > 0 {
        names.push(format!("and {n_more} more"));
    }
    (!names.is_empty()).then(|| line(label, names.join(", ")))
}

fn unexplained(explained: &Span, noun: &str) -> Option<String> {
    let left = |explained: f64| (100.0 * (1.0 - explained)).max(0.0);
    let (point, most) = (left(explained.point), left(explained.low));
    (point >= UNEXPLAINED.0 || most >= UNEXPLAINED.1).then(|| {
        format!(
            "{point:.0} % of the {noun} stays unexplained [{:.0}, {most:.0}]",
            left(explained.high)
        )
    })
}

fn percents(share: &Span) -> String {
    let [point, low, high] = [share.point, share.low, share.high].map(|part| {
        let text = format!("{:.0}", part * 100.0);
        if text == "-0" { "0".to_owned() } else { text }
    });
    format!("{point} % of it [{low}, {high}]")
}

/// The names of a pair's members.
fn members(pair: &DossierFinding) -> Option<impl Iterator<Item = &str>> {
    let ids = pair.cause.strip_prefix(OWN)?;
    ids.contains('+').then(|| ids.split('+'))
}

fn is_pair(finding: &DossierFinding) -> bool {
    members(finding).is_some()
}

/// A difference of the user's container by its description; a cause of the catalogue by title and id.
fn name(finding: &DossierFinding) -> String {
    if finding.cause.starts_with(OWN) {
        return user_container::named(&finding.claim);
    }
    match cause::find(&finding.cause) {
        Some(entry) => {
            let mut letters = entry.title.chars();
            let first = letters.next().into_iter().flat_map(char::to_lowercase);
            let title: String = first.chain(letters).collect();
            format!("{title} ({})", finding.cause)
        }
        None => finding.cause.clone(),
    }
}

/// A short form for a cause whose full name is above.
fn short_name(finding: &DossierFinding) -> String {
    if finding.cause.starts_with(OWN) {
        name(finding)
    } else {
        finding.cause.clone()
    }
}

/// The name of an untested suspect, with what would test it or why that is impossible.
fn with_reason(finding: &DossierFinding) -> String {
    match &finding.tried {
        Some(tried) if !finding.cause.starts_with(OWN) || finding.arm.is_some() => {
            format!("{} ({tried})", name(finding))
        }
        _ => name(finding),
    }
}
