//! Checks the conventions that no compiler checks: who may import whom, file headers, file sizes, words.
//!
//! Works on text on purpose: a convention that needs a parser is too subtle to be remembered.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod circles;
mod names;
mod sizes;
mod words;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn source_of(package: &str) -> PathBuf {
    root().join("crates").join(package).join("src")
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns where the product code of a file has one of these words.
fn places_of(file: &Path, words: &[&str]) -> Vec<String> {
    let mut places = Vec::new();
    for (number, line) in product_lines(&read(file)) {
        let found = words.iter().filter(|word| line.contains(**word));
        places.extend(found.map(|word| format!("{}:{number}: {word}", file.display())));
    }
    places
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no Rust file under {}", folder.display());
    files
}

/// Returns the lines of a file that are neither comments nor part of its tests, with their numbers from 1. An item
/// after `#[cfg(test)]` ends on its first line if that ends in `;`, otherwise at a closing bracket of the same
/// indentation.
fn product_lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    // The indentation, and whether the item has begun.
    let mut test = None;
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.trim_start();
        let depth = line.len() - code.len();
        match test {
            _ if code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test") => {
                test = Some((depth, false));
            }
            Some((_, false)) if code.ends_with(';') => test = None,
            Some((at, false)) if !code.starts_with("#[") => test = Some((at, true)),
            Some((at, true)) if depth == at && (code.starts_with('}') || code == "];") => {
                test = None;
            }
            None if !code.starts_with("//") => lines.push((number, line)),
            _ => {}
        }
    }
    lines
}

#[test]
fn only_code_behind_cfg_test_is_test_code() {
    let text = "mod a;\n#[cfg(test)]\npub(crate) mod composed;\nfn b() {}\n// no\n#[cfg(test)]\nmod tests {\nconst C: &str = \"\\\n\";\n    fn c() {}\n}\nfn d() {}\n";
    let kept: Vec<usize> = product_lines(text)
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(kept, [1, 4, 12]);
}

fn all_rust_files() -> Vec<PathBuf> {
    ["crates", "xtask"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .collect()
}

/// Returns the files of the host's crates, each with its source folder.
fn host_files() -> Vec<(PathBuf, PathBuf)> {
    let sources = ["tare", "tare-env", "tare-report", "tare-core"].map(source_of);
    let files = sources.into_iter().flat_map(|source| {
        let files = rust_files(&source).into_iter();
        files.map(move |file| (source.clone(), file))
    });
    files.collect()
}

/// The modules of the host's library and which others each may use, as far as crate boundaries do not enforce it.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("cx", &[] as &[&str]),
        ("driver", &[]),
        ("env", &["cx", "driver"]),
        ("workload", &["service"]),
        ("config", &["driver", "env", "workload"]),
        ("plan", &[]),
        ("store", &["cx", "plan"]),
        ("parity", &["driver"]),
        ("service", &["cx"]),
        (
            "run",
            &[
                "cx", "env", "workload", "plan", "store", "parity", "service",
            ],
        ),
        ("cause", &["driver"]),
        ("analyze", &["workload", "parity", "cause"]),
    ])
}

#[test]
fn library_parts_import_only_allowed_parts() {
    let allowed = allowed();
    let mut wrong = Vec::new();
    for (source, file) in host_files() {
        let relative = file.strip_prefix(source).unwrap();
        let part = relative.iter().next().unwrap().to_str().unwrap();
        let part = part.trim_end_matches(".rs");
        let Some(may_use) = allowed.get(part) else {
            continue;
        };
        // Tests may use more: they combine modules.
        if file.ends_with("tests.rs") {
            continue;
        }
        let others = allowed
            .keys()
            .filter(|used| **used != part && !may_use.contains(used));
        for used in others {
            let imports = [format!("crate::{used}::"), format!("crate::{used};")];
            let places = places_of(&file, &imports.each_ref().map(String::as_str)).into_iter();
            wrong.extend(places.map(|place| format!("{place}: `{part}` may not use it")));
        }
    }
    assert_none(&wrong);
}

/// Names that the pure half must not contain in its product code.
const OUTSIDE: [&str; 12] = [
    "std::fs",
    "std::process",
    "std::net",
    "std::os",
    "std::env::",
    "Instant::now",
    "SystemTime::now",
    "thread::sleep",
    "stdout()",
    "stderr()",
    "stdin()",
    "print!(",
];

#[test]
fn core_and_report_do_no_io() {
    let mut wrong = Vec::new();
    for file in ["tare-core", "tare-report"]
        .map(source_of)
        .iter()
        .flat_map(|it| rust_files(it))
    {
        if !file.ends_with("tests.rs") && !file.ends_with("composed.rs") {
            wrong.extend(places_of(&file, &OUTSIDE));
        }
    }
    assert_none(&wrong);
}

#[test]
fn core_and_report_depend_on_no_runtime_or_store() {
    let tree = std::process::Command::new(env!("CARGO"))
        // It depends on the other.
        .args(["tree", "--package", "tare-report", "--edges", "normal"])
        .args([
            "--all-features",
            "--prefix",
            "none",
            "--locked",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let stderr_text = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "{stderr_text}");
    let names = String::from_utf8_lossy(&tree.stdout);
    let names: Vec<&str> = names
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.contains(&"tare-core"), "{names:?}");
    for name in ["tokio", "hyper", "bollard", "rusqlite", "tare"] {
        assert!(!names.contains(&name), "{name}");
    }
}

/// Words outside the drivers' own files that equal a driver's name but mean something else. Differences between
/// drivers are reported by the driver: as a mechanism, a setting, a fact or an answer of the trait.
const SPELLED_LIKE_DRIVERS: &[(&str, &str)] = &[
    // A setting that users write when they mean their own container.
    ("why/in_environment.rs", "container"),
    // The program.
    ("workload/hpcc.rs", "ssh"),
];

#[test]
fn no_file_but_the_drivers_own_names_a_driver() {
    let drivers = [
        "container",
        "docker",
        "podman",
        "oci",
        "vm",
        "ssh",
        "kubernetes",
    ];
    let mut naming = Vec::new();
    for (source, file) in host_files() {
        let relative = file.strip_prefix(source).unwrap();
        let is_drivers = relative.starts_with("env") || relative.starts_with("driver");
        let is_test = relative
            .iter()
            .any(|part| part == "tests" || part == "tests.rs");
        if is_drivers || is_test {
            continue;
        }
        let text = read(&file);
        let relative = relative.to_str().unwrap();
        for driver in drivers {
            let name = format!("\"{driver}\"");
            let lines = product_lines(&text);
            let mut lines = lines.iter().filter(|(_, line)| line.contains(&name));
            if let Some((number, _)) = lines.next()
                && !SPELLED_LIKE_DRIVERS.contains(&(relative, driver))
            {
                naming.push(format!("{relative}:{number}: `{driver}`"));
            }
        }
    }
    assert_none(&naming);
}

#[test]
fn every_package_has_only_allowed_dependencies() {
    let may_use: [(&str, &[&str]); 10] = [
        ("crates/tare-model", &[]),
        ("crates/tare-stats", &["tare-model"]),
        ("crates/tare-agent", &["tare-model"]),
        ("crates/tare-core", &["tare-model", "tare-stats"]),
        (
            "crates/tare-report",
            &["tare-core", "tare-model", "tare-stats"],
        ),
        ("crates/tare-env", &["tare-core", "tare-model"]),
        (
            "crates/tare",
            &[
                "tare-core",
                "tare-env",
                "tare-model",
                "tare-report",
                "tare-stats",
            ],
        ),
        ("crates/tare-testkit", &["tare-model"]),
        ("xtask", &["tare-stats", "tare-model"]),
        ("xtask/build", &[]),
    ];
    for (package, may_use) in may_use {
        let manifest = read(&root().join(package).join("Cargo.toml"));
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        for name in [
            "tare-model",
            "tare-stats",
            "tare-agent",
            "tare-core",
            "tare-env",
            "tare-report",
            "tare.",
        ] {
            let is_used = dependencies.lines().any(|line| line.starts_with(name));
            assert!(
                !is_used || may_use.contains(&name),
                "{package} may not depend on {name}"
            );
        }
    }
}

#[test]
fn stats_crate_uses_no_time_unit_or_hidden_randomness() {
    for file in rust_files(&source_of("tare-stats")) {
        let text = read(&file);
        for word in [
            "std::time",
            "std::fs",
            "std::env",
            "thread_rng",
            "rand::rng",
            "from_os_rng",
        ] {
            assert!(!text.contains(word), "{}: {word}", file.display());
        }
    }
}

#[test]
fn every_rust_file_starts_with_doc_comment() {
    for file in all_rust_files() {
        let text = read(&file);
        assert!(
            text.starts_with("//!"),
            "{} begins without `//!`",
            file.display()
        );
    }
}

#[test]
fn a_safety_note_names_a_reason() {
    for file in all_rust_files() {
        if file.ends_with("tidy.rs") {
            continue;
        }
        for (number, line) in read(&file).lines().enumerate() {
            let Some(note) = line.split("// SAFETY:").nth(1) else {
                continue;
            };
            let empty = note.trim().len() < 12
                || note.to_lowercase().contains("safe because")
                || note.to_lowercase().contains("safe as");
            assert!(
                !empty,
                "{}:{}: the note proves nothing",
                file.display(),
                number + 1
            );
        }
    }
}

#[test]
fn one_meaning_has_one_word() {
    // In two parts, so that this file is checked like any other.
    let banned = [
        concat!("back", "end"),
        concat!("test", " run"),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
    ];
    for file in all_rust_files() {
        for (number, line) in read(&file).lines().enumerate() {
            // An option of another program keeps its name.
            let line = line.replace(concat!("memory-back", "end"), "");
            for word in banned {
                assert!(
                    !line.contains(word),
                    "{}:{}: `{word}`",
                    file.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn only_the_context_touches_the_outside_world() {
    let mut wrong = Vec::new();
    for (source, file) in host_files() {
        let relative = file.strip_prefix(&source).unwrap();
        // The store's own file and folder are the one exception.
        if relative.starts_with("cx")
            || relative.starts_with("store")
            || relative.ends_with("tests.rs")
        {
            continue;
        }
        let calls = [
            "Command::new",
            "Instant::now",
            "SystemTime::now",
            "env::var(",
            "fs::write(",
            "fs::remove",
            "fs::create_dir",
            "File::create",
        ];
        let places = places_of(&file, &calls).into_iter();
        wrong.extend(places.map(|place| format!("{place} belongs into `cx`")));
    }
    assert_none(&wrong);
}

#[test]
fn every_dependency_has_its_reason() {
    let reasons = read(&root().join("DEPENDENCIES.md"));
    let manifest = read(&root().join("Cargo.toml"));
    let dependencies = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .unwrap()
        .split("\n[")
        .next()
        .unwrap();
    for line in dependencies
        .lines()
        .filter(|line| line.contains('=') && !line.starts_with('#'))
    {
        let name = line.split('=').next().unwrap().trim();
        assert!(
            name.starts_with("tare") || reasons.contains(&format!("`{name}`")),
            "DEPENDENCIES.md gives no reason for `{name}`"
        );
    }
}
