//! What a copy of the user's container may share with it: volumes, folders, names, ports and labels.
//!
//! Pure: a configuration in, one that can stand beside the original out, with a line for every change. The rule is
//! that nothing of the user's is written to, answered for or ended by a copy unless that was asked for.
//! What it cannot see: what a program does over a network that both are in.

use serde_json::{Value, json};

use super::{Retold, Shares};
use crate::env::text::printable;

/// Sockets by which whoever can connect steers the machine.
const STEERING: [&str; 4] = ["docker.sock", "podman.sock", "containerd.sock", "crio.sock"];

/// A volume or folder as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::env) struct Share {
    /// A path of the engine's machine, or a volume's name; empty for a new volume.
    pub(in crate::env) source: String,
    /// The path inside.
    pub(in crate::env) target: String,
    pub(in crate::env) may_write: bool,
}

impl Share {
    pub(in crate::env) fn of_bind(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let (first, second) = (words.next()?, words.next());
        let options = words.next().unwrap_or_default();
        Some(match second {
            Some(target) => Self {
                source: first.to_owned(),
                target: target.to_owned(),
                may_write: !options.split(',').any(|option| option == "ro"),
            },
            None => Self {
                source: String::new(),
                target: first.to_owned(),
                may_write: true,
            },
        })
    }

    pub(in crate::env) fn of_mount(mount: &Value) -> Option<Self> {
        let text = |name: &str| mount[name].as_str().unwrap_or_default().to_owned();
        matches!(mount["Type"].as_str(), Some("bind" | "volume")).then(|| Self {
            source: text("Source"),
            target: text("Target"),
            may_write: mount["ReadOnly"] != true,
        })
    }

    /// Whether whoever can connect to it steers the machine.
    pub(in crate::env) fn steers(&self) -> bool {
        let name = self.source.rsplit('/').next().unwrap_or_default();
        STEERING.contains(&name)
    }

    /// Whether it is a path of the engine's machine rather than a volume.
    pub(in crate::env) fn is_folder(&self) -> bool {
        self.source.starts_with('/')
    }
}

/// What a configuration names to be shown.
pub(in crate::env) fn shares(body: &Value) -> Vec<Share> {
    let host = &body["HostConfig"];
    let list = |name: &str| host[name].as_array().into_iter().flatten();
    let binds = list("Binds").filter_map(|bind| Share::of_bind(bind.as_str()?));
    binds
        .chain(list("Mounts").filter_map(Share::of_mount))
        .collect()
}

/// What stands in for a share that the command could write to, where each arm has a copy of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::env) enum Copy {
    /// A new volume, into which the files are laid.
    Volume,
    /// The container's own layer, into which the file is laid.
    Layer,
    /// The engine lays a layer of the container's own over it.
    Overlay,
}

/// What is known of the shares of a configuration.
#[derive(Clone, Copy)]
pub(in crate::env) struct Policy<'a> {
    /// What may be written to.
    pub(in crate::env) shares: Shares,
    /// Whether the source of a share exists: an engine would make it, and it would stay.
    pub(in crate::env) is_there: &'a dyn Fn(&Share) -> bool,
    /// What stands in for a share where copies are wanted; none for one that cannot be copied.
    pub(in crate::env) copy: &'a dyn Fn(&Share) -> Option<Copy>,
}

/// The configuration as it can stand beside the original.
pub(in crate::env) fn beside(body: &Value, policy: Policy<'_>, told: &mut Vec<String>) -> Value {
    let mut body = body.clone();
    names_and_labels(&mut body, told);
    ports(&mut body, told);
    let host = &mut body["HostConfig"];
    let mut kept_binds = Vec::new();
    let mut kept_mounts = Vec::new();
    for bind in host["Binds"].as_array().cloned().unwrap_or_default() {
        let Some(text) = bind.as_str() else { continue };
        let Some(share) = Share::of_bind(text) else {
            continue;
        };
        match judged(&share, policy, told) {
            Fate::AsItIs => kept_binds.push(Value::String(without_label(text))),
            Fate::ReadOnly => kept_binds.push(Value::String(read_only(text))),
            Fate::New => kept_mounts.push(json!({"Type": "volume", "Target": share.target})),
            Fate::Over => kept_binds.push(overlaid(&share)),
            Fate::Gone => {}
        }
    }
    for mut mount in host["Mounts"].as_array().cloned().unwrap_or_default() {
        let fate = match Share::of_mount(&mount) {
            Some(share) => judged(&share, policy, told),
            None => Fate::AsItIs,
        };
        match fate {
            Fate::AsItIs => kept_mounts.push(mount),
            Fate::ReadOnly => {
                mount["ReadOnly"] = Value::Bool(true);
                kept_mounts.push(mount);
            }
            Fate::New => kept_mounts.push(json!({"Type": "volume", "Target": mount["Target"]})),
            Fate::Over => kept_binds.extend(Share::of_mount(&mount).map(|share| overlaid(&share))),
            Fate::Gone => {}
        }
    }
    host["Binds"] = Value::Array(kept_binds);
    host["Mounts"] = Value::Array(kept_mounts);
    if let (true, Value::Array(others)) =
        (policy.shares != Shares::Shared, &mut host["VolumesFrom"])
    {
        for other in others {
            let name = other.as_str().unwrap_or_default();
            let name = name.split(':').next().unwrap_or_default().to_owned();
            told.push(format!(
                "the volumes of the container `{}` are shared read-only",
                printable(&name)
            ));
            *other = Value::String(format!("{name}:ro"));
        }
    }
    body
}

enum Fate {
    AsItIs,
    ReadOnly,
    /// An empty volume of the arm's own.
    New,
    /// As it is, below a layer of the arm's own.
    Over,
    Gone,
}

fn overlaid(share: &Share) -> Value {
    Value::String(format!("{}:{}:O", share.source, share.target))
}

fn judged(share: &Share, policy: Policy<'_>, told: &mut Vec<String>) -> Fate {
    let (source, target) = (printable(&share.source), printable(&share.target));
    if share.steers() && policy.shares != Shares::Shared {
        told.push(format!(
            "`{source}` is not shown inside: whoever can connect to it steers the machine; `--share-writable` shows it"
        ));
        return Fate::Gone;
    }
    if share.source.is_empty() {
        return Fate::New;
    }
    if !(policy.is_there)(share) {
        told.push(format!(
            "`{source}` does not exist: an empty volume of the run's own stands at `{target}`"
        ));
        return Fate::New;
    }
    if !share.may_write || policy.shares == Shares::Shared {
        return Fate::AsItIs;
    }
    let copy = (policy.copy)(share).filter(|_| policy.shares == Shares::Copied);
    if let Some(copy) = copy {
        told.push(told_copy(share));
        return match copy {
            Copy::Volume => Fate::New,
            Copy::Layer => Fate::Gone,
            Copy::Overlay => Fate::Over,
        };
    }
    told.push(told_read_only(share));
    Fate::ReadOnly
}

/// What is told of a share that the command could write to and that is shown read-only.
fn told_read_only(share: &Share) -> String {
    format!(
        "`{}` is shown at `{}` READ-ONLY, so that nothing of yours is written to; `--share-writable` lets the command write there",
        printable(&share.source),
        printable(&share.target)
    )
}

/// What is told of a share of which every arm has a copy now, in place of what was told of it.
pub(in crate::env) fn retold(share: &Share) -> Retold {
    Retold {
        before: Some(told_read_only(share)),
        now: told_copy(share),
    }
}

/// What is told of a share of which every arm has a copy.
fn told_copy(share: &Share) -> String {
    format!(
        "`{}` is a COPY of `{}` of each arm's own, so that nothing of yours is written to; `--share-writable` lets the command write there",
        printable(&share.target),
        printable(&share.source)
    )
}

/// What is worth knowing about a container that reaches further than others: copies have the same rights.
pub(in crate::env) fn warned(body: &Value) -> Vec<String> {
    let host = &body["HostConfig"];
    let mut told = Vec::new();
    if host["Privileged"] == true {
        told.push(
            "it is privileged, and so are the copies: what the command does to the machine, it does each time"
                .to_owned(),
        );
    }
    if host["PidMode"] == "host" {
        told.push(
            "it sees the machine's processes, and so do the copies: what the command does to them, it does each time"
                .to_owned(),
        );
    }
    told
}

/// A bind without the wish to label its files anew: they are the user's.
fn without_label(text: &str) -> String {
    let mut words = text.splitn(3, ':');
    let (source, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let options = words.next().unwrap_or_default();
    let options: Vec<&str> = options
        .split(',')
        .filter(|option| !matches!(*option, "" | "z" | "Z"))
        .collect();
    if options.is_empty() {
        format!("{source}:{target}")
    } else {
        format!("{source}:{target}:{}", options.join(","))
    }
}

fn read_only(text: &str) -> String {
    let plain = without_label(text);
    let mut words = plain.splitn(3, ':');
    let (source, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let options = words.next().unwrap_or_default();
    let mut options: Vec<&str> = options
        .split(',')
        .filter(|option| !matches!(*option, "" | "rw"))
        .collect();
    options.push("ro");
    format!("{source}:{target}:{}", options.join(","))
}

fn names_and_labels(body: &mut Value, told: &mut Vec<String>) {
    let labels = body["Labels"].as_object().map_or(0, serde_json::Map::len);
    if labels > 0 {
        told.push(format!(
            "its {labels} label{} left out: proxies and compose act on containers by them",
            if labels == 1 { " is" } else { "s are" }
        ));
    }
    body["Labels"] = Value::Null;
    body["MacAddress"] = Value::Null;
    let host = &mut body["HostConfig"];
    host["AutoRemove"] = Value::Bool(false);
    host["ContainerIDFile"] = Value::Null;
    host["RestartPolicy"] = json!({"Name": "no", "MaximumRetryCount": 0});
    let Value::Object(networks) = &mut body["NetworkingConfig"]["EndpointsConfig"] else {
        body["NetworkingConfig"] = Value::Null;
        return;
    };
    let mut had_names = false;
    for endpoint in networks.values_mut() {
        had_names |= endpoint["Aliases"]
            .as_array()
            .is_some_and(|names| !names.is_empty());
        // An address or a name is one container's.
        let kept = ["Links", "DriverOpts"]
            .iter()
            .filter(|name| !endpoint[**name].is_null())
            .map(|name| ((*name).to_owned(), endpoint[*name].clone()));
        *endpoint = Value::Object(kept.collect());
    }
    if had_names {
        told.push("its names and addresses in networks stay the original's".to_owned());
    }
}

/// Published ports get numbers of the engine's choice, on this machine's own address.
fn ports(body: &mut Value, told: &mut Vec<String>) {
    let host = &mut body["HostConfig"];
    let mut is_changed = host["PublishAllPorts"] == true;
    host["PublishAllPorts"] = Value::Null;
    if let Value::Object(ports) = &mut host["PortBindings"] {
        for bindings in ports.values_mut() {
            is_changed = true;
            *bindings = json!([{"HostIp": "127.0.0.1", "HostPort": ""}]);
        }
    }
    if is_changed {
        told.push("ports are published on the loopback, under other numbers".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Value {
        json!({
            "Labels": {"traefik.enable": "true"},
            "HostConfig": {
                "Binds": ["/srv:/srv:rw,Z", "data:/data", "/conf:/conf:ro", "/new:/new",
                          "/var/run/docker.sock:/var/run/docker.sock", "/anonymous"],
                "Mounts": [{"Type": "volume", "Source": "db", "Target": "/db"}, {"Type": "tmpfs", "Target": "/t"}],
                "VolumesFrom": ["other:rw"],
                "PortBindings": {"80/tcp": [{"HostIp": "", "HostPort": "80"}]},
                "AutoRemove": true, "RestartPolicy": {"Name": "always"}
            },
            "NetworkingConfig": {"EndpointsConfig": {"mine": {"Aliases": ["web"], "IPAMConfig": {"IPv4Address": "1.2.3.4"}}}}
        })
    }

    fn policy(shares: Shares) -> Policy<'static> {
        Policy {
            shares,
            is_there: &|share| share.source != "/new",
            copy: &|share| match share.source.as_str() {
                "/srv" => Some(Copy::Volume),
                "data" => Some(Copy::Overlay),
                _ => None,
            },
        }
    }

    #[test]
    fn nothing_of_the_users_is_written_to_or_stood_in_for() {
        let mut told = Vec::new();
        let copy = beside(&body(), policy(Shares::ReadOnly), &mut told);
        let host = &copy["HostConfig"];
        assert_eq!(
            host["Binds"],
            json!(["/srv:/srv:ro", "data:/data:ro", "/conf:/conf:ro"])
        );
        let own = |target: &str| json!({"Type": "volume", "Target": target});
        assert_eq!(
            host["Mounts"],
            json!([own("/new"), own("/anonymous"),
                   {"Type": "volume", "Source": "db", "Target": "/db", "ReadOnly": true},
                   {"Type": "tmpfs", "Target": "/t"}])
        );
        assert_eq!(host["VolumesFrom"], json!(["other:ro"]));
        assert_eq!(
            host["PortBindings"]["80/tcp"],
            json!([{"HostIp": "127.0.0.1", "HostPort": ""}])
        );
        assert_eq!(host["RestartPolicy"]["Name"], "no");
        assert_eq!(host["AutoRemove"], false);
        assert_eq!(
            copy["NetworkingConfig"],
            json!({"EndpointsConfig": {"mine": {}}})
        );
        assert_eq!(copy["Labels"], Value::Null);
        let all = told.join("\n");
        for word in [
            "/srv",
            "data",
            "docker.sock",
            "/new",
            "label",
            "ports",
            "other",
            "names",
        ] {
            assert!(all.contains(word), "{word}: {all}");
        }
    }

    #[test]
    fn where_it_may_write_to_copies_what_cannot_be_copied_stays_read_only() {
        let mut told = Vec::new();
        let copy = beside(&body(), policy(Shares::Copied), &mut told);
        let host = &copy["HostConfig"];
        assert_eq!(host["Binds"], json!(["data:/data:O", "/conf:/conf:ro"]));
        let own = |target: &str| json!({"Type": "volume", "Target": target});
        assert_eq!(
            host["Mounts"],
            json!([own("/srv"), own("/new"), own("/anonymous"),
                   {"Type": "volume", "Source": "db", "Target": "/db", "ReadOnly": true},
                   {"Type": "tmpfs", "Target": "/t"}])
        );
        assert_eq!(host["VolumesFrom"], json!(["other:ro"]));
        let all = told.join("\n");
        assert!(
            all.contains("`/srv` is a COPY of `/srv`")
                && all.contains("`db` is shown at `/db` READ-ONLY"),
            "{all}"
        );
        assert!(!all.contains("`/srv` is shown"), "{all}");
    }

    #[test]
    fn what_reaches_out_of_the_container_is_told() {
        let told = |host: Value| warned(&json!({"HostConfig": host})).join("\n");
        assert_eq!(told(json!({"PidMode": "", "Privileged": false})), "");
        assert!(told(json!({"Privileged": true})).contains("privileged"));
        assert!(told(json!({"PidMode": "host"})).contains("processes"));
    }

    #[test]
    fn who_asks_for_it_gets_what_is_his_as_it_is() {
        let mut told = Vec::new();
        let shared = Policy {
            is_there: &|_| true,
            ..policy(Shares::Shared)
        };
        let copy = beside(&body(), shared, &mut told);
        assert_eq!(
            copy["HostConfig"]["Binds"],
            json!([
                "/srv:/srv:rw",
                "data:/data",
                "/conf:/conf:ro",
                "/new:/new",
                "/var/run/docker.sock:/var/run/docker.sock"
            ])
        );
        assert_eq!(copy["HostConfig"]["VolumesFrom"], json!(["other:rw"]));
    }
}
