//! Changes the flags of a user's container so that a copy can run next to it, by the same rules for shares as for
//! other engines.
//!
//! Pure: takes flags, returns flags, and a note for every change.
//! Limits: a program's traffic over a common network is not restricted.

use serde_json::{Value as Json, json};

use super::difference;
use super::words::{Unit, mount};
use crate::env::text::texts_of;
use crate::env::user_container::reach;
use crate::env::user_container::share::{self, Share};
use crate::env::user_container::shared::{self, Policy};

/// Flags that are rebuilt from what may be shared.
const SHARED: [&str; 7] = tare_model::rows! {
    "device", "device-cgroup-rule", "mount", "publish", "publish-all", "volume", "volumes-from",
};
/// Parts of a mount that would change the labels or owners of the user's files.
const CHANGES: [&str; 5] = ["U", "Z", "chown", "relabel", "z"];

/// Converts the flags on shared resources to the form of Docker's API.
pub(super) fn body_of(units: &[Unit]) -> Json {
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
    let devices: Vec<Json> = of("device").into_iter().filter_map(device).collect();
    let mode = |flag: &str| of(flag).first().map_or(Json::Null, |text| json!(text));
    json!({
        "User": mode("user"),
        "Labels": labels.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect::<serde_json::Map<_, _>>(),
        "HostConfig": {
            "Binds": of("volume"), "Mounts": mounts, "VolumesFrom": of("volumes-from"),
            "PortBindings": ports, "PublishAllPorts": has("publish-all"),
            "Devices": devices, "DeviceCgroupRules": of("device-cgroup-rule"),
            "Privileged": has("privileged"), "PidMode": mode("pid"), "IpcMode": mode("ipc"),
            "UTSMode": mode("uts"), "NetworkMode": mode("network"), "UsernsMode": mode("userns"),
            "CapDrop": of("cap-drop"), "SecurityOpt": of("security-opt"),
            "PidsLimit": of("pids-limit").first().and_then(|text| text.parse::<i64>().ok()),
        }
    })
}

/// Parses `/dev/x:/dev/y:rwm`; `None` if it is no path but a vendor's device name.
fn device(text: &str) -> Option<Json> {
    let mut words = text.split(':');
    let path = words.next().filter(|path| path.starts_with('/'))?;
    let (mut inside, mut rights) = (path, "rwm");
    for word in words {
        if word.starts_with('/') {
            inside = word;
        } else {
            rights = word;
        }
    }
    Some(json!({"PathOnHost": path, "PathInContainer": inside, "CgroupPermissions": rights}))
}

/// Returns why the container's own command must not run a second time, if so.
pub(super) fn would_answer(units: &[Unit], is_server: bool) -> Option<String> {
    let is_exposed = units.iter().any(|unit| unit.flag == "expose");
    reach::would_answer(&body_of(units), is_server || is_exposed)
}

/// Returns the user's shares that could be written to.
pub(super) fn writable(units: &[Unit]) -> Vec<Share> {
    let mut shares = share::shares(&body_of(units));
    shares.retain(|share| share.may_write);
    shares
}

/// Returns the flags changed so that a copy can run next to the original.
pub(super) fn for_copy(units: &[Unit], policy: Policy<'_>, notes: &mut Vec<String>) -> Vec<Unit> {
    let body = body_of(units);
    let changed = shared::for_copy(&body, policy, notes);
    notes.extend(reach::warned(&body));
    let mut left: Vec<Unit> = units
        .iter()
        .filter(|unit| {
            let is_shared = SHARED.contains(&unit.flag.as_str());
            let is_named = unit.flag == "device" && device(unit.text()).is_none();
            (is_named || !is_shared) && !difference::is_left_out(&unit.flag)
        })
        .cloned()
        .collect();
    let host = &changed["HostConfig"];
    let pids = host["PidsLimit"].as_i64();
    let limits = left.iter_mut().filter(|unit| unit.flag == "pids-limit");
    for (unit, pids) in limits.zip(pids) {
        *unit = Unit::new("pids-limit", pids.to_string());
    }
    let of_texts = |name: &str, flag| texts_of(&host[name]).map(move |text| Unit::new(flag, text));
    left.extend(of_texts("Binds", "volume"));
    left.extend(of_texts("VolumesFrom", "volumes-from"));
    let mounts = host["Mounts"].as_array().into_iter().flatten();
    left.extend(mounts.map(unit_of));
    let devices = host["Devices"].as_array().into_iter().flatten();
    left.extend(devices.map(|device| {
        let part = |name: &str| device[name].as_str().unwrap_or_default();
        let parts = ["PathOnHost", "PathInContainer", "CgroupPermissions"].map(part);
        Unit::new("device", parts.join(":"))
    }));
    left.extend(of_texts("DeviceCgroupRules", "device-cgroup-rule"));
    let ports = host["PortBindings"].as_object();
    left.extend(
        ports
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .map(|port| Unit::new("publish", format!("127.0.0.1::{port}"))),
    );
    left
}

/// Converts a mount to a flag. A mount of the line keeps its words, except for those that would change the user's
/// files.
fn unit_of(mount: &Json) -> Unit {
    let part = |name: &str| mount[name].as_str().unwrap_or_default();
    if part("Type") == "volume" && part("Source").is_empty() {
        return Unit::new("volume", part("Target"));
    }
    let text = mount["Text"].as_str().map_or_else(
        || {
            let parts = ["Type", "Source", "Target"].map(part);
            format!("type={},src={},dst={}", parts[0], parts[1], parts[2])
        },
        str::to_owned,
    );
    let is_closed = mount["ReadOnly"] == true;
    let is_kept = |word: &&str| {
        let name = word.split('=').next().unwrap_or_default();
        let is_right = matches!(name, "ro" | "readonly" | "rw" | "bind-propagation");
        !(CHANGES.contains(&name) || is_closed && is_right)
    };
    let mut words: Vec<&str> = text.split(',').filter(is_kept).collect();
    if is_closed {
        words.push("ro=true");
    }
    if mount["BindOptions"]["NonRecursive"] == true {
        words.push("bind-nonrecursive");
    }
    Unit::new("mount", words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::files::Talking;
    use crate::env::user_container::Shares;
    use crate::env::user_container::machine::Machine;
    use crate::env::user_container::shared::Copy;

    /// A machine on which everything exists except `/new`, with something mounted below `/deep`.
    struct Fake;

    impl Machine for Fake {
        fn has(&self, share: &Share) -> bool {
            share.source != "/new"
        }
        fn is_here(&self) -> bool {
            true
        }
        fn has_mounts(&self, folder: &str) -> bool {
            folder == "/deep"
        }
        fn sockets(&self, folder: &str) -> Vec<String> {
            (folder == "/apps")
                .then(|| "podman.sock".to_owned())
                .into_iter()
                .collect()
        }
        fn is_disk(&self, _: &str) -> bool {
            false
        }
        fn talking(&self, _: &str) -> Talking {
            Talking {
                paths: Vec::new(),
                is_whole: true,
            }
        }
        fn is_socket(&self, _: &Share) -> bool {
            false
        }
    }

    fn units(all: &[(&str, &str)]) -> Vec<Unit> {
        let all = all.iter();
        all.map(|(flag, text)| Unit::new(flag, *text)).collect()
    }

    #[test]
    fn a_limit_of_processes_has_room_for_ours() {
        let (words, _) = left(Shares::ReadOnly, &[("pids-limit", "20"), ("cpus", "1")]);
        assert_eq!(words, ["--pids-limit=28", "--cpus=1"]);
    }

    #[test]
    fn copy_cannot_write_or_impersonate_original() {
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
        let words = |shares: Shares, notes: &mut Vec<String>| -> Vec<String> {
            let policy = Policy {
                shares,
                joins: false,
                machine: &Fake,
                copy: &|share| (share.source != "db").then_some(Copy::Overlay),
            };
            let left = for_copy(&given, policy, notes);
            left.iter().map(Unit::word).collect()
        };
        let mut notes = Vec::new();
        let words_of_all = words(Shares::ReadOnly, &mut notes);
        assert_eq!(
            words_of_all,
            [
                "--cpus=2",
                "--volume=/srv:/srv:ro",
                "--volume=data:/data:ro,nocopy",
                "--volumes-from=other:ro",
                "--volume=/new",
                "--mount=type=bind,src=/conf,dst=/conf,ro=true",
                "--mount=type=volume,source=db,target=/db,ro=true",
                "--publish=127.0.0.1::80/tcp",
            ]
        );
        let all = notes.join("\n");
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
        let mut notes = Vec::new();
        let copied = words(Shares::Copied, &mut notes);
        for word in [
            "--volume=/srv:/srv:O",
            "--volume=data:/data:O",
            "--mount=type=bind,src=/conf,dst=/conf,ro=true",
            "--mount=type=volume,source=db,target=/db,ro=true",
        ] {
            assert!(copied.contains(&word.to_owned()), "{word}: {copied:?}");
        }
        assert!(notes.join("\n").contains("a COPY of `data`"), "{notes:?}");
    }

    /// Returns the remaining words of these flags, and the notes.
    fn left(shares: Shares, all: &[(&str, &str)]) -> (Vec<String>, String) {
        let mut notes = Vec::new();
        let policy = Policy {
            shares,
            joins: false,
            machine: &Fake,
            copy: &|_| None,
        };
        let left = for_copy(&units(all), policy, &mut notes);
        (left.iter().map(Unit::word).collect(), notes.join("\n"))
    }

    #[test]
    fn options_cannot_alter_files_or_write_nested_mounts() {
        let given = [
            ("volume", "/srv:/srv:U,z"),
            ("volume", "/deep:/deep"),
            ("volume", "/over:/over:O,upperdir=/mine,workdir=/work"),
            (
                "mount",
                "type=bind,src=/a,dst=/a,rw,U=true,relabel=shared,bind-propagation=rshared",
            ),
            ("mount", "type=bind,src=/deep,dst=/b,chown"),
            ("mount", "type=glob,src=/etc/*,dst=/g"),
            ("mount", "type=tmpfs,dst=/t"),
            ("volume", "/apps:/apps"),
        ];
        let (words, notes) = left(Shares::ReadOnly, &given);
        assert_eq!(
            words,
            [
                "--volume=/srv:/srv:ro",
                "--volume=/over:/over:O",
                "--volume=/apps:/apps:ro",
                "--mount=type=bind,src=/deep,dst=/deep,ro=true,bind-nonrecursive",
                "--mount=type=bind,src=/dev/null,dst=/apps/podman.sock,ro=true",
                "--mount=type=bind,src=/a,dst=/a,ro=true",
                "--mount=type=bind,src=/deep,dst=/b,ro=true,bind-nonrecursive",
                "--mount=type=tmpfs,dst=/t",
            ]
        );
        for word in ["`type=glob`", "mounted below `/deep`", "podman.sock"] {
            assert!(notes.contains(word), "{word}: {notes}");
        }
        let (words, _) = left(Shares::Shared, &given);
        for word in [
            "--volume=/srv:/srv",
            "--mount=type=bind,src=/a,dst=/a,rw,bind-propagation=rshared",
            "--mount=type=glob,src=/etc/*,dst=/g",
        ] {
            assert!(words.contains(&word.to_owned()), "{word}: {words:?}");
        }
    }

    #[test]
    fn disks_are_read_only_and_host_servers_are_detected() {
        let given = [
            ("device", "/dev/sda:/dev/disk"),
            ("device", "/dev/fuse"),
            ("device", "nvidia.com/gpu=all"),
            ("device-cgroup-rule", "b 8:* rwm"),
            ("network", "host"),
            ("expose", "80"),
            ("ipc", "container:db"),
        ];
        let (words, notes) = left(Shares::ReadOnly, &given);
        assert_eq!(
            words,
            [
                "--device=nvidia.com/gpu=all",
                "--network=host",
                "--expose=80",
                "--ipc=container:db",
                "--device=/dev/sda:/dev/disk:r",
                "--device=/dev/fuse:/dev/fuse:rwm",
                "--device-cgroup-rule=b 8:* r",
            ]
        );
        for word in [
            "`/dev/sda` can be READ only",
            "ports of the machine",
            "container `db`",
        ] {
            assert!(notes.contains(word), "{word}: {notes}");
        }
        assert!(would_answer(&units(&given), false).is_some());
        assert!(would_answer(&units(&[("network", "host")]), false).is_none());
        assert!(would_answer(&units(&[("network", "host")]), true).is_some());
        assert!(
            left(Shares::Shared, &given)
                .0
                .contains(&"--device=/dev/sda:/dev/disk:rwm".to_owned())
        );
    }
}
