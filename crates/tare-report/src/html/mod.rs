//! A self-contained HTML page of a run, for browsers, printers and screen readers.
//!
//! The answer comes first, then the overheads, the causes, and the data behind every number. All markup goes through
//! a template that escapes by default, and the finished text through the filter that shows control and direction
//! characters. The page's policy allows only its one style and one script, by hash: nothing is loaded, nothing is
//! sent, and no text from a dossier can run. Only sorting and filtering need the script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use tare_model::StoppedBy;
use tare_model::dossier::{Dossier, DossierArm};
use tare_model::study::A_PRIME;

use super::answer;
use super::format::{Format, ReportOutput};
use super::method::not_as_planned;
use super::svg;
use super::terminal::two_runs::machine;
use super::terminal::{self, applied_text, label, tail};
use super::words::{Names, command_line, purpose, sentence};
use tare_core::foreign::harmless;

mod costs;
mod course;
mod figures;
mod published;
mod record;
mod served;
mod shift;
mod sweep;
mod why;

pub use served::{Listed, Live, Moment, asked, compared, history, index, live, metrics};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The HTML page format.
pub static HTML: Format = Format::new(
    "html",
    "self-contained page for browser and print: overhead, causes, every block, method",
    |material| ReportOutput::Text(page(material.dossier)),
);

/// Renders the page of a dossier.
pub fn page(dossier: &Dossier) -> String {
    document(&title(dossier), &body(dossier), Kind::Report)
}

/// The kind of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A standalone file, with the script that sorts and filters.
    Report,
    /// A page of `tare serve`: no script, forms that query the same server; reloaded after this many seconds, if any.
    Served(Option<u32>),
}

fn document(title: &str, body: &Markup, kind: Kind) -> String {
    let has_script = kind == Kind::Report;
    let script = if has_script {
        format!("'sha256-{}'", base64(&Sha256::digest(SCRIPT)))
    } else {
        "'none'".to_owned()
    };
    let forms = if has_script { "'none'" } else { "'self'" };
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src {script}; base-uri 'none'; form-action {forms}",
        base64(&Sha256::digest(STYLE))
    );
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                @if let Kind::Served(Some(seconds)) = kind { meta http-equiv="refresh" content=(seconds); }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "Tare " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                @if has_script { script { (PreEscaped(SCRIPT)) } }
            }
        }
    };
    let lines: Vec<String> = markup.into_string().split('\n').map(harmless).collect();
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn title(dossier: &Dossier) -> String {
    match &dossier.why {
        Some(why) => format!(
            "Why {} in {}",
            harmless(&command_line(&why.command)),
            harmless(&why.arm)
        ),
        None => harmless(&dossier.study.title),
    }
}

fn body(dossier: &Dossier) -> Markup {
    let names = Names::new(dossier);
    let placed: Vec<costs::Placed<'_>> = dossier.cells.iter().enumerate().collect();
    let of_arm = |arm: &DossierArm| -> Vec<costs::Placed<'_>> {
        let cells = placed.iter().copied();
        cells.filter(|(_, cell)| cell.arm == arm.id).collect()
    };
    let arms: Vec<(usize, &DossierArm, Vec<costs::Placed<'_>>)> = (1..)
        .zip(&dossier.arms)
        .map(|(number, arm)| (number, arm, of_arm(arm)))
        .filter(|(_, _, cells)| !cells.is_empty())
        .collect();
    let n_rows = costs::rows_of_blocks(dossier);
    let has_why = dossier.ladder.is_some() || !dossier.findings.is_empty() || dossier.why.is_some();
    let contents = [
        (dossier.why.is_some(), "why", "Why"),
        (!arms.is_empty(), "costs", "Overhead"),
        (has_why && dossier.why.is_none(), "why", "Why"),
        (
            !dossier.concurrency.is_empty(),
            "instances",
            "Several instances",
        ),
        (
            dossier.publication.is_some() || !dossier.claims.is_empty(),
            "published",
            "Compared with the publication",
        ),
        (
            !svg::sweeps(dossier).is_empty(),
            "sweeps",
            "Parameter sweeps",
        ),
        (
            !dossier.courses.is_empty(),
            "courses",
            "Trials from beginning to end",
        ),
        (!arms.is_empty(), "cells", "Every metric"),
        (true, "parity", "What the arms were given"),
        (true, "missing", "Not measured"),
        (true, "method", "Method and checklist"),
    ];
    html! {
        a.skip href="#answer" { "To the answer" }
        header {
            p.meta { (harmless(&dossier.study.id)) " · run " code { (harmless(&dossier.run)) } " · " (harmless(&dossier.started)) }
            h1 { (title(dossier)) }
            @if !dossier.complete { p.alarm { strong { "INCOMPLETE" } ": " (incomplete(dossier.stopped_by)) "." } }
        }
        main {
            section id="answer" aria-label="Answer" {
                @if let Some(why) = &dossier.why {
                    p.answer { (prose(&sentence(&why.answer))) }
                    @if let Some(applied) = &why.applied { p { (prose(&sentence(&applied_text(applied)))) } }
                    @if !why.lines.is_empty() {
                        dl.facts { @for line in &why.lines { dt { (label(line)) } dd { (prose(&line.text)) } } }
                    }
                } @else {
                    @for (_, arm, cells) in &arms {
                        @let plain: Vec<_> = cells.iter().map(|(_, cell)| *cell).collect();
                        p.answer { (prose(&sentence(&answer::summary(&arm.id, &plain, &names)))) }
                    }
                    @if arms.is_empty() { p.answer { "Nothing was compared: see below what was not measured, and why." } }
                }
                @if dossier.arms.iter().any(|arm| arm.id == A_PRIME) || dossier.why.is_none() {
                    p { strong { "Can it be trusted? " } (prose(&answer::trust(dossier))) }
                }
                p { (scope(dossier)) }
                @for text in not_as_planned(dossier) { p.alarm { (text) } }
            }
            nav aria-label="Contents" {
                ul {
                    @for (_, id, title) in contents.iter().filter(|(is_there, ..)| *is_there) { li { a href={ "#" (id) } { (title) } } }
                }
            }
            @let causes = html! {
                @if has_why {
                    section {
                        h2 id="why" { "Why" }
                        @if let Some(ladder) = &dossier.ladder { (why::ladder(ladder, terminal::base(dossier).1)) }
                        (why::findings(dossier))
                        @if let Some(asked) = &dossier.why { h3 { "The command" } (why::command(dossier, asked)) }
                    }
                }
            };
            // After `tare why` the causes come before the tables, otherwise after them.
            @if dossier.why.is_some() { (causes) }
            @if !arms.is_empty() {
                section {
                    h2 id="costs" { "Overhead" }
                    @for (number, arm, cells) in &arms {
                        h3 { (purpose(arm)) " against " (harmless(&cells[0].1.baseline)) (costs::emulated(arm)) }
                        (costs::table(arm, *number, cells, &names))
                    }
                    @if !dossier.pairs.is_empty() {
                        h3 { "Pairwise" }
                        (costs::pairs(&dossier.pairs, &names))
                    }
                }
            }
            @if dossier.why.is_none() { (causes) }
            @if !dossier.concurrency.is_empty() {
                section { h2 id="instances" { "Several instances" } @for series in &dossier.concurrency { (record::concurrent(series, dossier)) } }
            }
            (published::section(dossier))
            (sweep::section(dossier))
            (course::section(dossier))
            @if !arms.is_empty() {
                section {
                    h2 id="cells" { "Every metric" }
                    p.note {
                        "Unfold a metric for its numbers, its blocks and what diagnostics saw."
                        @if n_rows > costs::MOST_ROWS { " The values of all " (n_rows) " blocks are too many to list in a page; " code { "tare report " (harmless(&dossier.run)) " --format csv" } " has all of them." }
                    }
                    @for (_, arm, cells) in &arms {
                        h3 { (purpose(arm)) }
                        (costs::details(cells, &names, n_rows))
                    }
                }
            }
            section { h2 id="parity" { "What the arms were given" } (record::parity(dossier)) (record::arms(dossier)) }
            section { h2 id="missing" { "Not measured" } (record::missing(dossier)) }
            section { h2 id="method" { "Method and checklist" } (record::method(dossier)) }
        }
        footer { p.note { "Made by Tare " (harmless(&dossier.tare)) " from run " code { (harmless(&dossier.run)) } "; all numbers: " code { "tare show " (harmless(&dossier.run)) " --json" } "." } }
    }
}

fn incomplete(stopped_by: StoppedBy) -> &'static str {
    match stopped_by {
        StoppedBy::Interrupted => "the run was interrupted",
        StoppedBy::Failed => "the run ended by a failure",
        StoppedBy::Killed => "the run was killed, or is still running",
        StoppedBy::Budget => "the run ended with its time budget",
        StoppedBy::Precision | StoppedBy::Blocks => "the run did not finish its plan",
    }
}

/// Describes the time used and the scope of the result.
fn scope(dossier: &Dossier) -> String {
    let [processor, kernel] = machine(dossier);
    format!(
        "The run took {:.0} s{} for {} trials{}. Valid for this machine (processor: {processor}; kernel: {kernel}) and these workloads only.",
        dossier.cost.wall_s,
        tail::timed_share(dossier),
        dossier.cost.trials,
        tail::how_it_ended(dossier.stopped_by)
    )
}

/// Renders what can be wider than the page, in a region that scrolls.
fn scroll(label: &str, content: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (content) } }
}

/// Renders text with backticks as code.
fn prose(text: &str) -> Markup {
    let text = harmless(text);
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // An unclosed backtick stays a character.
        return html! { (text) };
    }
    html! {
        @for (place, part) in parts.iter().enumerate() {
            @if place.is_multiple_of(2) { (part) } @else { code { (part) } }
        }
    }
}

/// Encodes a hash in base64, as the policy requires.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let whole = chunk
            .iter()
            .fold(0u32, |whole, byte| whole << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place <= chunk.len() {
                out.push(char::from(
                    LETTERS[(whole >> (18 - 6 * place) & 63) as usize],
                ));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn style_and_script_cannot_end_tag_or_load_resources() {
        for text in [STYLE, SCRIPT] {
            for word in [
                "</",
                "http",
                "url(",
                "@import",
                "fetch",
                "innerHTML",
                "eval",
            ] {
                assert!(!text.contains(word), "{word}");
            }
        }
        // The filter after the template must not change them: their hashes are in the policy.
        for line in STYLE.lines().chain(SCRIPT.lines()) {
            assert_eq!(harmless(line), line);
        }
    }
}
