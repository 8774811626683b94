//! A run as LaTeX for a paper: tables with booktabs and siunitx, a method paragraph with references, the
//! bibliography, and a document around them that compiles unchanged.
//!
//! Numbers keep the digits that their intervals support. Characters that a Latin font may lack are written by code
//! point, so that no name can stop a compiler.
//!
//! Limits: the paper's class and language are unknown.

use std::fmt::Write as _;

use tare_model::dossier::{Dossier, DossierArm, DossierCell, Span};

use super::format::{File, Format, Material, ReportOutput};
use super::groups::{by_metric, grouped};
use super::method::{REFERENCES, checklist, sentences, word};
use super::number::{Digits, Scale, decimals_of_value, scales_for};
use super::words::{self, Names};
use tare_core::foreign::harmless;

mod published;

/// The LaTeX format.
pub static LATEX: Format = Format::new(
    "latex",
    "tables with booktabs and siunitx, a paragraph on the method, BibTeX references",
    make,
);

fn make(material: &Material<'_>) -> ReportOutput {
    let dossier = material.dossier;
    let file = |name: &str, content: String| File {
        name: name.to_owned(),
        content: content.into_bytes(),
    };
    let mut files = vec![
        file("report.tex", document(dossier)),
        file("costs.tex", tables(dossier)),
        file("method.tex", method(dossier)),
        file("references.bib", references()),
    ];
    files.extend(published::file(dossier).map(|text| file("published.tex", text)));
    ReportOutput::Files(files)
}

fn document(dossier: &Dossier) -> String {
    format!(
        "\\documentclass{{article}}\n\\usepackage[T1]{{fontenc}}\n\\usepackage[margin=2.5cm]{{geometry}}\n\\usepackage{{textcomp,array,booktabs,longtable,siunitx}}\n\\DeclareSIUnit\\operation{{op}}\n\\title{{{}}}\n\\author{{Tare {}, run {}}}\n\\date{{{}}}\n\\begin{{document}}\n\\maketitle\n\\input{{costs}}\n{}\\input{{method}}\n\\bibliographystyle{{plain}}\n\\bibliography{{references}}\n\\end{{document}}\n",
        escaped(&dossier.study.title),
        escaped(&dossier.tare),
        escaped(&dossier.run),
        escaped(&dossier.started),
        if published::file(dossier).is_some() {
            "\\input{published}\n"
        } else {
            ""
        }
    )
}

fn tables(dossier: &Dossier) -> String {
    let names = Names::new(dossier);
    let mut out = String::from(
        "% Needs \\usepackage{textcomp,array,booktabs,longtable,siunitx} and \\DeclareSIUnit\\operation{op}.\n",
    );
    for arm in &dossier.arms {
        let cells = dossier.cells_of(&arm.id);
        if !cells.is_empty() {
            table(&mut out, arm, &cells, &names);
        }
    }
    pairs(&mut out, dossier, &names);
    if dossier.cells.is_empty() {
        out.push_str("Nothing was compared.\n");
    }
    out
}

fn table(out: &mut String, arm: &DossierArm, cells: &[&DossierCell], names: &Names<'_>) {
    let baseline = cells[0].baseline.as_str();
    let _ = write!(
        out,
        "{{\\small\n\\begin{{longtable}}{{lrrrl}}\n\\caption{{{told} against {baseline}: values over blocks, and the ratio to the baseline with its \\qty{{95}}{{\\percent}} confidence interval; above 1 the environment is slower or uses more.{doubt}}}\\\\\n\\toprule\nmetric & {baseline} & {arm} & ratio & verdict \\\\\n\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n",
        told = escaped(&words::purpose(arm)),
        arm = escaped(&arm.id),
        baseline = escaped(baseline),
        doubt = if cells.iter().any(|cell| words::is_by_itself(cell)) {
            " A question mark: significant alone, but not after correction for all metrics."
        } else {
            ""
        }
    );
    for (at, (group, members)) in grouped(cells).iter().enumerate() {
        if at > 0 {
            out.push_str("\\addlinespace\n");
        }
        let _ = writeln!(
            out,
            "\\multicolumn{{5}}{{l}}{{\\emph{{{}}} ({})}} \\\\",
            group.title(),
            members.len()
        );
        for cell in members {
            row(out, &escaped(&names.name(cell)), cell);
        }
    }
    out.push_str("\\end{longtable}}\n");
}

/// Writes each pair of arms, by metric.
fn pairs(out: &mut String, dossier: &Dossier, names: &Names<'_>) {
    if dossier.pairs.is_empty() {
        return;
    }
    out.push_str("{\\small\n\\begin{longtable}{lrrrl}\n\\caption{Pairwise, from the same blocks: values, and the ratio of the first to the second with its \\qty{95}{\\percent} confidence interval.}\\\\\n\\toprule\nfirst against second & second & first & ratio & verdict \\\\\n\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n");
    for (at, members) in by_metric(&dossier.pairs).iter().enumerate() {
        if at > 0 {
            out.push_str("\\addlinespace\n");
        }
        let _ = writeln!(
            out,
            "\\multicolumn{{5}}{{l}}{{\\emph{{{}}}}} \\\\",
            escaped(&names.name(members[0]))
        );
        for cell in members {
            let pair = format!("{} against {}", escaped(&cell.arm), escaped(&cell.baseline));
            row(out, &pair, cell);
        }
    }
    out.push_str("\\end{longtable}}\n");
}

/// Writes one table row, starting with `of`.
fn row(out: &mut String, of: &str, cell: &DossierCell) {
    let (of_base, of_env) = scales_for(cell.base.as_ref(), cell.env.as_ref(), &cell.unit);
    let _ = writeln!(
        out,
        "{of} & {} & {} & {} & {} \\\\",
        quantity(cell.base.as_ref(), of_base),
        quantity(cell.env.as_ref(), of_env),
        words::effect(cell).map_or_else(|| "--".to_owned(), |effect| escaped(&effect)),
        escaped(&words::guarded_verdict(cell))
    );
}

fn quantity(span: Option<&Span>, scale: Scale) -> String {
    let Some(span) = span else {
        return "--".to_owned();
    };
    let digits = decimals_of_value(span, scale, Digits::Full);
    let number = format!("{:.digits$}", span.point / scale.factor);
    match unit(scale.symbol) {
        "" => format!("\\num{{{number}}}"),
        unit => format!("\\qty{{{number}}}{{{unit}}}"),
    }
}

/// Converts a printed unit to siunitx.
fn unit(symbol: &str) -> &'static str {
    match symbol {
        "ns" => "\\nano\\second",
        "µs" => "\\micro\\second",
        "ms" => "\\milli\\second",
        "s" => "\\second",
        "B" => "\\byte",
        "KiB" => "\\kibi\\byte",
        "MiB" => "\\mebi\\byte",
        "GiB" => "\\gibi\\byte",
        "B/s" => "\\byte\\per\\second",
        "kB/s" => "\\kilo\\byte\\per\\second",
        "MB/s" => "\\mega\\byte\\per\\second",
        "GB/s" => "\\giga\\byte\\per\\second",
        "op/s" => "\\operation\\per\\second",
        "kop/s" => "\\kilo\\operation\\per\\second",
        "Mop/s" => "\\mega\\operation\\per\\second",
        "Gop/s" => "\\giga\\operation\\per\\second",
        "k" => "\\kilo",
        "M" => "\\mega",
        "G" => "\\giga",
        _ => "",
    }
}

fn method(dossier: &Dossier) -> String {
    let mut out = String::from("\\paragraph{Method.}\n");
    for (text, keys) in sentences(dossier) {
        let text = escaped(&text);
        if keys.is_empty() {
            let _ = writeln!(out, "{text}");
        } else {
            let text = text.strip_suffix('.').unwrap_or(&text);
            let _ = writeln!(out, "{text}~\\cite{{{}}}.", keys.join(","));
        }
    }
    out.push_str("\n\\begin{longtable}{r>{\\raggedright\\arraybackslash}p{.42\\linewidth}l>{\\raggedright\\arraybackslash}p{.36\\linewidth}}\n\\caption{Reporting rules, filled in from the run.}\\\\\n\\toprule\n & rule & result & with what \\\\\n\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n");
    for rule in checklist(dossier) {
        let _ = writeln!(
            out,
            "{} & {} ({}) & {} & {} \\\\",
            rule.number,
            escaped(rule.rule),
            escaped(rule.source),
            without_sign(word(rule.result)),
            escaped(&rule.detail)
        );
    }
    out.push_str("\\end{longtable}\n");
    out
}

/// Returns words without the sign before them, which few fonts of LaTeX have.
fn without_sign(words: &str) -> &str {
    words.split_once(' ').map_or(words, |(_, words)| words)
}

fn references() -> String {
    let mut out = String::new();
    for work in REFERENCES {
        let is_talk = work.venue.starts_with("Proceedings");
        let (kind, field) = if is_talk {
            ("inproceedings", "booktitle")
        } else {
            ("article", "journal")
        };
        let _ = writeln!(out, "@{kind}{{{},", work.key);
        let _ = writeln!(out, "  author = {{{}}},", work.authors);
        let _ = writeln!(out, "  title = {{{{{}}}}},", work.title);
        let _ = writeln!(out, "  {field} = {{{}}},", work.venue);
        for (name, value) in work.fields {
            let _ = writeln!(out, "  {name} = {{{value}}},");
        }
        let _ = writeln!(out, "  year = {{{}}}\n}}\n", work.year);
    }
    out
}

/// Escapes text so that LaTeX prints it unchanged.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in harmless(text).chars() {
        match letter {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => {
                out.push('\\');
                out.push(letter);
            }
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '"' => out.push_str("\\textquotedbl{}"),
            '`' => out.push_str("\\textasciigrave{}"),
            '\u{a0}' => out.push('~'),
            '‡' => out.push_str("$\\ddagger$"),
            '×' => out.push_str("$\\times$"),
            '→' => out.push_str("$\\rightarrow$"),
            '′' => out.push_str("$'$"),
            '–' => out.push_str("--"),
            // Two hyphens would become an en dash.
            '-' if out.ends_with('-') => out.push_str("{}-"),
            '“' => out.push_str("``"),
            '”' => out.push_str("''"),
            '…' => out.push_str("\\dots{}"),
            'µ' => out.push_str("\\textmu{}"),
            letter
                if letter.is_ascii()
                    || ('à'..='ÿ').contains(&letter)
                    || ('À'..='ß').contains(&letter) =>
            {
                out.push(letter);
            }
            letter => {
                let _ = write!(out, "[U+{:04X}]", u32::from(letter));
            }
        }
    }
    if out.starts_with(['[', '*']) {
        // After the end of a table row they would be read as its argument.
        out.insert_str(0, "{}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latex_text_cannot_be_command_or_break_compiler() {
        assert_eq!(escaped("漢"), "{}[U+6F22]");
        assert_eq!(escaped("*"), "{}*");
        let text = escaped("\\input{x} 100% & $a_b$ ~ ^ \u{202e} 漢 µs");
        for raw in ["\\input", "% ", " & ", "$a"] {
            let kept = text
                .replace("\\%", "")
                .replace("\\&", "")
                .replace("\\$", "");
            assert!(!kept.contains(raw), "{raw}: {text}");
        }
        assert!(
            text.contains("[U+6F22]") && text.contains("\\textmu{}"),
            "{text}"
        );
        assert!(text.is_ascii());
        assert_eq!(escaped("--json ---x –"), "-{}-json -{}-{}-x --");
    }

    #[test]
    fn every_printed_unit_has_its_words() {
        for unit_of_metric in ["ns", "B", "B/s", "op/s", "count"] {
            for power in 0..12 {
                let symbol = crate::number::scale_for(10f64.powi(power), unit_of_metric).symbol;
                assert!(symbol.is_empty() || !unit(symbol).is_empty(), "{symbol}");
            }
        }
    }
}
