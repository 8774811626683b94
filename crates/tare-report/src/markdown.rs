//! A run as Markdown, for pull requests and CI summaries: the answer, a table of overheads, the rest collapsed.
//!
//! All external text is escaped, so that a name cannot become markup or a table border. Only syntax that GitHub,
//! GitLab and Forgejo share is used.

use std::fmt::Write as _;

use tare_model::Status;
use tare_model::dossier::{Dossier, DossierArm, DossierCell, DossierLadder, Span};

use super::answer;
use super::failures;
use super::format::{Format, ReportOutput};
use super::groups::{Group, by_metric, grouped};
use super::method::not_as_planned;
use super::number::{or_dash, typical};
use super::terminal::{added, applied_text, base, both, label};
use super::words::{self, Names};
use tare_core::foreign::{NO_BREAK, harmless};

mod published;

/// The Markdown format.
pub static MARKDOWN: Format = Format::new(
    "markdown",
    "summary for pull requests and CI: headlines, overhead and gain in tables, the rest folded",
    |material| ReportOutput::Text(summary(material.dossier)),
)
.or_called("md");

fn summary(dossier: &Dossier) -> String {
    let names = Names::new(dossier);
    let mut out = String::new();
    let title = match &dossier.why {
        Some(why) => format!("Why {} in {}", words::command_line(&why.command), why.arm),
        None => dossier.study.title.clone(),
    };
    let _ = writeln!(out, "## {}\n", escaped(&title));
    if !dossier.complete {
        let _ = writeln!(out, "**INCOMPLETE** ({})\n", dossier.stopped_by);
    }
    for text in not_as_planned(dossier) {
        let _ = writeln!(out, "**{}**\n", escaped(&text));
    }
    if let Some(why) = &dossier.why {
        let _ = writeln!(out, "**{}**\n", escaped(&why.answer));
        for line in &why.lines {
            let _ = writeln!(out, "- **{}**: {}", label(line), escaped(&line.text));
        }
        if !why.lines.is_empty() {
            out.push('\n');
        }
        if let Some(applied) = &why.applied {
            let _ = writeln!(out, "{}\n", escaped(&applied_text(applied)));
        }
    }
    if let Some(ladder) = &dossier.ladder {
        steps(&mut out, ladder, base(dossier).1);
    }
    let asked = dossier.why.as_ref().map(|why| why.arm.as_str());
    let is_tried = |arm: &DossierArm| asked.is_some_and(|asked| asked != arm.id);
    for arm in &dossier.arms {
        let cells = dossier.cells_of(&arm.id);
        if cells.is_empty() {
            continue;
        }
        if dossier.why.is_none() {
            let _ = writeln!(
                out,
                "{}\n",
                escaped(&answer::summary(&arm.id, &cells, &names))
            );
        }
        // Arms tried on the way come after the requested ones.
        if is_tried(arm) {
            let shown = escaped(&words::purpose(arm));
            let _ = writeln!(out, "<details><summary>{shown}</summary>\n");
        }
        of_arm(&mut out, &cells, &names);
        if is_tried(arm) {
            out.push_str("</details>\n\n");
        }
    }
    pairs(&mut out, dossier, &names);
    if dossier.cells.is_empty() {
        out.push_str("Nothing was compared.\n\n");
    }
    findings(&mut out, dossier);
    published::draw(&mut out, dossier);
    missing(&mut out, dossier);
    let _ = writeln!(out, "{}\n", escaped(&answer::trust(dossier)));
    let _ = writeln!(
        out,
        "<sub>Ratio 1.10: takes 1.10× as long as the baseline, or gives 1/1.10 of its throughput; in brackets the 95 % confidence interval. Run `{}`, Tare {}.</sub>",
        harmless(&dossier.run).replace('`', "'"),
        escaped(&dossier.tare)
    );
    out
}

fn of_arm(out: &mut String, cells: &[&DossierCell], names: &Names<'_>) {
    let groups = grouped(cells);
    let is_shown = |group: &Group| matches!(group, Group::More | Group::Less);
    let (shown, folded): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(group, _)| is_shown(group));
    let first = cells[0];
    let sides = format!("{} → {}", escaped(&first.baseline), escaped(&first.arm));
    let head =
        format!("| | metric | {sides} | ratio [95 % CI] | verdict |\n|---|---|---:|---:|---|\n");
    if !shown.is_empty() {
        out.push_str(&head);
        for (group, members) in &shown {
            rows(out, *group, members, names);
        }
        out.push('\n');
    }
    for (group, members) in &folded {
        let _ = writeln!(
            out,
            "<details><summary>{} {} ({})</summary>\n",
            group.sign(),
            group.title(),
            members.len()
        );
        out.push_str(&head);
        rows(out, *group, members, names);
        out.push_str("\n</details>\n\n");
    }
}

fn rows(out: &mut String, group: Group, cells: &[&DossierCell], names: &Names<'_>) {
    for cell in cells {
        row(out, group, cell, names, &escaped(&both(cell)));
    }
}

/// Writes a metric with its sides (already markup), its overhead and its verdict.
fn row(out: &mut String, group: Group, cell: &DossierCell, names: &Names<'_>, sides: &str) {
    let ratio = words::effect_or_dash(cell);
    let _ = writeln!(
        out,
        "| {} | {} | {sides} | {} | {} |",
        group.sign(),
        escaped(&names.name(cell)),
        ratio.replace('[', "\\[").replace(']', "\\]"),
        escaped(&words::verdict(cell).0)
    );
}

/// Writes what each step of a ladder adds.
fn steps(out: &mut String, ladder: &DossierLadder, base: &str) {
    let whole = |span: Option<&Span>| typical(span, &ladder.unit);
    let mut row = |name: &str, number: &str| {
        let _ = writeln!(out, "| {name} | {} |", escaped(number));
    };
    row("step", "adds");
    row("---", "---:");
    row(base, &whole(ladder.base.as_ref()));
    for rung in &ladder.rungs {
        let adds = or_dash(rung.adds.as_ref(), |span| added(span, &ladder.unit));
        row(&escaped(&rung.title), &adds);
    }
    let arm = format!("**{}**", escaped(&ladder.arm));
    row(&arm, &whole(ladder.env.as_ref()));
    out.push('\n');
}

/// Writes each pair of arms, collapsed.
fn pairs(out: &mut String, dossier: &Dossier, names: &Names<'_>) {
    if dossier.pairs.is_empty() {
        return;
    }
    out.push_str("<details><summary>Pairwise</summary>\n\n");
    out.push_str("| | metric | pair | ratio [95 % CI] | verdict |\n|---|---|---|---:|---|\n");
    for cell in by_metric(&dossier.pairs).into_iter().flatten() {
        let pair = format!("{} against {}", escaped(&cell.arm), escaped(&cell.baseline));
        row(out, Group::for_cell(cell), cell, names, &pair);
    }
    out.push_str("\n</details>\n\n");
}

fn findings(out: &mut String, dossier: &Dossier) {
    let worth = dossier
        .findings
        .iter()
        .filter(|finding| matches!(finding.status, Status::Confirmed | Status::Supported));
    let mut shown = Vec::new();
    for finding in worth {
        if !shown.contains(&&finding.cause) {
            shown.push(&finding.cause);
            let _ = writeln!(
                out,
                "- **{}** ({}): {} *To do:* {} *Its price:* {}",
                escaped(&finding.cause),
                finding.status,
                escaped(&finding.claim),
                escaped(&finding.advice),
                escaped(&finding.price)
            );
        }
    }
    if !shown.is_empty() {
        out.push('\n');
    }
}

fn missing(out: &mut String, dossier: &Dossier) {
    if dossier.failures.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<details><summary>Not measured ({})</summary>\n",
        dossier.failures.len()
    );
    for failure in failures::summarized(&dossier.failures) {
        let _ = writeln!(out, "- {}", escaped(&failure.text));
    }
    out.push_str("\n</details>\n\n");
}

/// Escapes text so that it is not markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in harmless(text).chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // The comment is invisible and keeps `@name` from notifying people.
            '@' => out.push_str("@<!-- -->"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(letter);
            }
            NO_BREAK => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_is_no_markup() {
        let text = escaped("a|b <img src=x> `c` [d](e) **f** \u{202e}");
        assert!(!text.contains("<img"), "{text}");
        assert!(!text.replace("\\]", "").contains(']'), "{text}");
        assert!(
            text.contains("a\\|b") && text.contains("\\u{202e}"),
            "{text}"
        );
        assert_eq!(escaped("@everyone"), "@<!-- -->everyone");
    }
}
