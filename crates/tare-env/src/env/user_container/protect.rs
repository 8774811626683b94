//! Decides which differences of a container protect its user from the command: every arm keeps them unless the user
//! loosens them.
//!
//! Pure: takes a configuration and its differences, returns those to remove and those to keep. Limits of CPU time and
//! I/O are no protection: nothing new can be reached without them.
//! Limits: the purpose of an image's default user is unknown; a plain container has the same.

use crate::env::prelude::*;

use tare_model::Value as Setting;
use tare_model::launch::DOCKER_CAPABILITIES;

use super::machine::Machine;
use super::{Consent, Difference, NOT_REMOVED, UserContainer, protection};
use crate::env::grammar::plain_capability;

/// The difference for the engine's network.
pub const ENGINES_NETWORK: &str = concat!("engine", ".network");
/// End of a note on what is kept.
const PROTECTS: &str = ": it protects you";
/// The keyword for all protections.
const ALL: &str = "all";
/// OCI runtimes that share the host's kernel, as the default one does; any other is assumed to isolate the command
/// more strongly.
const USUAL_RUNTIMES: [&str; 5] = ["", "runc", "crun", "io.containerd.runc.v2", "youki"];
/// The number of Tare's processes and threads in a copy while its command runs: the agent, the worker, and its
/// threads that carry the command's three streams and watch it.
pub(super) const OUR_PROCESSES: i64 = 8;

/// Whether a difference protects the user, according to the configuration.
fn protects(body: &Value, id: &str) -> bool {
    let host = &body["HostConfig"];
    let text = |name: &str| host[name].as_str().unwrap_or_default();
    let option = |name: &str| {
        let mut texts = texts_of(&host["SecurityOpt"]);
        texts.find_map(|text| {
            let rest = text.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with(['=', ':'])).then(|| rest.get(1..).unwrap_or(""))
        })
    };
    let is_loose = |value: &str| matches!(value, "unconfined" | "builtin" | "false" | "disable");
    match id {
        "cap-drop" | "readonly" => true,
        "user" => body["User"].as_str().is_none_or(|user| {
            let name = user.split(':').next().unwrap_or_default();
            !matches!(name, "" | "0" | "root")
        }),
        "pids-limit" => host["PidsLimit"].as_i64().is_some_and(|limit| limit > 0),
        "network" => text("NetworkMode") == "none",
        "runtime" => !USUAL_RUNTIMES.contains(&text("Runtime")),
        "userns" => text("UsernsMode") != "host",
        _ => id
            .strip_prefix("security-opt.")
            .and_then(option)
            .is_some_and(|value| !is_loose(value)),
    }
}

/// Removes protections that are not loosened from the differences, and notes what a bare process keeps of them.
/// Returns the names of those that no arm may lack.
///
/// # Errors
/// A name to loosen is not one of its protections.
pub(crate) fn guard(
    own: &mut UserContainer,
    body: &Value,
    consent: Consent<'_>,
    machine: &dyn Machine,
) -> Result<Vec<String>, EnvError> {
    let (kept, removed): (Vec<Difference>, Vec<Difference>) = std::mem::take(&mut own.differences)
        .into_iter()
        .partition(|it| protects(body, &it.id));
    let known: Vec<&str> = kept.iter().map(|it| protection(&it.id)).collect();
    if let Some(name) = consent.loosen.iter().find(|name| {
        let name = name.as_str();
        name != ALL && !known.contains(&protection(name))
    }) {
        return Err(EnvError::absent(
            format!("`--loosen {}` names nothing that is kept", printable(name)),
            if known.is_empty() {
                "this container has no protection of its own: remove `--loosen`".to_owned()
            } else {
                format!("it keeps: {}", known.join(", "))
            },
        ));
    }
    let is_loosened = |it: &Difference| {
        let mut names = consent.loosen.iter();
        names.any(|name| name == ALL || protection(name) == protection(&it.id))
    };
    let (loosened, kept): (Vec<Difference>, Vec<Difference>) =
        kept.into_iter().partition(is_loosened);
    own.differences = removed.into_iter().chain(loosened).collect();
    own.differences
        .sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
    let is_hosts = body["HostConfig"]["NetworkMode"] == "host";
    if !consent.host_network {
        let engines = own
            .differences
            .iter()
            .position(|it| it.id == ENGINES_NETWORK);
        if let Some(network) = engines.map(|place| own.differences.remove(place)) {
            own.notes.push(format!(
                "not tried: {}, because the command would reach this machine's own services (`--host-network-ok` lets it)",
                network.what
            ));
            own.untried.push(network.id);
        }
    }
    for it in &kept {
        own.notes.push(format!(
            "{NOT_REMOVED}{}{PROTECTS} (`--loosen {}` measures it)",
            it.what,
            printable(protection(&it.id))
        ));
    }
    bare(own, body, &kept, is_hosts || consent.host_network);
    let limit = body["HostConfig"]["Memory"].as_i64().unwrap_or(0);
    if limit > 0
        && let Some(free) = machine.free_memory(limit)
    {
        let settings = std::mem::take(&mut own.bare);
        own.bare = settings
            .with("cgroup", true)
            .with("memory", format!("{free}m"));
    }
    let ids = kept.iter().map(|it| it.id.clone());
    let ids = ids.chain(own.untried.iter().cloned()).collect();
    own.kept = kept;
    Ok(ids)
}

/// Returns a hint if nothing else was found: which of the protections in these lines could be the cause, and how to
/// measure it.
pub fn suspected(lines: &[String]) -> Option<String> {
    let mut kept = Vec::new();
    let mut names = Vec::new();
    for line in lines {
        let rest = line.strip_prefix(NOT_REMOVED);
        let Some((what, flag)) = rest.and_then(|rest| rest.split_once(PROTECTS)) else {
            continue;
        };
        kept.push(what);
        names.extend(
            flag.split_once("--loosen ")
                .and_then(|(_, rest)| rest.split('`').next()),
        );
    }
    (!kept.is_empty()).then(|| {
        format!(
            "hint: the cause may be {}, not removed because it protects you; `--loosen {}` measures that too",
            kept.join(" or "),
            names.join(",")
        )
    })
}

/// Returns the differences of a request that may be removed. A name that ends in `?` may be missing, so it is dropped
/// from the list if it is kept.
///
/// # Errors
/// A kept name does not end in `?`, or nothing is left.
pub(crate) fn removable(without: &[String], kept: &[String]) -> Result<Vec<String>, EnvError> {
    let is_kept = |name: &String| kept.iter().any(|id| id == name.trim_end_matches('?'));
    let (held, left): (Vec<&String>, Vec<&String>) = without.iter().partition(|it| is_kept(it));
    let required = held.iter().find(|name| !name.ends_with('?'));
    let Some(refused) = required.or(held.first().filter(|_| left.is_empty())) else {
        return Ok(left.into_iter().cloned().collect());
    };
    let name = refused.trim_end_matches('?');
    let flag = if name == ENGINES_NETWORK {
        "--host-network-ok".to_owned()
    } else {
        format!("--loosen {}", printable(protection(name)))
    };
    Err(EnvError::unavailable(format!(
        "`{}` is not removed without `{flag}`",
        printable(name)
    )))
}

/// Sets what a bare process in place of the container keeps of it, or why there can be none.
fn bare(own: &mut UserContainer, body: &Value, kept: &[Difference], has_hosts_network: bool) {
    let network = if has_hosts_network { "host" } else { "none" };
    let mut settings = Params::new().with("network", network);
    for it in kept {
        settings = match protection(&it.id) {
            // Written data is removed with the arm, and there is no network in any case.
            "readonly" | "network" => settings,
            "no-new-privileges" => settings.with("no_new_privileges", true),
            "pids-limit" => {
                let limit = body["HostConfig"]["PidsLimit"].as_i64().unwrap_or(1);
                let limit = limit.saturating_add(OUR_PROCESSES);
                settings.with("cgroup", true).with("pids", limit)
            }
            "cap-drop" => settings.with("caps", capabilities_left(body)),
            _ => {
                own.not_bare = Some(format!(
                    "a bare process cannot keep {}, which protects you",
                    it.what
                ));
                return;
            }
        };
    }
    own.bare = settings;
}

/// Returns the remaining capabilities of a container that drops some, in the form of the built-in one's setting.
fn capabilities_left(body: &Value) -> Setting {
    let dropped = texts_of(&body["HostConfig"]["CapDrop"]);
    let dropped: Vec<String> = dropped.map(plain_capability).collect();
    let mut left: Vec<Setting> = DOCKER_CAPABILITIES
        .iter()
        .map(|name| plain_capability(name))
        .filter(|name| !dropped.iter().any(|it| it == name || it == "ALL"))
        .map(Setting::Text)
        .collect();
    if left.is_empty() {
        left.push(Setting::Text("none".to_owned()));
    }
    Setting::List(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::user_container::share::Share;
    use serde_json::json;

    /// A machine with 512 MiB of free memory.
    struct Here;

    impl Machine for Here {
        fn has(&self, _: &Share) -> bool {
            true
        }
        fn is_here(&self) -> bool {
            true
        }
        fn free_memory(&self, _: i64) -> Option<i64> {
            Some(512)
        }
    }

    fn container_with(ids: &[&str]) -> UserContainer {
        let one = |id: &&str| Difference {
            id: (*id).to_owned(),
            what: format!("`--{id}`"),
            ..Difference::default()
        };
        UserContainer {
            differences: ids.iter().map(one).collect(),
            ..UserContainer::default()
        }
    }

    fn left(own: &UserContainer) -> String {
        own.names(|_| true).join(" ")
    }

    const IDS: [&str; 9] = [
        "cap-drop",
        "cpus",
        "engine.network",
        "memory",
        "network",
        "pids-limit",
        "runtime",
        "security-opt.no-new-privileges",
        "user",
    ];

    fn body() -> Value {
        json!({"HostConfig": {
            "CapDrop": ["NET_RAW"], "NetworkMode": "none", "PidsLimit": 64, "Runtime": "runsc",
            "SecurityOpt": ["no-new-privileges"]
        }})
    }

    #[test]
    fn protections_stay_until_they_are_loosened() {
        let mut own = container_with(&IDS);
        guard(&mut own, &body(), Consent::default(), &Here).unwrap();
        assert_eq!(left(&own), "cpus memory");
        assert_eq!(own.untried, ["engine.network"]);
        let notes = own.notes.join("\n");
        for word in [
            "`--loosen user`",
            "`--loosen no-new-privileges`",
            "`--host-network-ok`",
        ] {
            assert!(notes.contains(word), "{word}: {notes}");
        }
        let loosen = ["no-new-privileges".to_owned(), "user".to_owned()];
        let consent = Consent {
            host_network: true,
            loosen: &loosen,
            ..Consent::default()
        };
        let mut own = container_with(&IDS);
        guard(&mut own, &body(), consent, &Here).unwrap();
        let removed = "cpus engine.network memory security-opt.no-new-privileges user";
        assert_eq!(left(&own), removed);
        let loosen = ["all".to_owned()];
        let consent = Consent {
            loosen: &loosen,
            ..Consent::default()
        };
        let mut own = container_with(&IDS);
        guard(&mut own, &body(), consent, &Here).unwrap();
        assert!(own.kept.is_empty() && own.not_bare.is_none(), "{own:?}");
    }

    #[test]
    fn hint_names_the_protections_that_may_be_the_cause() {
        let mut own = container_with(&["user", "cpus", "security-opt.no-new-privileges"]);
        guard(&mut own, &body(), Consent::default(), &Here).unwrap();
        let hint = suspected(&own.notes).unwrap();
        assert!(
            hint.contains("`--user` or `--security-opt.no-new-privileges`"),
            "{hint}"
        );
        assert!(hint.contains("`--loosen user,no-new-privileges`"), "{hint}");
        assert_eq!(suspected(&["what else is said".to_owned()]), None);
    }

    #[test]
    fn protection_is_not_removed_from_any_arm() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let of = |without: &str| removable(&words(without), &words("user engine.network"));
        assert_eq!(of("cpus memory").unwrap(), words("cpus memory"));
        assert_eq!(of("user? cpus?").unwrap(), words("cpus?"));
        assert!(
            of("user cpus")
                .unwrap_err()
                .to_string()
                .contains("--loosen user")
        );
        assert!(of("user? cpus engine.network").is_err());
        let error = of("engine.network?").unwrap_err();
        assert!(error.to_string().contains("--host-network-ok"), "{error}");
    }

    #[test]
    fn loosening_unprotected_part_is_refused() {
        let loosen = ["memory".to_owned()];
        let consent = Consent {
            loosen: &loosen,
            ..Consent::default()
        };
        let error = guard(&mut container_with(&IDS), &body(), consent, &Here).unwrap_err();
        assert!(error.hint().unwrap().contains("pids-limit"), "{error}");
        let error = guard(&mut container_with(&["cpus"]), &json!({}), consent, &Here).unwrap_err();
        assert!(error.hint().unwrap().contains("no protection"), "{error}");
    }

    #[test]
    fn looser_than_usual_is_no_protection() {
        let body = json!({"HostConfig": {
            "NetworkMode": "mine", "Runtime": "crun", "UsernsMode": "host",
            "SecurityOpt": ["seccomp=unconfined", "apparmor:unconfined", "no-new-privileges=false"]
        }});
        for id in [
            "network",
            "runtime",
            "userns",
            "memory",
            "cpuset-cpus",
            "security-opt.seccomp",
            "security-opt.apparmor",
            "security-opt.no-new-privileges",
        ] {
            assert!(!protects(&body, id), "{id}");
        }
        assert!(!protects(&json!({"User": "0:0"}), "user"));
        let own_profiles = json!({"HostConfig": {"SecurityOpt": ["seccomp={}", "apparmor=mine"]}});
        assert!(protects(&own_profiles, "security-opt.seccomp"));
        assert!(protects(&own_profiles, "security-opt.apparmor"));
    }

    #[test]
    fn bare_process_keeps_protections_or_is_unavailable() {
        let ids = [
            "cap-drop",
            "network",
            "pids-limit",
            "security-opt.no-new-privileges",
        ];
        let mut own = container_with(&ids);
        guard(&mut own, &body(), Consent::default(), &Here).unwrap();
        assert_eq!(own.not_bare, None);
        assert_eq!(own.bare.text("network"), Some("none"));
        let caps = own.bare.words("caps");
        assert!(caps.iter().any(|it| it == "CHOWN"), "{caps:?}");
        assert!(!caps.iter().any(|it| it == "NET_RAW"), "{caps:?}");
        assert_eq!(
            own.bare.value("pids").map(ToString::to_string).as_deref(),
            Some("72")
        );
        let mut own = container_with(&["user"]);
        guard(&mut own, &body(), Consent::default(), &Here).unwrap();
        assert!(own.not_bare.unwrap().contains("`--user`"));
        let mut hosts = container_with(&[]);
        let body = json!({"HostConfig": {"NetworkMode": "host"}});
        guard(&mut hosts, &body, Consent::default(), &Here).unwrap();
        assert_eq!(hosts.bare.text("network"), Some("host"));
        // Without its limit it gets the free memory, and no more.
        let mut large = container_with(&["memory"]);
        let body = json!({"HostConfig": {"Memory": 64 << 20}});
        guard(&mut large, &body, Consent::default(), &Here).unwrap();
        assert_eq!(
            (left(&large).as_str(), large.bare.text("memory")),
            ("memory", Some("512m"))
        );
    }
}
