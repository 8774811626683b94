//! Values of settings as several drivers read them, each refusal with what would be right.

use tare_model::{Params, Value};

use super::SettingsError;

/// A setting that cannot be so, and what would be right.
pub(super) fn wrong(setting: &str, problem: String, hint: impl Into<String>) -> SettingsError {
    SettingsError {
        setting: setting.to_owned(),
        problem,
        hint: Some(hint.into()),
    }
}

/// A value, harmless for a terminal.
pub(super) fn shown(value: &Value) -> String {
    value.to_string().escape_debug().to_string()
}

/// The value as one of the named choices.
pub(super) fn choice<T: Copy>(
    settings: &Params,
    name: &str,
    choices: &[(&str, T)],
) -> Result<Option<T>, SettingsError> {
    let Some(value) = settings.value(name) else {
        return Ok(None);
    };
    let text = value.to_string();
    let found = choices.iter().find(|(word, _)| *word == text);
    found.map(|(_, choice)| Some(*choice)).ok_or_else(|| {
        let words: Vec<String> = choices
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        wrong(
            name,
            format!("`{}` is no value of `{name}`", shown(value)),
            format!("one of {}", words.join(", ")),
        )
    })
}

/// The value as true or false.
pub(super) fn switch(settings: &Params, name: &str) -> Result<Option<bool>, SettingsError> {
    match settings.value(name) {
        None => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(*value)),
        Some(value) => Err(wrong(
            name,
            format!("`{}` is neither true nor false", shown(value)),
            "true or false, without quotes",
        )),
    }
}

/// The words of a list, or of a text with commas.
pub(super) fn words(value: &Value) -> Vec<String> {
    value
        .to_string()
        .split(',')
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}
