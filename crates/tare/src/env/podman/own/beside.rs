//! The flags of a container as they can stand beside it: what is done with what is shared is one rule for all engines.
//!
//! Pure: flags in, flags out, with a line for every change.
//! What it cannot see: what a program does over a network that both are in.

use serde_json::{Value as Json, json};

use super::difference;
use super::words::{Unit, mount};
use crate::env::own::shared::{self, Policy, Share};

/// What the flags ask of an engine, as far as it is shared, in the words of the other engine's API.
fn body_of(units: &[Unit]) -> Json {
    let of = |flag: &str| -> Vec<&str> {
        let units = units.iter().filter(|unit| unit.flag == flag);
        units.map(Unit::text).collect()
    };
    let has = |flag: &str| units.iter().any(|unit| unit.flag == flag);
    let mounts: Vec<Json> = of("mount").into_iter().map(mount).collect();
    let labels: Vec<(&str, &str)> = of("label")
        .into_iter()
        .map(|text| text.split_once('=').unwrap_or((text, "")))
        .collect();
    let ports: serde_json::Map<String, Json> = of("publish")
        .into_iter()
        .map(|text| {
            (
                text.rsplit(':').next().unwrap_or_default().to_owned(),
                json!([]),
            )
        })
        .collect();
    json!({
        "Labels": labels.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect::<serde_json::Map<_, _>>(),
        "HostConfig": {
            "Binds": of("volume"), "Mounts": mounts, "VolumesFrom": of("volumes-from"),
            "PortBindings": ports, "PublishAllPorts": has("publish-all"),
            "Privileged": has("privileged"), "PidMode": of("pid").first(),
        }
    })
}

/// What of the user's could be written to.
pub(super) fn writable(units: &[Unit]) -> Vec<Share> {
    let mut shares = shared::shares(&body_of(units));
    shares.retain(|share| share.may_write);
    shares
}

/// The flags as they can stand beside the original; what is done with what is shared is one rule for all engines.
pub(super) fn beside(units: &[Unit], policy: Policy<'_>, told: &mut Vec<String>) -> Vec<Unit> {
    let body = body_of(units);
    let changed = shared::beside(&body, policy, told);
    told.extend(shared::warned(&body));
    let mut left: Vec<Unit> = units
        .iter()
        .filter(|unit| {
            let is_shared = matches!(
                unit.flag.as_str(),
                "volume" | "mount" | "volumes-from" | "publish" | "publish-all"
            );
            !is_shared && !difference::is_left_out(&unit.flag)
        })
        .cloned()
        .collect();
    let host = &changed["HostConfig"];
    let texts = |name: &str| -> Vec<String> {
        let list = host[name].as_array().into_iter().flatten();
        list.filter_map(Json::as_str).map(str::to_owned).collect()
    };
    left.extend(
        texts("Binds")
            .into_iter()
            .map(|text| Unit::new("volume", text)),
    );
    left.extend(
        texts("VolumesFrom")
            .into_iter()
            .map(|text| Unit::new("volumes-from", text)),
    );
    for mount in host["Mounts"].as_array().into_iter().flatten() {
        left.push(match mount["Text"].as_str() {
            Some(text) if mount["ReadOnly"] == true && mount["WasReadOnly"] != true => {
                Unit::new("mount", format!("{text},ro=true"))
            }
            Some(text) => Unit::new("mount", text),
            None => Unit::new("volume", mount["Target"].as_str().unwrap_or_default()),
        });
    }
    let ports = host["PortBindings"].as_object();
    left.extend(
        ports
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .map(|port| Unit::new("publish", format!("127.0.0.1::{port}"))),
    );
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::own::Shares;
    use crate::env::own::shared::Copy;

    fn units(all: &[(&str, &str)]) -> Vec<Unit> {
        let all = all.iter();
        all.map(|(flag, text)| Unit::new(flag, *text)).collect()
    }

    #[test]
    fn nothing_of_the_users_is_written_to_or_stood_in_for() {
        let given = units(&[
            ("name", "web"),
            ("label", "traefik.enable=true"),
            ("volume", "/srv:/srv:rw,Z"),
            ("volume", "data:/data"),
            ("volume", "/run/podman/podman.sock:/run/podman/podman.sock"),
            ("volume", "/new:/new"),
            ("mount", "type=bind,src=/conf,dst=/conf,ro"),
            ("mount", "type=volume,source=db,target=/db"),
            ("volumes-from", "other"),
            ("publish", "0.0.0.0:80:80/tcp"),
            ("restart", "always"),
            ("cpus", "2"),
        ]);
        let words = |shares: Shares, told: &mut Vec<String>| -> Vec<String> {
            let policy = Policy {
                shares,
                is_there: &|share| share.source != "/new",
                copy: &|share| (share.source != "db").then_some(Copy::Overlay),
            };
            let left = beside(&given, policy, told);
            left.iter().map(Unit::word).collect()
        };
        let mut told = Vec::new();
        let words_of_all = words(Shares::ReadOnly, &mut told);
        assert_eq!(
            words_of_all,
            [
                "--cpus=2",
                "--volume=/srv:/srv:ro",
                "--volume=data:/data:ro",
                "--volumes-from=other:ro",
                "--volume=/new",
                "--mount=type=bind,src=/conf,dst=/conf,ro",
                "--mount=type=volume,source=db,target=/db,ro=true",
                "--publish=127.0.0.1::80/tcp",
            ]
        );
        let all = told.join("\n");
        for word in [
            "/srv",
            "data",
            "podman.sock",
            "/new",
            "label",
            "ports",
            "other",
        ] {
            assert!(all.contains(word), "{word}: {all}");
        }
        let shared = words(Shares::Shared, &mut Vec::new());
        assert!(
            shared.contains(&"--volume=data:/data".to_owned()),
            "{shared:?}"
        );
        let mut told = Vec::new();
        let copied = words(Shares::Copied, &mut told);
        for word in [
            "--volume=/srv:/srv:O",
            "--volume=data:/data:O",
            "--mount=type=bind,src=/conf,dst=/conf,ro",
            "--mount=type=volume,source=db,target=/db,ro=true",
        ] {
            assert!(copied.contains(&word.to_owned()), "{word}: {copied:?}");
        }
        assert!(told.join("\n").contains("a COPY of `data`"), "{told:?}");
    }
}
