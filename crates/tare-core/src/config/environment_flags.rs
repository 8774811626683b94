//! Parses environments and settings from the command line, alike for every command: `docker:image=alpine,cpus=0.5`,
//! `cpus=0.5`, `docker.cpus=0.5`, `binds=["/usr:/usr:ro"]`.
//!
//! Commas separate environments and their settings; text without a `=` before the next comma is the next environment.
//! A comma in brackets or quotes is part of a value. Limits: does not check whether an environment has the setting.

use tare_model::{Params, Value};

use super::file::plain;

/// An environment with settings.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenEnvironment {
    /// The environment's name.
    pub name: String,
    /// Its settings.
    pub settings: Params,
}

/// Parses a list of environments.
///
/// # Errors
/// The invalid part, with the expected form.
pub fn environments(text: &str) -> Result<Vec<GivenEnvironment>, String> {
    let mut found: Vec<GivenEnvironment> = Vec::new();
    for part in parts(text) {
        let (name, first) = match (part.split_once(':'), part.split_once('=')) {
            // `docker:cpus=1`, and `docker:NAME`, which is rejected below.
            (Some((name, first)), equals)
                if equals.is_none_or(|(before, _)| before.len() > name.len()) =>
            {
                (Some(name), Some(first))
            }
            (_, Some(_)) if !found.is_empty() => (None, Some(part)),
            _ => (Some(part), None),
        };
        if let Some(name) = name {
            found.push(GivenEnvironment {
                name: name.to_owned(),
                settings: Params::new(),
            });
        }
        let Some(setting) = first.filter(|setting| !setting.is_empty()) else {
            continue;
        };
        if let Some(given) = found.last_mut() {
            let (name, value) = self::setting(setting)?;
            given.settings = std::mem::take(&mut given.settings).with(name, value);
        }
    }
    Ok(found)
}

/// Parses `NAME=VALUE`.
///
/// # Errors
/// What is wrong with it.
pub fn setting(text: &str) -> Result<(&str, Value), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| {
            format!("`{text}` is no setting: it is written NAME=VALUE, as `cpus=0.5`")
        })?;
    Ok((name, value_of(value)?))
}

/// Parses `ARM.NAME=VALUE`, or without an arm.
///
/// # Errors
/// What is wrong with it.
pub fn setting_of(text: &str) -> Result<(Option<&str>, &str, Value), String> {
    let (name, value) = setting(text)?;
    // A setting has no dot in its name, but an arm may.
    Ok(match name.rsplit_once('.') {
        Some((arm, name)) => (Some(arm), name, value),
        None => (None, name, value),
    })
}

/// Parses a value; lists in their printed form.
fn value_of(text: &str) -> Result<Value, String> {
    if text.starts_with('[') {
        let wrapped: Result<toml::Table, _> = toml::from_str(&format!("value = {text}"));
        let list = wrapped.ok().and_then(|table| plain(table.get("value")?));
        return list
            .ok_or_else(|| format!("`{text}` is no list: it is written `[\"ONE\", \"TWO\"]`"));
    }
    Ok(if let Ok(value) = text.parse::<bool>() {
        Value::Bool(value)
    } else if let Ok(number) = text.parse::<i64>() {
        Value::Int(number)
    } else if let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite()) {
        Value::Float(number)
    } else {
        Value::Text(text.to_owned())
    })
}

/// Splits at commas that are neither in brackets nor in quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut is_quoted, mut from) = (0usize, false, 0);
    let mut parts = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '[' if !is_quoted => depth += 1,
            ']' if !is_quoted => depth = depth.saturating_sub(1),
            ',' if !is_quoted && depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Params)> {
        let given = environments(text).unwrap();
        given.into_iter().map(|it| (it.name, it.settings)).collect()
    }

    #[test]
    fn commas_separate_environments_and_their_settings() {
        let expected = [
            ("host".to_owned(), Params::new()),
            (
                "docker".to_owned(),
                Params::new().with("image", "a/b:1").with("cpus", 0.5),
            ),
            ("container".to_owned(), Params::new().with("pids", 9)),
        ];
        assert_eq!(
            read("host,docker:image=a/b:1,cpus=0.5,container:pids=9"),
            expected
        );
        assert_eq!(read("a,b"), read("a,,b,"));
    }

    #[test]
    fn a_list_is_read_as_it_is_printed() {
        let binds = Value::List(vec![
            Value::Text("/usr:/usr:ro".into()),
            Value::Text("/a,b:/c".into()),
        ]);
        let text = r#"container:binds=["/usr:/usr:ro", "/a,b:/c"],memory=64m"#;
        let settings = Params::new().with("binds", binds).with("memory", "64m");
        assert_eq!(read(text), [("container".to_owned(), settings)]);
        assert!(setting("binds=[\"/usr").unwrap_err().contains("is no list"));
    }

    #[test]
    fn a_setting_may_name_its_arm() {
        let half = Value::Float(0.5);
        assert_eq!(setting_of("cpus=0.5"), Ok((None, "cpus", half.clone())));
        assert_eq!(setting_of("a.b.cpus=0.5"), Ok((Some("a.b"), "cpus", half)));
        for wrong in ["NAME", "=1"] {
            assert!(setting(wrong).unwrap_err().contains("NAME=VALUE"));
        }
        assert!(environments("docker:web-1").is_err());
    }

    #[test]
    fn setting_values_parse_as_bool_int_float_or_text() {
        for (text, value) in [
            ("true", Value::Bool(true)),
            ("2", Value::Int(2)),
            ("0.5", Value::Float(0.5)),
            ("64m", Value::Text("64m".into())),
            ("inf", Value::Text("inf".into())),
            ("0-1", Value::Text("0-1".into())),
        ] {
            assert_eq!(value_of(text), Ok(value));
        }
    }
}
