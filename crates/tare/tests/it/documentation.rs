//! Runs the book's examples unchanged: those after `<!-- run -->`. Files that a page shows are created first.

use crate::prelude::*;

fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src")
}

fn page(name: &str) -> String {
    let path = book().join(format!("{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a page's commands in a home, after those of the page that it builds upon; returns their number.
fn follow(name: &str, product: &Product) -> usize {
    let mut n_done = 0;
    let mut expected = "";
    let mut block: Option<Vec<String>> = None;
    let text = page(name);
    for line in text.lines() {
        match &mut block {
            Some(lines) if line.starts_with("```") => {
                if let Some(file) = note(expected, "file: ") {
                    product.file(file, lines.join("\n") + "\n");
                } else if let Some(after) = note(expected, "run") {
                    if let Some(before) = after.strip_prefix(" after ") {
                        follow(before, product);
                    }
                    for command in lines.iter() {
                        let words: Vec<&str> = command.split_whitespace().collect();
                        assert_eq!(words[0], "tare", "{command}");
                        product.run(&words[1..]).expect(0);
                        n_done += 1;
                    }
                }
                (block, expected) = (None, "");
            }
            Some(lines) => lines.push(line.to_owned()),
            None if line.starts_with("```") => block = Some(Vec::new()),
            None if !line.is_empty() => expected = line,
            None => {}
        }
    }
    n_done
}

/// Returns what follows `word` in a comment.
fn note<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let inner = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    inner.strip_prefix(word)
}

#[test]
fn book_examples_work_as_described() {
    let mut n_done = 0;
    for entry in fs::read_dir(book()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "md") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        if page(name).contains("<!-- run") {
            let product = Product::new();
            n_done += follow(name, &product);
            product.assert_nothing_left();
        }
    }
    assert!(n_done >= 12, "only {n_done} were carried out");
}
