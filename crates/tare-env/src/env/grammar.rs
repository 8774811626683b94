//! The grammars of texts in settings: the engine's own, so that no quote, slash or control character reaches a
//! request's path.
//!
//! Limits: a well-formed name may name nothing.

use crate::env::prelude::*;

use tare_model::launch;

/// Linux capabilities by number, under the engines' names.
pub(super) const CAPABILITIES: [&str; 41] = {
    let mut names = launch::CAPABILITIES;
    let mut at = 0;
    while at < names.len() {
        names[at] = names[at].split_at("CAP_".len()).1;
        at += 1;
    }
    names
};

/// A capability under the engines' name, however it was written.
pub(super) fn plain_capability(text: &str) -> String {
    let upper = text.to_ascii_uppercase();
    upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned()
}

pub(super) fn is_capability(text: &str) -> bool {
    CAPABILITIES.contains(&plain_capability(text).as_str())
}

/// The engine's names of process limits (docker/go-units, `ulimit.go`).
pub(super) const ULIMITS: [&str; 15] = tare_model::rows! {
    "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss",
    "rtprio", "rttime", "sigpending", "stack",
};

/// A number of bytes: `64`, `64b`, `64k`, `64kb`, `64 KiB`, and so on with m, g and t; powers of 1024, as in the
/// engines' commands (docker/go-units, `RAMInBytes`).
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A limit of a process; -1 means none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ulimit {
    pub(super) name: String,
    pub(super) soft: i64,
    pub(super) hard: i64,
}

/// Parses `name=soft[:hard]`, like `--ulimit` of the engines' commands; the soft limit must not exceed the hard one.
pub(super) fn parse_ulimit(text: &str) -> Option<Ulimit> {
    let (name, values) = text.split_once('=')?;
    let (soft, hard) = values.split_once(':').unwrap_or((values, values));
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= -1);
    let (soft, hard) = (number(soft)?, number(hard)?);
    let is_fine = ULIMITS.contains(&name) && (hard == -1 || (soft != -1 && soft <= hard));
    is_fine.then(|| Ulimit {
        name: name.to_owned(),
        soft,
        hard,
    })
}

pub(super) fn is_ulimit(text: &str) -> bool {
    parse_ulimit(text).is_some()
}

/// `3` or `0-1`, an element of a list as in cpuset(7).
pub(super) fn is_cpu_range(text: &str) -> bool {
    let is_number = |text: &str| {
        (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    match text.split_once('-') {
        Some((from, to)) => {
            is_number(from) && is_number(to) && from.parse::<u32>().ok() <= to.parse::<u32>().ok()
        }
        None => is_number(text),
    }
}

/// Whether a text has only letters, digits and these marks.
pub(super) fn has_only(text: impl AsRef<[u8]>, marks: &[u8]) -> bool {
    let is_fine = |byte: &u8| byte.is_ascii_alphanumeric() || marks.contains(byte);
    text.as_ref().iter().all(is_fine)
}

/// A letter or digit, then letters, digits and these marks, at most 128 in all, without two dots in a row.
fn is_name_with(text: &str, marks: &[u8]) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && has_only(text, marks)
        && !text.contains("..")
}

/// Names of runtimes and log drivers: letters, digits and `.`, `_`, `-`, with a path and tag for plug-ins.
pub(super) fn is_plain_name(text: &str) -> bool {
    is_name_with(text, b"._-/:")
}

/// A user by name or number, with or without a group (`--user` of `docker run`).
pub(super) fn is_user(text: &str) -> bool {
    let is_name = |name: &str| {
        (1..=32).contains(&name.len()) && !name.starts_with('-') && has_only(name, b"._-")
    };
    match text.split_once(':') {
        Some((user, group)) => is_name(user) && is_name(group),
        None => is_name(text),
    }
}

/// A reference in the grammar of the distribution project: `[host[:port]/]path[:tag][@digest]`, or an id.
pub(super) fn is_image_reference(text: &str) -> bool {
    let (text, digest_is_fine) = match text.split_once('@') {
        Some((name, digest)) => {
            let hex = digest.strip_prefix("sha256:").unwrap_or_default();
            let is_digest = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
            (name, is_digest)
        }
        None => (text, true),
    };
    let text = text.strip_prefix("sha256:").unwrap_or(text);
    let last_slash = text.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match text[last_slash..].split_once(':') {
        Some((_, tag)) => (&text[..text.len() - tag.len() - 1], Some(tag)),
        None => (text, None),
    };
    let tag_is_fine = tag.is_none_or(|tag| {
        (1..=128).contains(&tag.len()) && !tag.starts_with(['.', '-']) && has_only(tag, b"._-")
    });
    let parts: Vec<&str> = name.split('/').collect();
    let part_is_fine = |(position, part): (usize, &&str)| {
        let is_host = position == 0 && parts.len() > 1;
        let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        ends(part.bytes().next())
            && ends(part.bytes().last())
            && !part.contains("..")
            && part.bytes().all(|byte| {
                byte.is_ascii_lowercase()
                    || byte.is_ascii_digit()
                    || b"._-".contains(&byte)
                    || (is_host && (byte == b':' || byte.is_ascii_uppercase()))
            })
    };
    text.len() <= 255 && digest_is_fine && tag_is_fine && parts.iter().enumerate().all(part_is_fine)
}

/// Names of containers and contexts (moby `RestrictedNamePattern`; contexts may also contain `+`).
pub(super) fn is_container_name(text: &str) -> bool {
    is_name_with(text, b"._-+")
}

/// Names of security profiles: like those of containers, or a path of names.
pub(super) fn is_profile(text: &str) -> bool {
    text.split('/').all(is_container_name)
}

/// Names of packages, with an architecture if several are installed (`name:amd64`).
pub(super) fn is_package(text: &str) -> bool {
    text.split(':').count() <= 2 && text.split(':').all(is_container_name)
}

/// A program by name or absolute path.
pub(super) fn is_program(text: &str) -> bool {
    let is_name = |text: &str| {
        (1..=128).contains(&text.len()) && !text.starts_with(['-', '.']) && has_only(text, b"._-+[")
    };
    is_safe_path(text) || is_name(text)
}

/// `system/processor` with an optional variant, in lower-case letters and digits.
pub(super) fn is_platform(text: &str) -> bool {
    let is_word = |part: &str| {
        (1..=16).contains(&part.len())
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (2..=3).contains(&text.split('/').count()) && text.split('/').all(is_word)
}

/// Parses `source:target` or `source:target:ro`, both absolute, like `-v` of `docker run`.
pub(super) fn parse_bind(text: &str) -> Option<Bind> {
    let mut parts = text.split(':');
    let (source, target) = (parts.next()?, parts.next()?);
    let read_only = match (parts.next(), parts.next()) {
        (None, _) => false,
        (Some("ro"), None) => true,
        _ => return None,
    };
    (is_safe_path(source) && is_safe_path(target)).then(|| Bind {
        source: source.to_owned(),
        target: target.to_owned(),
        read_only,
    })
}

pub(super) fn is_bind(text: &str) -> bool {
    parse_bind(text).is_some()
}

/// An absolute path without `..` or control characters. A comma or colon is fine for the API and allowed.
pub(super) fn is_safe_path(text: &str) -> bool {
    text.len() <= 1024
        && text.starts_with('/')
        && text.split('/').all(|part| part != "..")
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_in_every_spelling() {
        for (text, bytes) in [
            ("64", 64),
            ("64b", 64),
            ("2k", 2 << 10),
            ("2KB", 2 << 10),
            (" 3 MiB ", 3 << 20),
            ("1g", 1 << 30),
            ("1t", 1 << 40),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "m", "-1", "1.5g", "1x", "99999999999t", "1 2"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn image_references_of_every_form_are_accepted() {
        let digest = format!("debian@sha256:{}", "0".repeat(64));
        for text in [
            "debian",
            "debian:12",
            "tare/agent:20261121-Abc",
            "localhost:5000/a/b_c:1.0",
            "ghcr.io/x/y",
            "4bcf8d9abcde",
            &digest,
        ] {
            assert!(is_image_reference(text), "{text}");
        }
        for text in ["Debian", "a//b", "a:b:c", "a@sha256:12", ":tag", "a:"] {
            assert!(!is_image_reference(text), "{text}");
        }
    }
}
