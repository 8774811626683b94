//! Writes compose overrides that remove differences of a service: ready to be pasted, and exactly what Tare tries.
//!
//! An override removes parts by compose's `!reset`; a limit that is set in two places of a service is removed from
//! both. Variables are set to null, which also removes the image's.
//! Pure: the input is the service in the plugin's output.
//! Limits: the names of a difference in the files that the plugin merged are unknown.

use crate::env::prelude::*;

use crate::env::user_container::fields::{DEPENDENT, FIELDS};

/// Removes a part.
const RESET: &str = "!reset null";

/// Sets the part of an override at a path.
fn put(over: &mut Value, path: &[&str], text: &str) {
    *path.iter().fold(over, |node, name| &mut node[*name]) = json!(text);
}

/// An override, or a part of it, in YAML; its texts are YAML already.
fn written(node: &Value) -> String {
    if let Value::String(text) = node {
        return text.clone();
    }
    let parts: Vec<String> = members_of(node)
        .map(|(name, node)| format!("{}: {}", key(name), written(node)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}

/// A name, quoted for YAML if necessary.
fn key(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if begins && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        Value::String(name.to_owned()).to_string()
    }
}

/// The override that removes these differences from a service, as one line of YAML; `None` if compose cannot express
/// one of them.
pub(super) fn patch(name: &str, service: &Value, ids: &[String]) -> Option<String> {
    let mut over = json!({});
    for id in ids {
        of_one(&mut over, service, id)?;
    }
    let come = ids.iter().filter_map(|id| match id.as_str() {
        "engine.seccomp" => Some("seccomp=unconfined"),
        "engine.apparmor" => Some("apparmor=unconfined"),
        _ => None,
    });
    for (list, kind, come) in [
        ("security_opt", "security-opt.", come.collect()),
        ("tmpfs", "tmpfs.", Vec::new()),
    ] {
        let gone = ids.iter().filter_map(|id| id.strip_prefix(kind));
        put_list(&mut over, service, list, (gone.collect(), come));
    }
    let inner = written(&over);
    (inner != "{}").then(|| format!("services: {{{}: {inner}}}", key(name)))
}

fn of_one(over: &mut Value, service: &Value, id: &str) -> Option<()> {
    let entry = id.split_once('.').filter(|(kind, _)| *kind != "engine");
    match (id, entry) {
        (_, Some(("env", variable))) => put(over, &["environment", variable], "null"),
        (_, Some(("sysctl", name))) => put(over, &["sysctls", name], RESET),
        (_, Some(("ulimit", name))) => put(over, &["ulimits", name], RESET),
        // Entries of lists, which are written together.
        (_, Some(("security-opt" | "tmpfs", _))) | ("engine.seccomp" | "engine.apparmor", _) => {}
        ("engine.network", _) => {
            put(over, &["network_mode"], "host");
            for part in ["networks", "ports"] {
                if has(service, &[part]) {
                    put(over, &[part], RESET);
                }
            }
        }
        ("engine.log", _) => put(over, &["logging"], "!override {driver: none}"),
        ("health", _) => put(over, &["healthcheck"], "!override {disable: true}"),
        _ => of_field(over, service, id)?,
    }
    Some(())
}

/// Resets a part that is one field, and the fields that are meaningless without it.
fn of_field(over: &mut Value, service: &Value, id: &str) -> Option<()> {
    let field = FIELDS.iter().find(|field| field.id == id)?;
    let with = field.with.iter().filter_map(|name| {
        let known = FIELDS.iter().map(|field| (field.name, field.compose));
        let dependent = DEPENDENT.iter().map(|(name, _, key)| (*name, *key));
        let mut known = known.chain(dependent);
        Some(known.find(|(known, _)| known == name)?.1)
    });
    let mut n_found = 0;
    for name in std::iter::once(field.compose).chain(with) {
        for path in places(name) {
            if has(service, &path) {
                put(over, &path, RESET);
                n_found += 1;
            }
        }
    }
    (n_found > 0).then_some(())
}

/// The paths of a part: in the service, and for some limits also below `deploy`.
fn places(name: &'static str) -> Vec<Vec<&'static str>> {
    let limits = |part| vec!["deploy", "resources", "limits", part];
    let below = match name {
        "cpus" => Some(limits("cpus")),
        "mem_limit" => Some(limits("memory")),
        "pids_limit" => Some(limits("pids")),
        "mem_reservation" => Some(vec!["deploy", "resources", "reservations", "memory"]),
        "networks" => Some(vec!["network_mode"]),
        _ => None,
    };
    std::iter::once(name.split('.').collect())
        .chain(below)
        .collect()
}

fn has(service: &Value, path: &[&str]) -> bool {
    let value = path.iter().fold(service, |value, name| &value[*name]);
    !value.is_null()
}

/// Writes a list from which entries of these names are gone and to which others come: compose appends one list to the
/// other.
fn put_list(over: &mut Value, service: &Value, list: &str, (gone, come): (Vec<&str>, Vec<&str>)) {
    if gone.is_empty() && come.is_empty() {
        return;
    }
    let left = texts_of(&service[list]).filter(|text| {
        let name = text.split(['=', ':']).next().unwrap_or_default();
        !gone.contains(&name)
    });
    let (word, kept): (&str, Vec<&str>) = if gone.is_empty() {
        ("", Vec::new())
    } else {
        ("!override ", left.collect())
    };
    let all: Vec<&str> = kept.into_iter().chain(come).collect();
    put(over, &[list], &format!("{word}{}", json!(all)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedy_for(ids: &[&str]) -> Option<String> {
        let config: Value = serde_json::from_str(include_str!("compose/captured.json")).unwrap();
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        patch("web", &config["services"]["web"], &ids)
    }

    /// Compose's own library merged each of these with the captured file, and then printed the service without the
    /// part.
    #[test]
    fn every_difference_kind_has_its_compose_override() {
        for (id, expected) in [
            ("cpu-shares", "cpu_shares: !reset null"),
            ("cpus", "deploy: {resources: {limits: {cpus: !reset null}}}"),
            ("env.LOG_LEVEL", "environment: {LOG_LEVEL: null}"),
            (
                "sysctl.net.core.somaxconn",
                "sysctls: {\"net.core.somaxconn\": !reset null}",
            ),
            ("ulimit.nofile", "ulimits: {nofile: !reset null}"),
            (
                "security-opt.no-new-privileges",
                "security_opt: !override []",
            ),
            ("engine.seccomp", "security_opt: [\"seccomp=unconfined\"]"),
            ("tmpfs./x", "tmpfs: !override [\"/scratch\"]"),
            ("log", "logging: !reset null"),
            ("engine.log", "logging: !override {driver: none}"),
            ("publish", "ports: !reset null"),
            (
                "engine.network",
                "network_mode: host, networks: !reset null, ports: !reset null",
            ),
            ("blkio-weight", "blkio_config: {weight: !reset null}"),
            ("dns", "dns: !reset null"),
        ] {
            let wanted = format!("services: {{web: {{{expected}}}}}");
            assert_eq!(remedy_for(&[id]), Some(wanted), "{id}");
        }
        let memory = remedy_for(&["memory"]).unwrap();
        assert!(
            memory.contains("limits: {memory: !reset null}")
                && memory.contains("reservations: {memory: !reset null}")
                && memory.contains("memswap_limit: !reset null"),
            "{memory}"
        );
    }

    #[test]
    fn overrides_merge_only_if_all_are_supported() {
        assert_eq!(
            remedy_for(&[
                "cpu-shares",
                "env.BASE",
                "security-opt.no-new-privileges",
                "engine.seccomp"
            ])
            .unwrap(),
            "services: {web: {cpu_shares: !reset null, environment: {BASE: null}, security_opt: !override [\"seccomp=unconfined\"]}}"
        );
        assert_eq!(remedy_for(&["cpu-shares", "user"]), None);
        assert_eq!(remedy_for(&["runtime"]), None);
        assert_eq!(remedy_for(&[]), None);
    }
}
