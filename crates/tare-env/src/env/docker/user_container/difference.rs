//! Lists the parts in which a container's configuration differs from a plain one, and removes some of them.
//!
//! Pure: the inputs are two bodies of the request that creates a container, as the same client or engine wrote them,
//! so no table of defaults is needed. A part is a field, or one entry of a list or map with independent entries: a
//! variable, a sysctl, a limit, a security option.
//! Limits: fields that an engine fills in only at the start of the container are not seen.

use crate::env::prelude::*;

use crate::env::grammar::Ulimit;
use crate::env::user_container::command;
use crate::env::user_container::fields::{DEPENDENT, FIELDS, Field, NO_DIFFERENCE};
use crate::env::user_container::{self, Difference, IN_MEMORY_PRICE};

mod engine;
mod health;
mod mounts;

pub(super) use health::check_ns;
pub(crate) use mounts::{Copied, Holds};
pub(super) use mounts::{copyable, switchable};

/// The configuration of a container and that of a plain one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    /// The container's configuration.
    pub(super) body: &'a Value,
    /// The configuration of a plain container of the same image.
    pub(super) plain: &'a Value,
    /// The image's variables.
    pub(super) image_env: &'a [String],
    /// Nanoseconds between two of the image's health checks, if it has one.
    pub(super) images_check_ns: Option<u64>,
    /// The mounts whose files were copied.
    pub(super) copied: &'a [Copied],
    /// The limits of a process in this machine's shell.
    pub(super) limits: &'a [Ulimit],
}

impl<'a> Pair<'a> {
    /// Both `HostConfig`s.
    fn hosts(&self) -> (&'a Value, &'a Value) {
        (&self.body["HostConfig"], &self.plain["HostConfig"])
    }
}

/// A part, and how to remove it.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) difference: Difference,
    switch: Switch,
}

impl Part {
    /// A part that the program does not need, as far as is known, and that acts all the time.
    fn new(
        id: impl Into<String>,
        what: impl Into<String>,
        advice: impl Into<String>,
        price: &str,
        likelihood: f64,
        switch: Switch,
    ) -> Self {
        Self {
            difference: Difference {
                id: id.into(),
                what: what.into(),
                advice: advice.into(),
                price: price.to_owned(),
                likelihood,
                ..Difference::default()
            },
            switch,
        }
    }

    fn may_be_needed(mut self, may_be_needed: bool) -> Self {
        self.difference.may_be_needed = may_be_needed;
        self
    }
}

#[derive(Debug, Clone)]
enum Switch {
    /// Sets these fields of `HostConfig` to those of a plain container.
    Fields(Vec<String>),
    /// Removes one entry of a list or map of `HostConfig`, by its key or the beginning of its text.
    Entry(&'static str, String),
    Variable(String),
    /// Resets a field outside `HostConfig`.
    Top(&'static str),
    HealthCheck,
    /// Removes the mount at this path.
    Mount(String),
    /// Adds an entry to a list of `HostConfig`.
    Add(&'static str, Value),
    HostNetwork,
    NoLog,
}

/// Whether a value means the same as an absent one.
pub(super) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => matches!(number.as_i64(), Some(0 | -1)),
        Value::String(text) => matches!(text.as_str(), "" | "default" | "no"),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_nothing),
    }
}

/// Whether a field says other things in two configurations.
fn differs(name: &str, body: &Value, plain: &Value) -> bool {
    let of = |host: &Value| {
        Some(&host[name])
            .filter(|value| !is_nothing(value))
            .cloned()
    };
    of(body) != of(plain)
}

/// A value in a few words, without possible secrets.
fn shown(name: &str, value: &Value) -> String {
    let text = match (name, value) {
        ("LogConfig", value) => {
            let driver = value["Type"].as_str().unwrap_or_default();
            let options = members_of(&value["Config"]);
            std::iter::once(driver.to_owned())
                .chain(options.map(|(name, _)| format!("--log-opt {name}=…")))
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        }
        (_, Value::String(text)) => text.clone(),
        (_, Value::Bool(true)) => String::new(),
        ("NanoCpus", value) => (value.as_f64().unwrap_or_default() / 1e9).to_string(),
        ("PortBindings", Value::Object(ports)) => {
            ports.keys().cloned().collect::<Vec<_>>().join(" ")
        }
        (_, Value::Array(list)) if list.iter().all(Value::is_string) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            words.join(",")
        }
        ("Memory" | "MemorySwap" | "MemoryReservation" | "ShmSize", Value::Number(number)) => {
            let bytes = number.as_u64().unwrap_or_default();
            if bytes > 0 && bytes.is_multiple_of(1 << 20) {
                format!("{}m", bytes >> 20)
            } else {
                number.to_string()
            }
        }
        (_, Value::Number(number)) => number.to_string(),
        _ => "…".to_owned(),
    };
    let short: String = text.chars().take(40).collect();
    let rest = if short.len() < text.len() { "…" } else { "" };
    format!("{}{rest}", printable(&short))
}

/// All parts in which a container differs, the likeliest cause first.
pub(super) fn parts(pair: Pair<'_>) -> Vec<Part> {
    let mut parts = of_fields(pair);
    parts.extend(of_entries(pair));
    parts.extend(of_variables(pair));
    parts.extend(of_user(pair));
    parts.extend(health::part(pair));
    parts.extend(mounts::of_mounts(pair));
    parts.extend(mounts::of_memory(pair));
    parts.extend(mounts::of_settings(pair));
    parts.extend(engine::parts(pair));
    parts.sort_by(|a, b| b.difference.likelihood.total_cmp(&a.difference.likelihood));
    parts
}

fn of_fields(pair: Pair<'_>) -> Vec<Part> {
    let (body, plain) = pair.hosts();
    let mut parts = Vec::new();
    for (name, value) in members_of(body) {
        if NO_DIFFERENCE.contains(&name.as_str())
            || !differs(name, body, plain)
            || is_derived(name, body)
            || is_nothing(value)
        {
            continue;
        }
        let known = FIELDS.iter().find(|field| field.name == name);
        let text = shown(name, value);
        parts.push(match known {
            Some(field) => of_known(field, &text, body),
            None => Part::new(
                name,
                format!("`HostConfig.{name}`"),
                format!("leave `{name}` of its configuration as the engine has it"),
                "unknown here",
                0.2,
                Switch::Fields(vec![name.clone()]),
            )
            .may_be_needed(true),
        });
    }
    parts
}

/// Whether an engine derives a field from another one.
fn is_derived(name: &str, body: &Value) -> bool {
    let number = |name: &str| body[name].as_i64();
    match name {
        "MemorySwap" => number("Memory").is_some_and(|memory| {
            memory > 0 && number(name).is_some_and(|swap| swap == 2 * memory)
        }),
        // `--privileged` unmasks every path.
        "MaskedPaths" | "ReadonlyPaths" => body["Privileged"] == true || !body[name].is_array(),
        "IpcMode" => matches!(body[name].as_str(), Some("private" | "shareable")),
        _ => false,
    }
}

fn of_known(field: &Field, text: &str, body: &Value) -> Part {
    let mut given = if text.is_empty() {
        field.flag.to_owned()
    } else if text.starts_with("--") {
        // Log options with the default driver.
        text.to_owned()
    } else {
        format!("{} {text}", field.flag)
    };
    for (name, flag, _) in DEPENDENT {
        let value = &body[name];
        if field.with.contains(&name) && !is_nothing(value) {
            given = format!("{given} {flag} {}", shown(name, value));
        }
    }
    let compose = if field.compose.is_empty() {
        String::new()
    } else {
        format!(" (in a compose file: `{}:`)", field.compose)
    };
    let fields = std::iter::once(&field.name).chain(field.with);
    Part::new(
        field.id,
        format!("`{given}`"),
        format!("remove `{given}` from the `docker run` line{compose}"),
        field.price,
        field.likelihood,
        Switch::Fields(fields.map(|name| (*name).to_owned()).collect()),
    )
    .may_be_needed(field.may_be_needed)
}

/// Lists and maps whose entries are separate parts: the field, the prefix of their names, the flag.
const ENTRIES: [(&str, &str, &str, &str, f64); 4] = [
    (
        "SecurityOpt",
        "security-opt",
        "--security-opt",
        "security_opt",
        0.4,
    ),
    ("Sysctls", "sysctl", "--sysctl", "sysctls", 0.4),
    ("Ulimits", "ulimit", "--ulimit", "ulimits", 0.3),
    ("Tmpfs", "tmpfs", "--tmpfs", "tmpfs", 0.3),
];

/// The entries of a field: names and values.
fn entries(field: &str, host: &Value) -> BTreeMap<String, String> {
    match &host[field] {
        list @ Value::Array(_) => entries_of(list)
            .filter_map(|entry| match entry {
                Value::String(text) => {
                    let name = text.split(['=', ':']).next()?;
                    // A seccomp profile is a page of JSON.
                    let value = text.get(name.len() + 1..).unwrap_or_default();
                    let value = if value.starts_with('{') {
                        "a profile of its own"
                    } else {
                        value
                    };
                    Some((name.to_owned(), value.to_owned()))
                }
                limit => Some((
                    limit["Name"].as_str()?.to_owned(),
                    format!("{}:{}", limit.get("Soft")?, limit.get("Hard")?),
                )),
            })
            .collect(),
        map => members_of(map)
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
    }
}

fn of_entries(pair: Pair<'_>) -> Vec<Part> {
    let (body, plain) = pair.hosts();
    let mut parts = Vec::new();
    for (field, prefix, flag, compose, likelihood) in ENTRIES {
        let usual = entries(field, plain);
        for (name, value) in entries(field, body) {
            if usual.get(&name) == Some(&value) {
                continue;
            }
            let text = match field {
                _ if value.is_empty() => name.clone(),
                "Tmpfs" => format!("{name}:{value}"),
                _ => format!("{name}={value}"),
            };
            let text = printable(&text.chars().take(60).collect::<String>());
            let price = match field {
                "SecurityOpt" => "what it forbids is allowed again, or the reverse",
                "Tmpfs" => IN_MEMORY_PRICE,
                _ => "what it was set for",
            };
            let part = Part::new(
                format!("{prefix}.{}", printable(&name)),
                format!("`{flag} {text}`"),
                format!(
                    "remove `{flag} {text}` from the `docker run` line (in a compose file: below `{compose}:`)"
                ),
                price,
                likelihood,
                Switch::Entry(field, name),
            );
            parts.push(part.may_be_needed(field == "Tmpfs"));
        }
    }
    parts
}

fn variables(list: &Value) -> BTreeMap<String, Option<String>> {
    texts_of(list).map(split).collect()
}

/// A variable's name and its value, if set.
pub(super) fn split(text: &str) -> (String, Option<String>) {
    match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    }
}

fn of_variables(pair: Pair<'_>) -> Vec<Part> {
    let mut all: BTreeMap<String, Option<String>> =
        pair.image_env.iter().map(|text| split(text)).collect();
    let images = all.clone();
    let given = variables(&pair.body["Env"]);
    let of_client = variables(&pair.plain["Env"]);
    all.extend(given.clone());
    let command = [command_text(pair.body)];
    let mut parts = Vec::new();
    for (name, value) in all
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    {
        let shown = printable(&name);
        let is_other = given.contains_key(&name) && given.get(&name) != images.get(&name);
        let is_restored = is_other && user_container::fields::reader_of(&name).is_restored();
        let unset = (images.contains_key(&name) && !is_restored).then(|| {
            format!(
                "take `ENV {shown}` out of the image, or unset `{shown}` before the program starts"
            )
        });
        let text = format!("{name}={value}");
        let mut difference = user_container::variable(&text, unset, "docker", &command);
        if let Some(difference) = &mut difference
            && of_client.get(&name) == given.get(&name)
            && given.contains_key(&name)
        {
            difference.what = format!("the variable `{shown}` that the client adds");
            difference.advice = format!(
                "take it out of `proxies` in the client's `config.json`, or say `-e {shown}=`"
            );
        }
        parts.extend(difference.map(|difference| Part {
            difference,
            switch: Switch::Variable(shown),
        }));
    }
    parts
}

/// The entrypoint and command, as one text.
fn command_text(body: &Value) -> String {
    format!("{}{}", body["Entrypoint"], body["Cmd"])
}

fn of_user(pair: Pair<'_>) -> Option<Part> {
    let user = |body: &Value| body["User"].as_str().unwrap_or_default().to_owned();
    let (user, plain) = (user(pair.body), user(pair.plain));
    if user.is_empty() || user == plain {
        return None;
    }
    let user = printable(&user);
    let part = Part::new(
        "user",
        format!("`--user {user}`"),
        format!("remove `--user {user}` from the `docker run` line (in a compose file: `user:`)"),
        "it runs as the image's user, who is root mostly",
        0.1,
        Switch::Top("User"),
    );
    Some(part.may_be_needed(true))
}

/// The configuration without these parts. A name that ends in `?` is optional; of the optional ones, at least one
/// must exist.
///
/// # Errors
/// Names a part that the container does not have.
pub(super) fn without(pair: Pair<'_>, names: &[String]) -> Result<Value, String> {
    let parts = parts(pair);
    let mut body = pair.body.clone();
    let no_such = |ids: &str| format!("the container has no `{}` of its own", printable(ids));
    let (mut missing, mut has_optional) = (Vec::new(), false);
    // Engine parts go last: they undo defaults of a plain container.
    let mut wanted: Vec<&Part> = Vec::new();
    for name in names.iter().filter(|name| !command::is_part(name)) {
        let optional = name.strip_suffix('?');
        let id = optional.unwrap_or(name);
        match parts.iter().find(|part| part.difference.id == id) {
            Some(part) => {
                wanted.push(part);
                has_optional |= optional.is_some();
            }
            None if optional.is_some() => missing.push(id),
            None => return Err(no_such(id)),
        }
    }
    if !missing.is_empty() && !has_optional {
        return Err(no_such(&missing.join("`, `")));
    }
    wanted.sort_by_key(|part| part.difference.id.starts_with("engine."));
    for part in wanted {
        take_away(&mut body, pair, &part.switch);
    }
    Ok(body)
}

fn take_away(body: &mut Value, pair: Pair<'_>, switch: &Switch) {
    match switch {
        Switch::Fields(names) => {
            for name in names {
                body["HostConfig"][name] = pair.plain["HostConfig"][name].clone();
                if name == "NetworkMode" {
                    body["NetworkingConfig"] = pair.plain["NetworkingConfig"].clone();
                    body["HostConfig"]["Links"] = Value::Null;
                }
            }
        }
        Switch::Entry(field, name) => match &mut body["HostConfig"][*field] {
            Value::Array(list) => list.retain(|entry| match entry {
                Value::String(text) => text.split(['=', ':']).next() != Some(name.as_str()),
                other => other["Name"] != name.as_str(),
            }),
            Value::Object(map) => {
                map.remove(name);
            }
            _ => {}
        },
        Switch::Variable(name) => {
            let images = pair.image_env.iter().find(|text| split(text).0 == *name);
            let mut list = body["Env"].as_array().cloned().unwrap_or_default();
            let is_it = |text: &Value| text.as_str().is_some_and(|text| split(text).0 == *name);
            let given = list.iter().find(|text| is_it(text)).and_then(Value::as_str);
            let is_other = given.is_some_and(|text| images.is_none_or(|images| images != text));
            list.retain(|text| !is_it(text));
            // A path list gets the image's value back.
            let is_restored = is_other && user_container::fields::reader_of(name).is_restored();
            if images.is_some() && !is_restored {
                // For engines, a name without a value removes the image's.
                list.push(Value::String(name.clone()));
            }
            body["Env"] = Value::Array(list);
        }
        Switch::Mount(target) => mounts::take_away(body, target),
        Switch::Top(name) => body[*name] = pair.plain[*name].clone(),
        // Omitted fields default to the image's.
        Switch::HealthCheck => {
            body["Healthcheck"] = if pair.images_check_ns.is_some() {
                json!({"Test": ["NONE"]})
            } else {
                json!({})
            };
        }
        Switch::Add(field, entry) => match &mut body["HostConfig"][*field] {
            Value::Array(list) => list.push(entry.clone()),
            other => *other = json!([entry]),
        },
        Switch::HostNetwork => {
            let host = &mut body["HostConfig"];
            host["NetworkMode"] = Value::String("host".to_owned());
            for name in ["PortBindings", "PublishAllPorts", "Links"] {
                host[name] = Value::Null;
            }
            // They belong to a namespace that is gone.
            if let Value::Object(sysctls) = &mut host["Sysctls"] {
                sysctls.retain(|name, _| !name.starts_with("net."));
            }
            body["NetworkingConfig"] = Value::Null;
            body["MacAddress"] = Value::Null;
            body["Hostname"] = Value::Null;
        }
        Switch::NoLog => {
            body["HostConfig"]["LogConfig"] = json!({"Type": "none", "Config": {}});
        }
    }
}

#[cfg(test)]
mod tests;
