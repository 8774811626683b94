//! Prints the result of `tare why`: the verdict in a sentence, a waterfall of what each mechanism adds, the findings
//! with their evidence, the counters behind them, and how the command was carried into the environment.
//!
//! Each bar starts where the one above ends, so that they add up visually; every number is next to its bar, and no
//! information is in a bar or colour alone.

use tare_model::dossier::{
    AnswerLine, Dossier, DossierApplied, DossierFinding, DossierLadder, DossierRung, DossierWhy,
    Span,
};
use tare_model::{AnswerLabel, CheckResult, Status, StoppedBy, whole_place};

use super::Style;
use super::counters::{CHARGED, counters};
use super::text::{Paint, bold, painted, paragraph, width, wrapped};
use crate::failures;
use crate::number::{decimals, scale_for, significant, typical, with_unit};
use crate::waterfall::{Adds, Bar, Waterfall};
use crate::words::{baseline, command_line, sentence};
use tare_core::driver::user_container;
use tare_core::foreign::{NO_BREAK, harmless};

/// The number of findings shown in full if nothing was tried.
const SHOWN_UNTRIED: usize = 2;
/// The maximum length of a bar.
const BAR_MOST: usize = 40;
/// Shorter bars are useless and omitted.
const BAR_LEAST: usize = 8;
/// The maximum columns of a step's title.
const TITLE_MOST: usize = 34;

/// Formats a time with few digits, for sentences.
pub fn time(ns: f64) -> String {
    let scale = scale_for(ns, "ns");
    let digits = significant((ns / scale.factor).abs(), 3);
    with_unit(&format!("{:.digits$}", ns / scale.factor), scale).replace(NO_BREAK, " ")
}

/// Returns the style of an answer, whose lines are at most this long.
fn narrowed(style: Style) -> Style {
    Style {
        width: style.drawable().width.min(100),
        ..style
    }
}

/// Renders the answer.
pub fn why(dossier: &Dossier, style: Style) -> String {
    let mut out = String::new();
    let Some(why) = &dossier.why else {
        return super::table(dossier, style);
    };
    let style = narrowed(style);
    let blocks = dossier.cells.iter().map(|cell| cell.n_blocks).max();
    let heading = format!(
        "{} · {} in {} against {} · run {} · {} blocks · seed {}",
        command_line(&why.command),
        metric_text(&why.metric),
        why.arm,
        base(dossier).0,
        dossier.run,
        blocks.unwrap_or(0),
        dossier.study.seed
    );
    bold(&mut out, &heading, style);
    answer(&mut out, dossier, why, style);
    if let Some(ladder) = &dossier.ladder {
        out.push('\n');
        waterfall(&mut out, ladder, base(dossier).1, style);
    }
    if !dossier.findings.is_empty() {
        out.push('\n');
    }
    let is_shown = |place: usize, finding: &DossierFinding| {
        place < SHOWN_UNTRIED || finding.status != Status::Untested
    };
    let findings = dossier.findings.iter().enumerate();
    let (shown, others): (Vec<_>, Vec<_>) =
        findings.partition(|(place, finding)| is_shown(*place, finding));
    for (number, (_, finding)) in (1..).zip(shown) {
        draw_finding(&mut out, number, finding, dossier, style);
    }
    if !others.is_empty() {
        let others = others.iter().map(|(_, finding)| finding.cause.as_str());
        let others: Vec<&str> = others.collect();
        paragraph(
            &mut out,
            "also possible, and not tried: ",
            &others.join(", "),
            style,
        );
    }
    differences(&mut out, dossier, &why.arm, style);
    notes(&mut out, dossier, why, style);
    not_measured(&mut out, dossier, style);
    out
}

/// Renders the answer without its breakdown.
pub fn short_answer(dossier: &Dossier, style: Style) -> String {
    let Some(why) = &dossier.why else {
        return super::table(dossier, style);
    };
    let mut out = String::new();
    let style = narrowed(style);
    answer(&mut out, dossier, why, style);
    not_measured(&mut out, dossier, style);
    let more = format!("tare show {} for the breakdown", dossier.run);
    paragraph(&mut out, "  ", &more, style);
    out
}

/// Writes the headline and the lines below it.
fn answer(out: &mut String, dossier: &Dossier, why: &DossierWhy, style: Style) {
    bold(out, &sentence(&why.answer), style);
    let is_told = |line: &&AnswerLine| beginning(line.label).len() == COLUMN;
    let (told, listed): (Vec<_>, Vec<_>) = why.lines.iter().partition(is_told);
    for lines in [told, listed] {
        if !lines.is_empty() {
            out.push('\n');
        }
        for line in lines {
            paragraph(out, beginning(line.label), &line.text, style);
        }
    }
    if let Some(applied) = &why.applied {
        paragraph(out, "  ", &sentence(&applied_text(applied)), style);
    }
    let compared = why.carried.iter().find(|line| line.starts_with(COMPARED));
    if let Some(line) = compared {
        paragraph(out, "  ", &sentence(line), style);
    }
    if !dossier.complete && dossier.stopped_by != StoppedBy::Budget {
        let text = format!("INCOMPLETE: {}", dossier.stopped_by);
        paragraph(out, "", &text, style);
    }
}

/// The width of the labels of a cause.
const COLUMN: usize = 10;

/// Returns the label of an answer line, with indent.
fn beginning(label: AnswerLabel) -> &'static str {
    match label {
        AnswerLabel::Cause => "  Cause   ",
        AnswerLabel::Fix => "  Fix     ",
        AnswerLabel::Price => "  Price   ",
        AnswerLabel::Unexplained => "  Rest    ",
        AnswerLabel::StartUp => "  Start   ",
        AnswerLabel::Work => "  Work    ",
        AnswerLabel::FirstRun => "  First run: ",
        AnswerLabel::Userland => "  Userland: ",
        AnswerLabel::RuledOut => "  Not the cause: ",
        AnswerLabel::Undecided => "  Not decided: ",
        AnswerLabel::NotTested => "  Not tested: ",
        AnswerLabel::Next => "  Next: ",
    }
}

fn not_measured(out: &mut String, dossier: &Dossier, style: Style) {
    let failures = failures::of_answer(dossier);
    for failure in failures::summarized(&failures) {
        paragraph(out, "not measured: ", &failure.text, style);
        if let Some(hint) = failure.hint {
            paragraph(out, "  hint: ", hint, style);
        }
    }
}

/// Returns the bare label of an answer line, as for a definition list.
pub(crate) fn label(line: &AnswerLine) -> &'static str {
    beginning(line.label).trim().trim_end_matches(':')
}

/// The prefix of the line that names the comparison of a user's container.
const COMPARED: &str = "compared with: ";

/// Describes the result of an applied change, without the final full stop.
pub(crate) fn applied_text(applied: &DossierApplied) -> String {
    let ratio = applied
        .ratio
        .map(|ratio| {
            format!(
                " it is at {:.2}× of what it is compared with [{:.2}, {:.2}],",
                ratio.point, ratio.low, ratio.high
            )
        })
        .unwrap_or_default();
    let left = applied
        .left
        .map(|left| {
            let percent = |part: f64| 100.0 * part;
            format!(
                " {:.0} % of the cost is left [{:.0}, {:.0}]",
                percent(left.point),
                percent(left.low),
                percent(left.high)
            )
        })
        .unwrap_or_default();
    let word = match applied.is_gone {
        Some(true) => "the cost is gone",
        Some(false) => "the cost is NOT gone",
        None => "whether the cost is gone was not decided",
    };
    let colon = if left.is_empty() { " " } else { ": " };
    format!(
        "applied once more, {}:{ratio}{left}{colon}{word} (price: {})",
        applied.change, applied.price
    )
}

/// The first line of a ladder that starts with a host process.
const HOST: &str = "host, a bare process";

/// Returns the name of the comparison base: for the end of a sentence, and for the first line of the ladder.
pub(crate) fn base(dossier: &Dossier) -> (&'static str, &'static str) {
    match baseline(dossier) {
        Some(arm) if arm.id == user_container::IMAGE => {
            let rungs = dossier.ladder.iter().map(|ladder| &ladder.rungs);
            let mut first = rungs.filter_map(|rungs| rungs.first());
            let begin = if first.any(|rung| rung.arm == arm.id) {
                HOST
            } else {
                "the image's files, a bare process"
            };
            ("its image's files as a bare process", begin)
        }
        Some(arm) if arm.id != "host" => {
            ("a plain one of its image", "the image in a plain container")
        }
        _ => ("the host", HOST),
    }
}

/// Returns the name of the baseline arm.
pub(crate) fn base_arm(dossier: &Dossier) -> String {
    baseline(dossier).map_or_else(|| "host".to_owned(), |arm| harmless(&arm.id))
}

/// Describes a metric of a command in words.
pub(crate) fn metric_text(id: &str) -> String {
    match id {
        "command.wall.time" => "wall time".to_owned(),
        "command.cpu.time" => "processor time".to_owned(),
        "command.picked.cost" => "the number picked, less is better".to_owned(),
        "command.picked.rate" => "the number picked, more is better".to_owned(),
        other => harmless(other),
    }
}

/// Formats what a span adds, with sign and interval.
pub(crate) fn added(span: &Span, unit: &str) -> String {
    let largest = span.low.abs().max(span.high.abs());
    let scale = scale_for(largest, unit);
    let half = (span.high - span.low) / 2.0 / scale.factor;
    let digits = decimals(half).min(significant(largest / scale.factor, 3));
    let signed = |number: f64| {
        let text = format!("{:+.digits$}", number / scale.factor);
        // A number that rounds to zero has no sign.
        if text[1..].bytes().all(|byte| matches!(byte, b'0' | b'.')) {
            text[1..].to_owned()
        } else {
            text
        }
    };
    let point = with_unit(&signed(span.point), scale).replace(NO_BREAK, " ");
    format!("{point} [{}, {}]", signed(span.low), signed(span.high))
}

/// One line of the waterfall.
struct Line {
    title: String,
    number: String,
    /// The ends of the bar; `None` draws none.
    bar: Option<Bar>,
    paint: Paint,
    note: Option<String>,
}

fn lines(ladder: &DossierLadder, base: &str) -> Vec<Line> {
    let bars = Waterfall::new(ladder);
    let shown = |span: &Option<Span>| typical(span.as_ref(), &ladder.unit).replace(NO_BREAK, " ");
    let mut lines = vec![Line {
        title: base.to_owned(),
        number: shown(&ladder.base),
        bar: bars.base,
        paint: Paint::Plain,
        note: None,
    }];
    for (place, (rung, bar)) in bars.steps.iter().enumerate() {
        let mut line = step(rung, *bar, &ladder.unit);
        let is_told = |above: &DossierRung| above.note.is_some() && above.note == rung.note;
        if ladder.rungs[..place].iter().any(is_told) {
            line.note = Some("the same as above".to_owned());
        }
        lines.push(line);
    }
    lines.push(Line {
        title: harmless(&ladder.arm),
        number: shown(&ladder.env),
        bar: bars.env,
        paint: Paint::Plain,
        note: None,
    });
    lines
}

fn step(rung: &DossierRung, bar: Option<Bar>, unit: &str) -> Line {
    let title = format!("  {}", harmless(&rung.title));
    let note = rung.note.as_deref().map(harmless);
    let Some(span) = &rung.adds else {
        return Line {
            title,
            number: "–".to_owned(),
            bar: None,
            paint: Paint::Dim,
            note,
        };
    };
    Line {
        title,
        number: added(span, unit),
        bar,
        paint: match Adds::classify(span) {
            Adds::More => Paint::Red,
            Adds::Less => Paint::Cyan,
            Adds::Unsure => Paint::Dim,
        },
        note,
    }
}

fn waterfall(out: &mut String, ladder: &DossierLadder, base: &str, style: Style) {
    let limit = style.width;
    let lines = lines(ladder, base);
    let longest =
        |of: fn(&Line) -> &str| lines.iter().map(|line| width(of(line))).max().unwrap_or(0);
    let number_width = longest(|line| &line.number);
    let title_width = longest(|line| &line.title)
        .min(TITLE_MOST)
        .min(limit.saturating_sub(number_width + 2).max(12));
    let rest = limit.saturating_sub(title_width + number_width + 4);
    let bar_width = if rest < BAR_LEAST {
        0
    } else {
        rest.min(BAR_MOST)
    };
    let largest = Waterfall::new(ladder).top;
    for line in &lines {
        if title_width + number_width + 2 > limit {
            let text = format!("{}: {}", line.title.trim_start(), line.number);
            paragraph(out, "", &text, style);
        } else {
            let titles = wrapped(
                line.title.trim_start(),
                title_width.saturating_sub(2).max(8),
            );
            let indent = if line.title.starts_with("  ") {
                "  "
            } else {
                ""
            };
            for (place, title) in titles.iter().enumerate() {
                let title = format!("{}{title}", if place == 0 { indent } else { "    " });
                if place > 0 {
                    out.push_str(&title);
                    out.push('\n');
                    continue;
                }
                let bar = bar(line, largest, bar_width);
                let text = format!(
                    "{title}{}  {}{}",
                    " ".repeat(title_width.saturating_sub(width(&title))),
                    " ".repeat(number_width.saturating_sub(width(&line.number))),
                    line.paint.apply(&line.number, style.colour)
                );
                let full = format!("{text}  {}", line.paint.apply(bar.trim_end(), style.colour));
                out.push_str(full.trim_end());
                out.push('\n');
            }
        }
        if let Some(note) = &line.note {
            paragraph(out, "      ", note, style);
        }
    }
    if let (Some(sum), Some(total)) = (ladder.sum, &ladder.total) {
        let scale = scale_for(total.point, &ladder.unit);
        let digits = significant((total.point / scale.factor).abs(), 3);
        let sum = with_unit(&format!("{:+.digits$}", sum / scale.factor), scale);
        let verdict = match ladder.agrees {
            Some(true) => "they agree",
            Some(false) => "they do not agree: trust the total, and the steps only roughly",
            None => "not compared",
        };
        let text = format!(
            "The steps add up to {sum}; measured directly it is {}: {verdict}. A step whose interval holds 0 is not distinguishable from zero.",
            added(total, &ladder.unit)
        );
        paragraph(out, "", &text, style);
    }
    for line in &ladder.together {
        paragraph(out, "not taken apart: ", line, style);
    }
}

/// Renders the bar of a line: full blocks if it is significant, light ones if it may be zero.
fn bar(line: &Line, largest: f64, columns: usize) -> String {
    let Some((from, to)) = line.bar.filter(|_| columns > 0 && largest > 0.0) else {
        return String::new();
    };
    let place = |value: f64| {
        let column = ((value.max(0.0) / largest) * columns as f64).round();
        whole_place(column)
    };
    let (from, to) = (place(from).min(columns), place(to).min(columns));
    let letter = match line.paint {
        Paint::Dim => '▒',
        Paint::Cyan => '░',
        _ => '█',
    };
    let length = (to - from).max(usize::from(to < columns || from == to));
    // A bar too short for a block is drawn as a line.
    let text: String = if to == from {
        "▏".to_owned()
    } else {
        std::iter::repeat_n(letter, length.min(to - from)).collect()
    };
    format!("{}{text}", " ".repeat(from))
}

fn draw_finding(
    out: &mut String,
    number: usize,
    finding: &DossierFinding,
    dossier: &Dossier,
    style: Style,
) {
    let paint = match finding.status {
        Status::Confirmed => Paint::Red,
        Status::Supported => Paint::Yellow,
        _ => Paint::Dim,
    };
    // A share of start-up is one of start-up and command together.
    let cell = finding.cells.first();
    let cell = cell.and_then(|index| dossier.cells.get(*index as usize));
    let cost = match cell {
        Some(cell) if cell.metric.starts_with("start-up.") => "the cost of start-up and command",
        _ => "the cost",
    };
    let share = finding
        .share
        .map(|share| format!(", {}", share_text(&share, cost)))
        .unwrap_or_default();
    let heading = format!("{number}. {}: {}{share}", finding.cause, finding.status);
    painted(out, paint, &heading, style);
    paragraph(out, "   ", &finding.claim, style);
    if finding.status == Status::Refuted {
        if let Some(tried) = &finding.tried {
            paragraph(out, "   tried: ", tried, style);
        }
        return;
    }
    for line in &finding.evidence {
        paragraph(out, "   · ", line, style);
    }
    if let Some(tried) = &finding.tried {
        let unit = cell.map_or("ns", |cell| cell.unit.as_str());
        let effect = finding
            .effect
            .map(|effect| format!(": {} of {cost}", added(&effect, unit).replace('+', "")))
            .unwrap_or_default();
        paragraph(out, "   tried: ", &format!("{tried}{effect}"), style);
    }
    paragraph(out, "   do: ", &finding.advice, style);
    paragraph(out, "   price: ", &finding.price, style);
}

/// Writes the known differences between host and environment, and whether they ran the same program.
fn differences(out: &mut String, dossier: &Dossier, arm: &str, style: Style) {
    /// The work directory of Tare's probes; the command uses another.
    const PROBES_OWN: &str = "workdir";
    let mut is_first = true;
    for (result, word) in [
        (CheckResult::Fail, "not equal: "),
        (CheckResult::Differs, "differs: "),
    ] {
        let items = dossier.parity.iter().filter(|item| item.result == result);
        for item in items {
            let what = item.id.strip_prefix(arm);
            let what = what.and_then(|rest| rest.strip_prefix('.'));
            if let Some(what) = what.filter(|what| *what != PROBES_OWN) {
                if std::mem::take(&mut is_first) {
                    out.push('\n');
                }
                let text = format!("{what}: {}", item.detail);
                paragraph(out, word, &text, style);
            }
        }
    }
}

/// Formats the share of the slowdown that a cause explains, with its interval; shares above all or below nothing say
/// so.
pub(crate) fn share_text(share: &Span, cost: &str) -> String {
    let [point, low, high] = [share.point, share.low, share.high].map(|part| part * 100.0);
    let message = format!("[{low:.0}, {high:.0}]");
    if share.point > 1.0 {
        format!("all of {cost} ({point:.0} % {message})")
    } else if share.point <= 0.0 {
        format!("nothing of {cost} ({point:.0} % {message})")
    } else {
        format!("{point:.0} % of {cost} {message}")
    }
}

/// Writes counters, start-up, and how the command was carried into the environment.
fn notes(out: &mut String, dossier: &Dossier, why: &DossierWhy, style: Style) {
    out.push('\n');
    for (told, prefix) in [
        (format!("per run, {} → inside: ", base_arm(dossier)), ""),
        ("charged per run by the host's kernel: ".to_owned(), CHARGED),
    ] {
        let counters = counters(why, prefix);
        if !counters.is_empty() {
            paragraph(out, &told, &counters.join("; "), style);
        }
    }
    if let Some(span) = &why.start_up_ns {
        let text = format!(
            "creating and removing `{}` takes {} each time [{}, {}]; that is in no number above, because the environment is kept while the command is measured",
            why.arm,
            time(span.point),
            time(span.low),
            time(span.high)
        );
        paragraph(out, "start-up: ", &text, style);
    }
    let shown = |line: &&String| !line.starts_with(COMPARED);
    for line in why.carried.iter().filter(shown) {
        paragraph(out, "carried: ", line, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> DossierLadder {
        let rung = |title: &str, adds: Option<Span>, note: Option<&str>| DossierRung {
            title: title.into(),
            arm: "rung-1".into(),
            adds,
            note: note.map(str::to_owned),
        };
        DossierLadder {
            arm: "docker".into(),
            metric: "command.wall.time".into(),
            unit: "ns".into(),
            base: Some(Span::new(0.99e9, 1e9, 1.01e9)),
            env: Some(Span::new(2.0e9, 2.1e9, 2.2e9)),
            total: Some(Span::new(1.05e9, 1.1e9, 1.15e9)),
            rungs: vec![
                rung(
                    "Docker with all off: namespaces, root, cgroups, capabilities",
                    Some(Span::new(-4e6, 1e6, 6e6)),
                    None,
                ),
                rung(
                    "AppArmor",
                    None,
                    Some("not available here: no \u{1b}[31mLSM"),
                ),
                rung(
                    "user namespace",
                    None,
                    Some("not available here: no \u{1b}[31mLSM"),
                ),
                rung("cpus = 0.5", Some(Span::new(1.04e9, 1.1e9, 1.16e9)), None),
            ],
            sum: Some(1.101e9),
            sum_span: None,
            agrees: Some(true),
            together: vec!["what comes as one".into()],
        }
    }

    #[test]
    fn waterfall_fits_width_and_bars_are_contiguous() {
        let plain = |width| Style {
            width,
            colour: false,
        };
        for limit in [20, 30, 40, 60, 80, 100] {
            let mut out = String::new();
            waterfall(&mut out, &ladder(), "host", plain(limit));
            for line in out.lines() {
                assert!(width(line) <= limit, "{limit}: {line}");
            }
            assert!(!out.contains('\u{1b}'), "{out}");
        }
        let mut out = String::new();
        waterfall(&mut out, &ladder(), "host", plain(100));
        let bar = |title: &str| {
            let line = out.lines().find(|line| line.contains(title)).unwrap();
            let begin = line.chars().position(|letter| letter == '█').unwrap();
            (begin, line.chars().filter(|letter| *letter == '█').count())
        };
        let (host, step) = (bar("host"), bar("cpus"));
        assert!(step.0.abs_diff(host.0 + host.1) <= 1, "{out}");
        assert_eq!(out.matches("not available here").count(), 1, "{out}");
        assert!(out.contains("the same as above"), "{out}");
        assert!(out.contains("they agree"), "{out}");
    }

    #[test]
    fn value_rounded_to_zero_has_no_sign() {
        let text = added(&Span::new(-1e6, 1e3, 1e6), "ns");
        assert!(!text.contains("-0 ") && !text.contains("+0."), "{text}");
        assert_eq!(time(1.0234e9), "1.02 s");
    }
}
