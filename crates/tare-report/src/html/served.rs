//! The pages of `tare serve` in addition to single runs: the list with search, a comparison of two runs, the history
//! of a metric, and a running run. None needs a script.
//!
//! The store is not read here: the server passes the data in and resolves the links.

use maud::{Markup, html};
use tare_model::Params;
use tare_model::dossier::{Dossier, DossierCell, Span};

use super::{Kind, document, figures, prose, scroll};
use crate::axis::{RatioAxis, is_one, tick_label};
use crate::number::{glance, or_dash, percent};
use crate::terminal::both;
use crate::terminal::two_runs::{Called, describe, order, sum, verdict_word};
use crate::words::{self, Names};
use tare_core::analyze::run_comparison::{Row, beside, row as set_beside};
use tare_core::foreign::harmless;

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub run: String,
    /// Its study.
    pub study: String,
    /// The study's title.
    pub title: String,
    /// Its arms.
    pub arms: Vec<String>,
    /// When it began.
    pub started: String,
    /// The number of stored trials.
    pub trials: u32,
    /// How it ended, in words.
    pub ended: String,
}

/// Renders the list of runs: `n_found` of `n_all` match the search, of which `found` are shown.
pub fn index(found: &[Listed], n_found: usize, n_all: usize, search: &str) -> String {
    let body = html! {
        main {
            h1 { "Runs" }
            form.tools action="/" role="search" {
                label { "Find " input type="search" name="find" value=(harmless(search)); }
                button type="submit" { "Find" }
                @if !search.is_empty() { a href="/" { "all" } }
            }
            p.meta {
                (n_found) " of " (n_all) " runs"
                @if n_found > found.len() { "; the newest " (found.len()) " are shown" }
                "."
            }
            @if n_all == 0 { p { "The store holds no run yet; " code { "tare run" } " makes one." } }
            @else if !found.is_empty() {
                form action="/compare" {
                    (scroll("runs", &html! {
                        table.runs role="table" {
                            caption { "Choose one as A and one as B to compare their overheads." }
                            thead role="rowgroup" { tr role="row" {
                                @for head in ["A", "B", "run", "study", "arms", "began (UTC)", "trials", "ended by", "more"] {
                                    th.num[head == "trials"] scope="col" role="columnheader" { (head) }
                                }
                            } }
                            tbody role="rowgroup" { @for (at, line) in found.iter().enumerate() { (listed(at, line)) } }
                        }
                    }))
                    p { button type="submit" { "Compare A with B" } }
                }
            }
        }
    };
    document("Runs", &body, Kind::Served(None))
}

fn listed(at: usize, line: &Listed) -> Markup {
    let run = harmless(&line.run);
    html! {
        tr role="row" {
            @for (name, chosen) in [("a", 1), ("b", 0)] {
                td role="cell" data-label=(name.to_uppercase()) { input type="radio" name=(name) value=(run) aria-label={ (run) " as " (name.to_uppercase()) } checked[at == chosen]; }
            }
            th scope="row" role="rowheader" { a href={ "/run/" (run) } { (run) } }
            td role="cell" { (harmless(&line.study)) @if line.title != line.study { br; span.note { (harmless(&line.title)) } } }
            td role="cell" data-label="arms" { (harmless(&line.arms.join(", "))) }
            td.when role="cell" data-label="began" { (harmless(&line.started)) } td.num role="cell" data-label="trials" { (line.trials) } td role="cell" data-label="ended by" { (harmless(&line.ended)) }
            td role="cell" { a href={ "/metrics/" (run) } { "over time" } " · " a href={ "/run/" (run) ".json" } { "data" } }
        }
    }
}

/// Renders the comparison of two runs: A, usually the earlier, and B.
pub fn compared(first: &Dossier, second: &Dossier) -> String {
    let called = Called::A_AND_B;
    let set = beside(first, second);
    let names = Names::new(second);
    let mut rows: Vec<&Row<'_>> = set.rows.iter().collect();
    rows.sort_by_key(|row| order(row));
    let spans = rows
        .iter()
        .filter_map(|row| Some((row.quotient?, row.second.margin)));
    let axis = RatioAxis::of_spans(spans);
    let only = [
        (&set.only_first, "A", Names::new(first)),
        (&set.only_second, "B", Names::new(second)),
    ];
    let title = format!(
        "Runs {} and {}",
        harmless(&first.run),
        harmless(&second.run)
    );
    let body = html! {
        (home())
        main {
            h1 { (title) }
            p.answer { (sum(&set, called)) }
            dl.facts { @for (dossier, name) in [(first, "A"), (second, "B")] { dt { (name) } dd { a href={ "/run/" (harmless(&dossier.run)) } { (describe(dossier)) } } } }
            @if !rows.is_empty() {
                table.costs role="table" {
                    caption { "The ratio of each environment to its baseline in both runs, and B over A with a 95 % interval made of both: right of 1 the overhead is larger in B. The grey field is the margin; the axis is logarithmic." }
                    thead role="rowgroup" { tr role="row" {
                        th scope="col" role="columnheader" { "metric, arm" }
                        @for head in ["ratio in A", "ratio in B", "B ÷ A"] { th.num scope="col" role="columnheader" { (head) } }
                        th.iv.axis scope="col" role="columnheader" { span.sr { "the interval drawn" } (figures::axis(axis)) }
                        th scope="col" role="columnheader" { "verdict" }
                    } }
                    tbody role="rowgroup" { @for row in rows {
                        @let (said, tone) = verdict_word(row, called);
                        tr role="row" {
                            th scope="row" role="rowheader" { a href={ "/history?" (question(row.second)) } { (names.name(row.second)) ", " (harmless(&row.second.arm)) } }
                            td.num role="cell" data-label="in A" { (words::effect_or_dash(row.first)) }
                            td.num role="cell" data-label="in B" { (words::effect_or_dash(row.second)) }
                            td.num role="cell" data-label="B ÷ A" { (ratio(row.quotient.as_ref())) }
                            @if let Some(quotient) = &row.quotient { td.iv.(figures::class(tone)) role="cell" { (figures::interval(axis, quotient, row.second.margin)) } }
                            @else { td.iv.empty role="cell" { "–" } }
                            td.verdict.(figures::class(tone)) role="cell" { (sign(row)) " " (said) }
                        }
                    } }
                }
            }
            @for (cells, name, names) in &only { @if !cells.is_empty() {
                h2 { "Only in " (name) }
                ul { @for cell in *cells { li { (names.name(cell)) ", " (harmless(&cell.arm)) ": " (words::verdict(cell).0) } } }
            } }
        }
    };
    document(&title, &body, Kind::Served(None))
}

fn ratio(span: Option<&Span>) -> String {
    or_dash(span, glance)
}

/// Returns a sign that carries the same information as the colour.
fn sign(row: &Row<'_>) -> char {
    match order(row) {
        0 if row.verdict.is_cost() => '▲',
        0 => '▼',
        1 => '?',
        2 => '=',
        _ => '–',
    }
}

fn home() -> Markup {
    html! { nav aria-label="Pages" { ul { li { a href="/" { "All runs" } } } } }
}

/// Returns the query string by which the server finds a cell in other runs.
fn question(cell: &DossierCell) -> String {
    format!("cell={}", encoded(&what_is_asked(cell)))
}

/// Returns the identity of a cell across runs, as text: everything that [`is_same_question`] compares except the
/// revision, because a history shows its changes.
///
/// [`is_same_question`]: tare_core::analyze::run_comparison::is_same_question
fn what_is_asked(cell: &DossierCell) -> String {
    serde_json::json!([
        cell.arm,
        cell.baseline,
        cell.workload,
        cell.metric,
        cell.params,
        cell.path,
        cell.instances,
        cell.spread
    ])
    .to_string()
}

/// Encodes text as a URL field.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Renders the metrics of a run, each with a link to its history.
pub fn metrics(dossier: &Dossier) -> String {
    let names = Names::new(dossier);
    let title = format!("Metrics of run {}", harmless(&dossier.run));
    let body = html! {
        (home())
        main {
            h1 { (title) }
            p { "Each leads to what it cost in all stored runs that measured it. " a href={ "/run/" (harmless(&dossier.run)) } { "The run" } }
            @for arm in &dossier.arms {
                @let cells = dossier.cells_of(&arm.id);
                @if !cells.is_empty() {
                    h2 { (harmless(&arm.id)) }
                    ul { @for cell in cells { li { a href={ "/history?" (question(cell)) } { (names.name(cell)) } ": " (words::verdict(cell).0) } } }
                }
            }
            @if dossier.cells.is_empty() { p { "Nothing was compared in this run." } }
        }
    };
    document(&title, &body, Kind::Served(None))
}

/// A metric in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// The run.
    pub run: String,
    /// When it began.
    pub started: String,
    /// The kernel of its baseline.
    pub kernel: String,
    /// The result.
    pub cell: DossierCell,
}

/// Returns the cell of a dossier that a link of these pages requests.
pub fn asked<'a>(question: &str, dossier: &'a Dossier) -> Option<&'a DossierCell> {
    let mut cells = dossier.cells.iter();
    cells.find(|cell| what_is_asked(cell) == question)
}

/// Renders a metric over runs, oldest first; `n_left_out` older runs were skipped.
pub fn history(moments: &[Moment], n_left_out: usize) -> String {
    let Some(last) = moments.last() else {
        let body =
            html! { (home()) main { h1 { "No such metric" } p { "No stored run measured it." } } };
        return document("No such metric", &body, Kind::Served(None));
    };
    let cell = &last.cell;
    let mut parts = vec![words::spoken(&cell.metric)];
    parts.extend(
        cell.params
            .0
            .iter()
            .map(|(name, value)| format!("{name} = {value}")),
    );
    parts.extend(cell.path.map(|path| path.to_string()));
    if cell.instances > 1 {
        parts.push(format!("×{}", cell.instances));
    }
    let name = harmless(&parts.join(", "));
    let sides = format!(
        "{} against {}",
        harmless(&cell.arm),
        harmless(&cell.baseline)
    );
    let title = format!("{name}: {sides}");
    let body = html! {
        (home())
        main {
            h1 { (title) }
            p.answer { (changed(moments)) }
            @if n_left_out > 0 { p.note { (n_left_out) " older runs were not looked at." } }
            (over_time(moments, &title))
            (scroll("every run", &html! { table {
                caption { "Every run, the newest first, compared with the one before it." }
                thead { tr { th scope="col" { "run" } th.num scope="col" { (harmless(&cell.baseline)) " → " (harmless(&cell.arm)) } th.num scope="col" { "ratio [95 % CI]" } th scope="col" { "verdict" } th.num scope="col" { "÷ the run before" } } }
                tbody { @for (at, moment) in moments.iter().enumerate().rev() {
                    @let before = at.checked_sub(1).map(|at| &moments[at]);
                    tr {
                        th scope="row" { a href={ "/run/" (harmless(&moment.run)) } { (harmless(&moment.run)) } br; span.note { span.when { (harmless(&moment.started)) } br; "kernel " (harmless(&moment.kernel)) } }
                        td.num { (both(&moment.cell)) } td.num { (words::effect_or_dash(&moment.cell)) }
                        td.verdict.(figures::tone(&moment.cell)) { (words::guarded_verdict(&moment.cell)) }
                        td.num { @if let Some(before) = before {
                            @let row = set_beside(&before.cell, &moment.cell);
                            a href={ "/compare?a=" (encoded(&before.run)) "&b=" (encoded(&moment.run)) } { (sign(&row)) " " (ratio(row.quotient.as_ref())) }
                        } @else { "–" } }
                    }
                } }
            } }))
        }
    };
    document(&title, &body, Kind::Served(None))
}

/// Compares the newest run with the previous one and with the first.
fn changed(moments: &[Moment]) -> String {
    let n = moments.len();
    let [first, .., last] = moments else {
        return "One run measured it.".to_owned();
    };
    let shown = |before: &Moment, words: &str| {
        let row = set_beside(&before.cell, &last.cell);
        match order(&row) {
            0 => format!(
                "it differs from {words}: × {}",
                ratio(row.quotient.as_ref())
            ),
            1 => format!(
                "whether it differs from {words} is inconclusive: ratio {}",
                ratio(row.quotient.as_ref())
            ),
            2 => format!(
                "it is the same as in {words} within {}",
                percent(last.cell.margin)
            ),
            _ => format!("not comparable with {words}: one of them has no ratio"),
        }
    };
    let mut text = format!(
        "{n} runs measured it; in the newest {}",
        shown(&moments[n - 2], "the run before")
    );
    if n > 2 {
        text.push_str(", and ");
        text.push_str(&shown(first, "the first"));
    }
    text + "."
}

const HEIGHT: f64 = 190.0;
const LEFT: f64 = 0.08;

/// Renders the ratio in each run with its interval, in order of time.
fn over_time(moments: &[Moment], title: &str) -> Markup {
    let spans = moments
        .iter()
        .filter_map(|moment| Some((moment.cell.ratio?, moment.cell.margin)));
    if spans.clone().count() < 2 {
        return html! {};
    }
    let axis = RatioAxis::of_spans(spans);
    let x = |at: usize| LEFT + (1.0 - LEFT) * (at as f64 + 0.5) / moments.len() as f64;
    let y = |ratio: f64| HEIGHT * (1.0 - axis.place(ratio).clamp(0.0, 1.0));
    let margin = moments.last().map_or(0.0, |moment| moment.cell.margin);
    let (above, below) = (y(1.0 + margin), y(1.0 / (1.0 + margin)));
    html! {
        figure {
            svg width="100%" height=(figures::px(HEIGHT + 18.0)) role="img" aria-label={ (title) ": the cost in each of " (moments.len()) " runs with its 95 % interval, in order of time" } {
                rect.zone x=(figures::pc(LEFT)) width=(figures::pc(1.0 - LEFT)) y=(figures::px(above)) height=(figures::px(below - above)) {}
                @for tick in axis.ticks() {
                    line.(if is_one(tick) { "one" } else { "grid" }) x1=(figures::pc(LEFT)) x2="100%" y1=(figures::px(y(tick))) y2=(figures::px(y(tick))) {}
                    text x=(figures::pc(LEFT - 0.01)) y=(figures::px(y(tick) + 4.0)) text-anchor="end" { (tick_label(tick)) }
                }
                @for (at, moment) in moments.iter().enumerate() { @if let Some(span) = &moment.cell.ratio {
                    @let place = figures::pc(x(at));
                    g.(figures::tone(&moment.cell)) {
                        line.line x1=(place) x2=(place) y1=(figures::px(y(span.low))) y2=(figures::px(y(span.high))) {}
                        @if (0.0..=1.0).contains(&axis.place(span.point)) { circle.mark cx=(place) cy=(figures::px(y(span.point))) r="3.6" {} }
                        @else { text.mark x=(place) y=(if span.point > 1.0 { "11".to_owned() } else { figures::px(HEIGHT) }) text-anchor="middle" { (if span.point > 1.0 { "▲" } else { "▼" }) } }
                    }
                } }
                @if let [first, .., last] = moments {
                    @let below = figures::px(HEIGHT + 14.0);
                    text x=(figures::pc(LEFT)) y=(below) { (day(first)) }
                    text x="100%" y=(below) text-anchor="end" { (day(last)) }
                }
            }
            figcaption { "Ratio to the baseline in each run, logarithmic, the oldest left; points: estimates, lines: 95 % intervals, grey: the margin." }
        }
    }
}

/// Returns the start date of a run.
fn day(moment: &Moment) -> String {
    harmless(moment.started.split(['T', ' ']).next().unwrap_or_default())
}

/// A run in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// The run.
    pub run: String,
    /// The study's title.
    pub title: String,
    /// The number of stored trials.
    pub trials: u32,
    /// Seconds since it began.
    pub seconds: u64,
    /// Its time limit in seconds, if any.
    pub budget_s: Option<u64>,
    /// Its arms: name, stored settings, and the reason if it is missing.
    pub arms: Vec<(String, Params, Option<String>)>,
    /// The number of workloads that are measured well enough, and of all.
    pub done: (usize, usize),
    /// Its remarks.
    pub remarks: Vec<String>,
}

/// Seconds between reloads of the page of a run in progress.
const AGAIN_S: u32 = 5;

/// Renders the page of a run in progress: only stored data, because deriving results would disturb the run.
pub fn live(run: &Live) -> String {
    let name = harmless(&run.run);
    let title = format!("{} (at work)", harmless(&run.title));
    let body = html! {
        (home())
        main {
            h1 { (title) }
            p.meta { "run " code { (name) } "; this page is loaded again every " (AGAIN_S) " s until the run ends" }
            dl.facts {
                dt { "trials" } dd { (run.trials) }
                dt { "time" } dd {
                    (run.seconds) " s"
                    @if let Some(budget) = run.budget_s {
                        " of at most about " (budget) " s "
                        progress value=(run.seconds.min(budget)) max=(budget.max(1)) aria-label="time used" {}
                    }
                }
                dt { "done" } dd { (run.done.0) " of " (run.done.1) " workloads are measured well enough" }
            }
            h2 { "Arms" }
            ul { @for (arm, settings, missing) in &run.arms { li { (words::purpose_by(arm, settings)) @if let Some(reason) = missing { ": not available: " (harmless(reason)) } } } }
            @if !run.remarks.is_empty() { h2 { "Remarks" } ul { @for remark in &run.remarks { li { (prose(remark)) } } } }
            p { a href={ "/run/" (name) "?so-far" } { "The answer so far" } ": to derive it takes processor time, which the run may notice." }
        }
    };
    document(&title, &body, Kind::Served(Some(AGAIN_S)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_page_shows_remarks_and_arms_like_report() {
        let step = Params::new()
            .with("command.rung", 1)
            .with("command.title", "a <layer>");
        let page = live(&Live {
            run: "r".to_owned(),
            title: "t".to_owned(),
            trials: 1,
            seconds: 1,
            budget_s: None,
            arms: vec![("rung-1".to_owned(), step, Some("no engine".to_owned()))],
            done: (0, 1),
            remarks: vec!["seccomp is `off` in <host>".to_owned()],
        });
        assert!(
            page.contains("seccomp is <code>off</code> in &lt;host&gt;"),
            "{page}"
        );
        assert!(
            page.contains("rung-1 (up to a &lt;layer&gt;): not available: no engine"),
            "{page}"
        );
    }

    #[test]
    fn cell_link_parameters_are_percent_encoded() {
        assert_eq!(encoded("a b&c=\"<é"), "a+b%26c%3D%22%3C%C3%A9");
        assert!(
            encoded("['\"#?")
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'%')
        );
    }
}
