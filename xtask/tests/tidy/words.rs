//! Checks that user-facing texts contain none of the words that `xtask/words.toml` lists.

use std::path::Path;

use super::{product_lines, read, root, rust_files, source_of};

/// The content of `words.toml`.
struct Words {
    avoided: Vec<String>,
    allowed: Vec<String>,
}

fn words() -> Words {
    let text = read(&root().join("xtask/words.toml"));
    let table: toml::Table = text.parse().unwrap();
    let strings = |value: &toml::Value| -> Vec<String> {
        let all = value.as_array().unwrap().iter();
        all.map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    Words {
        avoided: table["replace"]
            .as_table()
            .unwrap()
            .keys()
            .cloned()
            .collect(),
        allowed: strings(&table["allowed"]),
    }
}

/// Returns the avoided words in `text`, as whole words.
fn found<'a>(text: &str, words: &'a Words) -> Vec<&'a str> {
    let mut text = text.to_lowercase();
    for allowed in &words.allowed {
        text = text.replace(allowed, "");
    }
    let is_letter = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let mut found = Vec::new();
    for word in &words.avoided {
        for (at, _) in text.match_indices(word.as_str()) {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            if !is_letter(before) && !is_letter(after) {
                found.push(word.as_str());
            }
        }
    }
    found
}

/// Returns a document without its code and quotations.
fn prose(page: &str) -> String {
    let mut kept = String::new();
    let mut is_block = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            let mut is_quote = false;
            for (place, part) in line.split('`').enumerate() {
                if place % 2 == 1 {
                    continue;
                }
                for letter in part.chars() {
                    match letter {
                        '“' => is_quote = true,
                        '”' => is_quote = false,
                        _ if is_quote => {}
                        letter => kept.push(letter),
                    }
                }
            }
            kept.push('\n');
        }
    }
    kept
}

/// Returns the string literals of the product in a file, one a line, without the names that they format.
fn literals(text: &str) -> String {
    let mut kept = String::new();
    for (_, line) in product_lines(text) {
        let mut is_literal = false;
        let mut is_escaped = false;
        let mut is_name = false;
        for letter in line.chars() {
            match letter {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => {
                    is_literal = !is_literal;
                    kept.push('\n');
                }
                '{' if is_literal => is_name = true,
                '}' if is_literal => is_name = false,
                letter if is_literal && !is_name => kept.push(letter),
                _ => {}
            }
        }
        kept.push('\n');
    }
    kept
}

fn documents() -> Vec<String> {
    let mut documents = Vec::new();
    for folder in ["", "docs/src/"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if Path::new(&name).extension().is_some_and(|it| it == "md") {
                documents.push(format!("{folder}{name}"));
            }
        }
    }
    documents.sort();
    documents
}

#[test]
fn avoided_words_are_absent_from_docs_and_product() {
    let words = words();
    let mut texts: Vec<(String, String)> = documents()
        .into_iter()
        .map(|name| {
            let text = read(&root().join(&name));
            (name, prose(&text))
        })
        .collect();
    for name in [
        "tare",
        "tare-agent",
        "tare-core",
        "tare-env",
        "tare-report",
        "tare-model",
        "tare-stats",
    ] {
        for file in rust_files(&source_of(name)) {
            let text = read(&file);
            texts.push((file.display().to_string(), literals(&text)));
        }
    }
    let shown = texts.iter().map(|(name, text)| (name, found(text, &words)));
    let message: Vec<String> = shown
        .filter(|(_, found)| !found.is_empty())
        .map(|(name, found)| format!("{name}: {found:?}"))
        .collect();
    assert!(
        message.is_empty(),
        "xtask/words.toml says what to write instead:\n{}",
        message.join("\n")
    );
}

#[test]
fn only_whole_words_outside_of_code_count() {
    let words = words();
    assert_eq!(found("It told him, besides.", &words), ["besides", "told"]);
    assert!(found("untold, beside_x", &words).is_empty());
    let page = "told\n```\ntold\n```\n`told` “told” beside\n";
    assert_eq!(found(&prose(page), &words), ["beside", "told"]);
    let code = "// told\nlet told = \"a \\\"told\\\" b\"; told();\n";
    assert_eq!(found(&literals(code), &words), ["told"]);
}
