//! Tests what users see: a table that fits, a progress bar that disappears, and no colours if not wanted.
//!
//! The terminal is a real one, created by `script`; its size is set before the program starts.

use crate::prelude::*;

use crate::product::two_hosts;

fn study() -> String {
    two_hosts("", &["getppid", "stat", "pipe"])
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn table_fits_terminal_width_and_explains_columns() {
    let product = Product::new();
    product.file("study.toml", study());
    let plain = product.run(["run", "study.toml"]).expect(0);
    assert!(!plain.stdout.contains('\u{1b}'), "no terminal, no colour");
    assert!(
        !plain.stderr.contains('\u{1b}'),
        "no terminal, no bar: {plain}"
    );
    for columns in [60, 80, 100, 140] {
        let mut command = product.command(["show"]);
        command.env("COLUMNS", columns.to_string());
        let table = product.finish(command).expect(0).stdout;
        assert!(widest(&table) <= columns, "{columns}: {table}");
        for said in ["again against host", "getppid", "ratio 1.10"] {
            assert!(table.contains(said), "{columns}: {table}");
        }
        // The summary at the end of a run is shorter, and fits too.
        let mut command = product.command(["report"]);
        command.env("COLUMNS", columns.to_string());
        let brief = product.finish(command).expect(0).stdout;
        assert!(widest(&brief) <= columns, "{columns}: {brief}");
        assert!(brief.contains("again against host"), "{columns}: {brief}");
        let in_one_line = table.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in ["all blocks done", " % of it timed work, for 63 trials"] {
            assert!(in_one_line.contains(said), "{table}");
        }
    }
}

/// Returns what a terminal of this size shows for a command.
fn on_a_terminal(
    product: &Product,
    columns: u32,
    variable: &str,
    arguments: &str,
) -> Option<String> {
    let log = product.folder().join("typescript");
    let program = product.command([""; 0]);
    let agent: Vec<_> = program.get_args().collect();
    let script = format!(
        "stty rows 30 cols {columns}; {variable} {} {arguments} {} {}",
        program.get_program().display(),
        agent[0].display(),
        agent[1].display(),
    );
    let mut command = Command::new("script");
    command.args(["-qec", &script]).arg(&log);
    product.set_variables(&mut command);
    command.env_remove("COLUMNS").env("TERM", "xterm-256color");
    let Ok(output) = command.output() else {
        skip("script", "the program `script` is not installed");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let shown = fs::read(&log).unwrap();
    let text = lossy(&shown);
    // The first and last lines are those of `script`.
    let lines: Vec<&str> = text.lines().collect();
    Some(lines[1..lines.len() - 2].join("\n"))
}

#[test]
fn terminal_progress_bar_is_shown_and_then_cleared() {
    let product = Product::new();
    product.file("study.toml", study());
    let shown = needed!(on_a_terminal(&product, 72, "", "run study.toml"));
    assert_says(&shown, "starting again");
    assert_says(&shown, "/63 trials");
    assert_says(&shown, " s left");
    // The bar's line is erased just before the table.
    let (bar, table) = shown.rsplit_once("\u{1b}[2K").unwrap();
    assert!(bar.contains("trials"));
    assert_lacks(table, " s left");
    assert_says(table, "A/A control");
    assert!(table.contains("\u{1b}[1m"), "headings are bold: {table:?}");
}

#[test]
fn terminal_table_fills_width_and_honors_no_color() {
    let product = Product::new();
    product.file("study.toml", study());
    product.run(["run", "study.toml"]).expect(0);
    for columns in [64, 130] {
        let shown = needed!(on_a_terminal(&product, columns, "NO_COLOR=1", "show"));
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
        let table = shown.replace('\r', "");
        let widest = widest(&table);
        assert!(widest <= columns as usize, "{columns}: {table}");
        assert!(widest > columns as usize / 2, "{columns}: {table}");
        assert_eq!(table.contains("uncontended"), columns >= 120, "{table}");
    }
}
