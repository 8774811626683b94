//! The formats of a comparison, one file each; all are pure functions.

mod annotations;
mod junit;
mod markdown;
mod sarif;
pub mod shown;
mod terminal;

pub use annotations::{Annotations, annotations};
pub use junit::junit;
pub use markdown::summary;
pub use sarif::sarif;
pub use terminal::terminal;

/// Escapes text for an XML attribute or element; characters that XML does not allow are replaced.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_core::compare::{Comparison, Decision, Effect, Row, SideNote, Word, limits::Unit};

    fn row(name: &str, word: Word, point: f64) -> Row {
        Row {
            name: name.to_owned(),
            arm: "head".to_owned(),
            metric: "compared.wall.time".to_owned(),
            unit: Unit::Nanoseconds,
            base: Some(118.2e6),
            head: Some(118.2e6 * (1.0 + point)),
            change: Some(Effect {
                point,
                low: point - 0.008,
                high: point + 0.008,
            }),
            control: Some(Effect {
                point: 0.001,
                low: -0.005,
                high: 0.007,
            }),
            margin: 0.02,
            floor: 50_000.0,
            blocks: 41,
            exact: false,
            gated: true,
            word,
            note: None,
            detectable: (word == Word::Inconclusive).then_some(0.045),
            p_beyond_margin: None,
            p_no_change: None,
            confirmed: (word == Word::Slower).then_some(true),
        }
    }

    /// A gate whose label contains markup of every format.
    fn comparison(rows: Vec<Row>, decision: Decision) -> Comparison {
        let side = |arm: &str, label: &str| SideNote {
            arm: arm.to_owned(),
            label: label.to_owned(),
        };
        Comparison {
            comparison: 1,
            tare: "0.1.0".to_owned(),
            runs: vec!["r1".to_owned(), "r2".to_owned()],
            paired: true,
            gate: true,
            seed: 7,
            wall_s: 96.0,
            how: "whole trials".to_owned(),
            sides: vec![
                side("base", "8f3c2d1 \"Reuse\""),
                side(
                    "head",
                    "x|y\n<img src=x>`\u{1b}[31m::error::@a [l](http://x)",
                ),
            ],
            rows,
            notes: vec!["a note".to_owned()],
            decision,
        }
    }

    fn slower() -> Comparison {
        let rows = vec![
            row("wall", Word::Slower, 0.041),
            row("cpu", Word::Inconclusive, 0.012),
            row("memory", Word::Same, 0.003),
        ];
        comparison(rows, Decision::Slower)
    }

    #[test]
    fn summary_is_small_and_escapes_foreign_text() {
        let text = summary(&slower());
        assert!(text.starts_with("### Slower: 1 of 3 rows"), "{text}");
        for hostile in ["<img", "\u{1b}", "[l](http", "x|y"] {
            assert!(!text.contains(hostile), "{hostile:?} in {text}");
        }
        assert!(text.contains("confirmed in fresh processes"), "{text}");
        assert!(text.contains("could have detected 4.5 %"), "{text}");
        let many = (0..300)
            .map(|place| row(&format!("b{place}.wall"), Word::Slower, 0.1))
            .collect();
        let text = summary(&comparison(many, Decision::Slower));
        assert!(text.len() <= 4096, "{}", text.len());
        let rows = text.lines().filter(|line| line.starts_with("| ")).count();
        assert!(rows <= 13, "{rows} with the head\n{text}");
        assert!(text.contains("288 more rows"), "{text}");
    }

    #[test]
    fn headline_counts_the_rows_of_the_table() {
        let same = comparison(vec![row("wall", Word::Same, 0.0)], Decision::Same);
        assert!(summary(&same).starts_with("### Same: 1 of 1 rows"));
        let open = comparison(
            vec![row("wall", Word::Inconclusive, 0.0)],
            Decision::Inconclusive,
        );
        assert!(summary(&open).starts_with("### Inconclusive: 1 of 1 rows"));
    }

    #[test]
    fn junit_has_case_per_row_and_skips_inconclusive() {
        let text = junit(&slower());
        assert_eq!(text.matches("<testcase ").count(), 3, "{text}");
        assert_eq!(text.matches("<failure ").count(), 1);
        assert_eq!(text.matches("<skipped ").count(), 1);
        assert!(text.contains(r#"tests="3" failures="1" errors="0" skipped="1""#));
        assert!(!text.contains("<img") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn sarif_holds_a_result_for_each_slower_row() {
        let text = sarif(&slower());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["version"], "2.1.0");
        let results = json["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(results[0]["ruleId"], "slower");
    }

    #[test]
    fn annotation_is_one_line_whatever_the_label_holds() {
        let text = annotations(&slower(), Annotations::Github);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("::error title="), "{text}");
        assert!(!text[2..].contains("::error::"), "{text}");
        assert_eq!(annotations(&slower(), Annotations::None), "");
        let same = comparison(vec![row("wall", Word::Same, 0.0)], Decision::Same);
        assert!(annotations(&same, Annotations::Github).starts_with("::notice "));
    }

    #[test]
    fn terminal_table_fits_and_shows_control_and_verdict() {
        let text = terminal(&slower(), 100);
        assert!(text.contains("base against itself"), "{text}");
        assert!(text.contains("+4.1 % [3.3, 4.9]"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }
}
