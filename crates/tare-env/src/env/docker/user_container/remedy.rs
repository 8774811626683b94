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

/// A node of an override.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Text(String),
    Map(BTreeMap<String, Node>),
}

impl Node {
    fn put(&mut self, path: &[&str], text: &str) {
        let Some((name, rest)) = path.split_first() else {
            *self = Self::Text(text.to_owned());
            return;
        };
        if !matches!(self, Self::Map(_)) {
            *self = Self::Map(BTreeMap::new());
        }
        if let Self::Map(map) = self {
            let inner = map.entry((*name).to_owned());
            inner
                .or_insert_with(|| Self::Map(BTreeMap::new()))
                .put(rest, text);
        }
    }

    fn written(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Map(map) => {
                let parts: Vec<String> = map
                    .iter()
                    .map(|(name, node)| format!("{}: {}", key(name), node.written()))
                    .collect();
                format!("{{{}}}", parts.join(", "))
            }
        }
    }
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
pub(super) fn patch(name: &str, service: &Map<String, Value>, ids: &[String]) -> Option<String> {
    let mut node = Node::Map(BTreeMap::new());
    let mut lists = Lists::default();
    for id in ids {
        lists
            .take_in(id)
            .or_else(|| of_one(&mut node, service, id))?;
    }
    lists.write(&mut node, service);
    let inner = node.written();
    (inner != "{}").then(|| format!("services: {{{}: {inner}}}", key(name)))
}

fn of_one(node: &mut Node, service: &Map<String, Value>, id: &str) -> Option<()> {
    let entry = id.split_once('.').filter(|(kind, _)| *kind != "engine");
    match (id, entry) {
        (_, Some(("env", variable))) => node.put(&["environment", variable], "null"),
        (_, Some(("sysctl", name))) => node.put(&["sysctls", name], RESET),
        (_, Some(("ulimit", name))) => node.put(&["ulimits", name], RESET),
        ("engine.network", _) => {
            node.put(&["network_mode"], "host");
            for part in ["networks", "ports"] {
                if service.contains_key(part) {
                    node.put(&[part], RESET);
                }
            }
        }
        ("engine.log", _) => node.put(&["logging"], "!override {driver: none}"),
        ("health", _) => node.put(&["healthcheck"], "!override {disable: true}"),
        _ => of_field(node, service, id)?,
    }
    Some(())
}

/// Resets a part that is one field, and the fields that are meaningless without it.
fn of_field(node: &mut Node, service: &Map<String, Value>, id: &str) -> Option<()> {
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
                node.put(&path, RESET);
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

fn has(service: &Map<String, Value>, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    let mut value = service.get(*first);
    for name in rest {
        value = value.and_then(|value| value.get(*name));
    }
    value.is_some_and(|value| !value.is_null())
}

/// Lists whose entries are removed or added one by one: compose appends one list to the other.
#[derive(Debug, Default)]
struct Lists {
    /// The list and the name of the entry.
    gone: Vec<(&'static str, String)>,
    come: Vec<&'static str>,
}

impl Lists {
    fn take_in(&mut self, id: &str) -> Option<()> {
        match (id, id.split_once('.')) {
            ("engine.seccomp", _) => self.come.push("seccomp=unconfined"),
            ("engine.apparmor", _) => self.come.push("apparmor=unconfined"),
            (_, Some(("security-opt", name))) => self.gone.push(("security_opt", name.to_owned())),
            (_, Some(("tmpfs", name))) => self.gone.push(("tmpfs", name.to_owned())),
            _ => return None,
        }
        Some(())
    }

    fn write(&self, node: &mut Node, service: &Map<String, Value>) {
        for list in ["security_opt", "tmpfs"] {
            let come: &[&str] = if list == "security_opt" {
                &self.come
            } else {
                &[]
            };
            let gone: Vec<&String> = self
                .gone
                .iter()
                .filter(|(of, _)| *of == list)
                .map(|(_, name)| name)
                .collect();
            if gone.is_empty() && come.is_empty() {
                continue;
            }
            let left = service.get(list).and_then(Value::as_array);
            let left = left.into_iter().flatten().filter_map(Value::as_str);
            let left = left.filter(|text| {
                let name = text.split(['=', ':']).next().unwrap_or_default();
                !gone.iter().any(|gone| *gone == name)
            });
            let (word, kept): (&str, Vec<&str>) = if gone.is_empty() {
                ("", Vec::new())
            } else {
                ("!override ", left.collect())
            };
            let all: Vec<&str> = kept.into_iter().chain(come.iter().copied()).collect();
            let text = serde_json::to_string(&all).expect("texts are always JSON");
            node.put(&[list], &format!("{word}{text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Map<String, Value> {
        let config: Value = serde_json::from_str(include_str!("compose/captured.json")).unwrap();
        config["services"]["web"].as_object().unwrap().clone()
    }

    fn remedy_for(ids: &[&str]) -> Option<String> {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        patch("web", &service(), &ids)
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
