//! Checks the dependencies against `deny.toml`: licences, sources, forbidden crates, and crates in several versions.
//!
//! The file is that of `cargo deny`, which can check the rest (advisories). That program has hundreds of crates; for
//! these checks cargo's own data is enough. Every package of the lock file counts, whatever platform needs it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::flags::Json;
use xtask_build::shell::cargo;
use xtask_build::workspace::root;

/// The part of `deny.toml` that is checked.
#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<SkippedCrate>,
    /// Crates that may occur in several versions.
    skip: Vec<SkippedCrate>,
}

#[derive(Debug, Deserialize)]
struct SkippedCrate {
    name: String,
}

/// Fails if a dependency is not allowed.
pub(crate) fn check() -> Result<()> {
    let text = std::fs::read_to_string(root().join("deny.toml")).context("no deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("deny.toml")?;
    let metadata = cargo(&["metadata", "--format-version", "1", "--locked"]).json()?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    ensure!(packages.len() > 1, "cargo names no dependencies");
    let refused = refused(packages, &rules);
    if !refused.is_empty() {
        bail!("deny.toml does not allow:\n{}", refused.join("\n"));
    }
    Ok(())
}

/// Returns what is not allowed, one line each.
fn refused(packages: &[Value], rules: &Rules) -> Vec<String> {
    let mut refused = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let text = |name: &str| package[name].as_str().unwrap_or_default();
        let (name, version) = (text("name"), text("version"));
        versions.entry(name).or_default().push(version);
        if !is_allowed(text("license"), &rules.licenses.allow) {
            refused.push(format!("{name} {version}: licence `{}`", text("license")));
        }
        if rules.bans.deny.iter().any(|banned| banned.name == name) {
            refused.push(format!("{name} {version}: the crate itself"));
        }
        // Packages of this workspace have no source.
        let source = package["source"].as_str();
        if source.is_some_and(|source| {
            !source.starts_with("registry+https://github.com/rust-lang/crates.io-index")
        }) {
            refused.push(format!("{name} {version}: source `{}`", text("source")));
        }
        for needed in package["dependencies"].as_array().into_iter().flatten() {
            if source.is_none() && needed["path"].is_null() && needed["req"] == "*" {
                refused.push(format!("{name}: any version of {}", needed["name"]));
            }
        }
    }
    for (name, versions) in versions {
        if versions.len() > 1 && !rules.bans.skip.iter().any(|known| known.name == name) {
            refused.push(format!(
                "{name}: {} versions, {}",
                versions.len(),
                versions.join(" and ")
            ));
        }
    }
    refused
}

/// Whether a licence expression can be satisfied with these licences alone. `AND` binds tighter than `OR`, and an old
/// `/` means `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let is_allowed = any_of(&mut words, allowed);
    is_allowed && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut any = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        any |= all_of(words, allowed);
    }
    any
}

fn all_of(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut all = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        all &= one(words, allowed);
    }
    all
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        let inner = any_of(words, allowed);
        return inner && words.next() == Some(")");
    }
    let mut name = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        name = format!("{name} WITH {}", words.next().unwrap_or_default());
    }
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules() -> Rules {
        toml::from_str(
            "licenses = { allow = [\"MIT\", \"Apache-2.0\", \"Apache-2.0 WITH LLVM-exception\", \"Unicode-3.0\"] }\n\
             bans = { deny = [{ name = \"openssl-sys\" }], skip = [{ name = \"syn\" }] }\n",
        )
        .unwrap()
    }

    /// Checks the advisories for known vulnerabilities of the dependencies.
    #[test]
    fn dependencies_have_no_known_advisories() {
        let asked = std::process::Command::new("cargo-deny")
            .args(["check", "advisories"])
            .current_dir(root())
            .output();
        let Ok(told) = asked else {
            return crate::skip::skip("cargo-deny", "the program `cargo-deny` is not installed");
        };
        let text = String::from_utf8_lossy(&told.stderr);
        assert!(told.status.success(), "{text}");
    }

    #[test]
    fn a_licence_is_allowed_if_a_way_to_keep_it_is() {
        let allowed = rules().licenses.allow;
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(GPL-3.0 OR MIT) AND LGPL-2.1",
            "GPL-2.0 WITH LLVM-exception",
            "(MIT",
            "MIT MIT",
        ] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn disallowed_dependency_is_named() {
        let index = "registry+https://github.com/rust-lang/crates.io-index";
        let package = |name: &str, version: &str, license: &str, source: &str| {
            json!({"name": name, "version": version, "license": license, "source": source,
                   "dependencies": []})
        };
        let packages = [
            json!({"name": "own", "version": "0.1.0", "license": "MIT", "source": null, "dependencies": [
                {"name": "any", "req": "*"}, {"name": "beside", "req": "*", "path": "/beside"}]}),
            package("syn", "1.0.0", "MIT", index),
            package("syn", "2.0.0", "MIT", index),
            package("twice", "1.0.0", "MIT", index),
            package("twice", "2.0.0", "MIT", index),
            package("strict", "1.0.0", "GPL-3.0", index),
            package("openssl-sys", "1.0.0", "MIT", index),
            package(
                "elsewhere",
                "1.0.0",
                "MIT",
                "git+https://example.org/elsewhere",
            ),
        ];
        assert_eq!(
            refused(&packages, &rules()),
            [
                "own: any version of \"any\"",
                "strict 1.0.0: licence `GPL-3.0`",
                "openssl-sys 1.0.0: the crate itself",
                "elsewhere 1.0.0: source `git+https://example.org/elsewhere`",
                "twice: 2 versions, 1.0.0 and 2.0.0",
            ]
        );
    }

    #[test]
    fn the_lock_file_keeps_the_rules() {
        check().unwrap();
    }
}
