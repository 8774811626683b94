//! The page's section on causes: the findings with fix and price, the ladder as a waterfall with its numbers, and how
//! the command was carried into the environment.
//!
//! Limits: shows only causes that were suspected and tested.

use maud::{Markup, html};
use tare_model::Status;
use tare_model::dossier::{Dossier, DossierFinding, DossierLadder, DossierWhy, Span};

use super::{figures, prose};
use crate::number::{or_dash, typical};
use crate::terminal::{CHARGED, added, base_arm, counters, share_text, time};
use crate::waterfall::{Adds, Bar, Waterfall};
use crate::words::command_line;
use tare_core::foreign::harmless;

/// Renders the findings, strongest first as in the dossier; refuted ones are collapsed.
pub(super) fn findings(dossier: &Dossier) -> Markup {
    let (refuted, standing): (Vec<_>, Vec<_>) = dossier
        .findings
        .iter()
        .partition(|finding| finding.status == Status::Refuted);
    html! {
        @for finding in standing { (item(finding, dossier)) }
        @if !refuted.is_empty() {
            details {
                summary { "Tried and refuted (" (refuted.len()) ")" }
                @for finding in refuted { (item(finding, dossier)) }
            }
        }
    }
}

fn item(finding: &DossierFinding, dossier: &Dossier) -> Markup {
    let cells = finding.cells.iter();
    let mut arms: Vec<&str> = cells
        .filter_map(|place| Some(dossier.cells.get(*place as usize)?.arm.as_str()))
        .collect();
    arms.dedup();
    let unit = finding
        .cells
        .first()
        .and_then(|place| dossier.cells.get(*place as usize));
    let unit = unit.map_or("ns", |cell| cell.unit.as_str());
    let share = finding
        .share
        .map(|share| format!(", {}", share_text(&share, "the cost")));
    html! {
        article {
            h3 {
                code { (harmless(&finding.cause)) }
                @if !arms.is_empty() { " in " (harmless(&arms.join(", "))) }
                ": " (finding.status) @if let Some(share) = share { (share) }
            }
            p { (prose(&finding.claim)) }
            @if !finding.evidence.is_empty() { ul { @for line in &finding.evidence { li { (prose(line)) } } } }
            dl.facts {
                @if let Some(tried) = &finding.tried { dt { "tried" } dd { (prose(tried)) } }
                @if let Some(effect) = &finding.effect { dt { "went with it" } dd { (added(effect, unit)) " of the cost" } }
                @if finding.status != Status::Refuted {
                    dt { "what to do" } dd { (prose(&finding.advice)) }
                    dt { "its price" } dd { (prose(&finding.price)) }
                }
            }
        }
    }
}

/// Renders the ladder from the baseline to the whole environment.
pub(super) fn ladder(ladder: &DossierLadder, base: &str) -> Markup {
    let bars = Waterfall::new(ladder);
    let drawn = |bar: Bar, class: &str| self::bar(bar, bars.top, class);
    let shown = |span: &Option<Span>| typical(span.as_ref(), &ladder.unit);
    html! {
        table.ladder {
            caption { "From " (base) ", to " (harmless(&ladder.arm)) ": what each step adds, with its 95 % interval. Each bar begins where the one above ends; dashed: not distinguishable from zero." }
            thead { tr { th scope="col" { "step" } th.num scope="col" { "adds" } th.iv scope="col" { span.sr { "drawn" } } } }
            tbody {
                tr { th scope="row" { (base) } td.num { (shown(&ladder.base)) } td.iv { @if let Some(bar) = bars.base { (drawn(bar, "")) } } }
                @for (rung, bar) in &bars.steps {
                    tr {
                        th scope="row" { (harmless(&rung.title)) @if let Some(note) = &rung.note { br; span.note { (prose(note)) } } }
                        td.num { (or_dash(rung.adds.as_ref(), |span| added(span, &ladder.unit))) }
                        td.iv { @if let (Some(span), Some(bar)) = (&rung.adds, bar) { (drawn(*bar, class(span))) } }
                    }
                }
                tr { th scope="row" { strong { (harmless(&ladder.arm)) } } td.num { (shown(&ladder.env)) } td.iv { @if let Some(bar) = bars.env { (drawn(bar, "")) } } }
            }
        }
        @if let (Some(sum), Some(total)) = (ladder.sum, &ladder.total) {
            p { "The steps add up to " (figures::number(sum, (total.high - total.low) / 2.0, &ladder.unit)) "; measured directly it is " (added(total, &ladder.unit)) ": "
                (match ladder.agrees { Some(true) => "they agree.", Some(false) => "they do not agree, so trust the total, and the steps only roughly.", None => "not compared." }) }
        }
        @for line in &ladder.together { p.note { "Not taken apart: " (prose(line)) } }
    }
}

/// Renders the bar of one ladder step, scaled to `whole`.
fn bar((from, to): Bar, whole: f64, class: &str) -> Markup {
    let place = |value: f64| (value.max(0.0) / whole).clamp(0.0, 1.0);
    let (low, high) = (place(from), place(to));
    html! {
        svg width="100%" height="14" aria-hidden="true" {
            rect class={ "bar " (class) } x=(figures::pc(low)) width=(figures::pc((high - low).max(0.003))) y="1" height="12" {}
        }
    }
}

fn class(span: &Span) -> &'static str {
    match Adds::classify(span) {
        Adds::More => "up",
        Adds::Less => "down",
        Adds::Unsure => "unsure",
    }
}

/// Renders the command's counters and how the command was carried into the environment.
pub(super) fn command(dossier: &Dossier, why: &DossierWhy) -> Markup {
    let message = [
        (format!("per run, {} → inside", base_arm(dossier)), ""),
        ("charged by the host's kernel".to_owned(), CHARGED),
    ];
    let shown = message.map(|(what, prefix)| (what, counters(why, prefix)));
    html! {
        dl.facts {
            dt { "command" } dd { code { (harmless(&command_line(&why.command))) } }
            @for (what, lines) in &shown { @if !lines.is_empty() { dt { (what) } dd { (lines.join("; ")) } } }
            @if let Some(start_up) = &why.start_up_ns {
                dt { "creating and removing it" } dd { (time(start_up.point)) " each time [" (time(start_up.low)) ", " (time(start_up.high)) "], which is in no number above" }
            }
            @for line in &why.carried { dt { "carried" } dd { (prose(line)) } }
        }
    }
}
