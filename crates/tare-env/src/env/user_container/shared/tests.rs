//! Tests of what copies share, on a scripted machine.

use super::*;
use crate::cx::files::Talking;

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

/// A machine on which everything exists except `/new`, with something mounted below `/deep`, and with sockets in
/// `/run`.
#[derive(Clone, Copy, Default)]
struct Fake {
    is_elsewhere: bool,
    is_recursive: bool,
}

impl Machine for Fake {
    fn has(&self, share: &Share) -> bool {
        share.source != "/new"
    }
    fn mounts_of(&self, container: &str) -> Option<Vec<Value>> {
        let bind =
            |path: &str| json!({"Type": "bind", "Source": path, "Target": path, "ReadOnly": false});
        (container == "proxy").then(|| ["/run/docker.sock", "/deep", "/own"].map(bind).to_vec())
    }
    fn is_here(&self) -> bool {
        !self.is_elsewhere
    }
    fn is_recursive(&self) -> bool {
        self.is_recursive
    }
    fn has_mounts(&self, folder: &str) -> bool {
        ["/deep", "/run", "/"].contains(&folder)
    }
    fn is_mounted_between(&self, _: &str, below: &str) -> bool {
        below.starts_with("user/")
    }
    fn sockets(&self, folder: &str) -> Vec<String> {
        let all = ["docker.sock", "user/1/bus"].map(str::to_owned);
        if folder == "/run" {
            all.to_vec()
        } else {
            Vec::new()
        }
    }
    fn talking(&self, folder: &str) -> Talking {
        let paths = match folder {
            "/app" => vec!["fifo".to_owned(), "run/app.sock".to_owned()],
            "/crowd" => vec!["s".to_owned(); 1000],
            _ => Vec::new(),
        };
        Talking {
            paths,
            is_whole: true,
        }
    }
    fn is_socket(&self, share: &Share) -> bool {
        share.source == "/app/run/app.sock"
    }
    fn is_disk(&self, _: &str) -> bool {
        false
    }
}

fn policy(shares: Shares) -> Policy<'static> {
    Policy {
        shares,
        joins: false,
        machine: &Fake {
            is_elsewhere: false,
            is_recursive: false,
        },
        copy: &|share| match share.source.as_str() {
            "/srv" => Some(Copy::Volume),
            "data" => Some(Copy::Overlay),
            _ => None,
        },
    }
}

/// Returns the copy and the notes.
fn copied(body: &Value, policy: Policy<'_>) -> (Value, String) {
    let mut notes = Vec::new();
    let copy = for_copy(body, policy, &mut notes);
    (copy, notes.join("\n"))
}

#[test]
fn copy_cannot_write_or_impersonate_original() {
    let (copy, all) = copied(&body(), policy(Shares::ReadOnly));
    let host = &copy["HostConfig"];
    assert_eq!(
        host["Binds"],
        json!(["/srv:/srv:ro", "data:/data:ro,nocopy", "/conf:/conf:ro"])
    );
    let own = |target: &str| json!({"Type": "volume", "Target": target});
    assert_eq!(
        host["Mounts"],
        json!([own("/new"), own("/anonymous"),
               {"Type": "volume", "Source": "db", "Target": "/db", "ReadOnly": true, "VolumeOptions": {"NoCopy": true}},
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
    for word in [
        "/srv",
        "data",
        "docker.sock` is not shown inside: a process that connects to it controls the machine",
        "/new",
        "label",
        "ports",
        "`other` are shared read-only",
        "names",
    ] {
        assert!(all.contains(word), "{word}: {all}");
    }
}

#[test]
fn writable_mounts_are_copied_or_stay_read_only() {
    let (copy, all) = copied(&body(), policy(Shares::Copied));
    let host = &copy["HostConfig"];
    assert_eq!(host["Binds"], json!(["data:/data:O", "/conf:/conf:ro"]));
    let own = |target: &str| json!({"Type": "volume", "Target": target});
    assert_eq!(
        host["Mounts"],
        json!([own("/srv"), own("/new"), own("/anonymous"),
               {"Type": "volume", "Source": "db", "Target": "/db", "ReadOnly": true, "VolumeOptions": {"NoCopy": true}},
               {"Type": "tmpfs", "Target": "/t"}])
    );
    assert_eq!(host["VolumesFrom"], json!(["other:ro"]));
    assert!(
        all.contains("`/srv` is a COPY of `/srv`")
            && all.contains("`db` is shown at `/db` READ-ONLY"),
        "{all}"
    );
    assert!(!all.contains("`/srv` is shown"), "{all}");
}

#[test]
fn shared_policy_passes_user_resources_unchanged() {
    let (copy, _) = copied(&body(), policy(Shares::Shared));
    assert_eq!(
        copy["HostConfig"]["Binds"],
        json!([
            "/srv:/srv:rw",
            "data:/data",
            "/conf:/conf:ro",
            "/var/run/docker.sock:/var/run/docker.sock"
        ])
    );
    assert_eq!(copy["HostConfig"]["VolumesFrom"], json!(["other:rw"]));
}

/// Returns the resulting binds and mounts, and the notes.
fn shown(machine: Fake, shares: Shares, host: &Value) -> (Value, String) {
    let policy = Policy {
        shares,
        joins: false,
        machine: &machine,
        copy: &|_| None,
    };
    let (copy, notes) = copied(&json!({"HostConfig": host}), policy);
    let host = &copy["HostConfig"];
    (json!([host["Binds"], host["Mounts"]]), notes)
}

#[test]
fn nested_mounts_are_read_only_or_hidden() {
    let asked = || {
        json!({"Binds": ["/deep:/a", "/deep:/b:ro,rslave"],
               "Mounts": [{"Type": "bind", "Source": "/deep", "Target": "/c", "BindOptions": {"Propagation": "rshared"}}]})
    };
    let closed = |target: &str, how: &str| {
        json!({"Type": "bind", "Source": "/deep", "Target": target, "ReadOnly": true,
               "BindOptions": {"Propagation": "rprivate", how: true}})
    };
    let all = |how| {
        json!([
            [],
            [closed("/a", how), closed("/b", how), closed("/c", how)]
        ])
    };
    for is_elsewhere in [false, true] {
        let recursive = Fake {
            is_elsewhere,
            is_recursive: true,
        };
        let (found, notes) = shown(recursive, Shares::ReadOnly, &asked());
        assert_eq!(found, all("ReadOnlyForceRecursive"));
        assert!(!notes.contains("below"), "{notes}");
        let plain = Fake {
            is_elsewhere,
            is_recursive: false,
        };
        let (found, notes) = shown(plain, Shares::ReadOnly, &asked());
        assert_eq!(found, all("NonRecursive"));
        assert!(
            notes.contains("mounted below `/deep` is not shown at `/b`"),
            "{notes}"
        );
    }
    // Nothing is mounted there now; later mounts stay outside.
    let plain = json!({"Binds": ["/flat:/a:rslave,exec"], "Mounts": [{"Type": "bind", "Source": "/flat", "Target": "/c",
                       "BindOptions": {"Propagation": "rshared"}}]});
    let (found, _) = shown(Fake::default(), Shares::ReadOnly, &plain);
    assert_eq!(
        found,
        json!([["/flat:/a:exec,ro"], [{"Type": "bind", "Source": "/flat", "Target": "/c", "ReadOnly": true,
                                      "BindOptions": {"Propagation": "rprivate"}}]])
    );
}

#[test]
fn sockets_in_folder_are_masked_or_folder_is_hidden() {
    let cover = |target: &str| json!({"Type": "bind", "Source": "/dev/null", "Target": target, "ReadOnly": true});
    let asked = || json!({"Binds": ["/run:/host/run/:ro"]});
    let recursive = Fake {
        is_recursive: true,
        ..Fake::default()
    };
    let (found, notes) = shown(recursive, Shares::ReadOnly, &asked());
    let mounts = found[1].as_array().unwrap();
    assert_eq!(
        mounts[1..],
        [
            cover("/host/run/docker.sock"),
            cover("/host/run/user/1/bus")
        ]
    );
    assert!(
        notes.contains("covered (docker.sock, user/1/bus)"),
        "{notes}"
    );
    // What is not visible needs no cover, and could have none.
    let (found, _) = shown(Fake::default(), Shares::ReadOnly, &asked());
    assert_eq!(
        found[1].as_array().unwrap()[1..],
        [cover("/host/run/docker.sock")]
    );
    let elsewhere = Fake {
        is_elsewhere: true,
        is_recursive: true,
    };
    for folder in ["/", "/var/run", "/run/podman"] {
        let asked = json!({"Binds": [format!("{folder}:/x:ro")]});
        let (found, notes) = shown(elsewhere, Shares::ReadOnly, &asked);
        assert_eq!(found, json!([[], []]), "{folder}");
        assert!(notes.contains("is not shown inside"), "{notes}");
    }
    let (found, _) = shown(recursive, Shares::Shared, &asked());
    assert_eq!(found, json!([["/run:/host/run/:ro"], []]));
}

#[test]
fn options_cannot_alter_files_unknown_mounts_hidden() {
    let asked = json!({
        "Binds": ["/srv:/srv:U,z,exec", "/srv:/over:O,upperdir=/mine,workdir=/work"],
        "Mounts": [{"Type": "glob", "Source": "/etc/*", "Target": "/g"}, {"Type": "tmpfs", "Target": "/t"}]
    });
    let (found, notes) = shown(Fake::default(), Shares::ReadOnly, &asked);
    assert_eq!(
        found,
        json!([["/srv:/srv:exec,ro", "/srv:/over:O"], [{"Type": "tmpfs", "Target": "/t"}]])
    );
    assert!(notes.contains("`type=glob` is not shown"), "{notes}");
    let (found, _) = shown(Fake::default(), Shares::Shared, &asked);
    assert_eq!(found[0][0], "/srv:/srv:exec");
    assert_eq!(found[1].as_array().unwrap().len(), 2);
}

#[test]
fn volumes_from_mounts_follow_same_policy() {
    let body =
        json!({"HostConfig": {"Binds": ["/mine:/own:ro"], "VolumesFrom": ["proxy", "gone:z"]}});
    let (copy, notes) = copied(&body, policy(Shares::ReadOnly));
    let host = &copy["HostConfig"];
    assert_eq!(host["Binds"], json!(["/mine:/own:ro"]));
    assert_eq!(
        host["Mounts"],
        json!([{"Type": "bind", "Source": "/deep", "Target": "/deep", "ReadOnly": true,
                "BindOptions": {"Propagation": "rprivate", "NonRecursive": true}}])
    );
    assert_eq!(host["VolumesFrom"], json!(["gone:ro"]));
    assert!(notes.contains("`/run/docker.sock` is not shown"), "{notes}");
    let (all, _) = copied(&body, policy(Shares::Shared));
    assert_eq!(all["HostConfig"]["VolumesFrom"], json!(["proxy", "gone:z"]));
}

#[test]
fn pids_limit_leaves_command_its_original_count() {
    for (limit, expected) in [
        (json!(20), json!(28)),
        (json!(0), json!(0)),
        (json!(-1), json!(-1)),
        (Value::Null, Value::Null),
    ] {
        let body = json!({"HostConfig": {"PidsLimit": limit}});
        let (copy, notes) = copied(&body, policy(Shares::ReadOnly));
        assert_eq!(copy["HostConfig"]["PidsLimit"], expected);
        assert_eq!(notes.is_empty(), limit == expected, "{notes}");
    }
}

#[test]
fn sockets_and_pipes_are_masked_until_joined() {
    let host = json!({"Binds": ["/app:/a", "/app/run/app.sock:/s", "/crowd:/c:ro"]});
    for shares in [Shares::ReadOnly, Shares::Shared] {
        let (shown_to_it, notes) = shown(Fake::default(), shares, &host);
        let text = shown_to_it.to_string();
        assert!(
            text.contains("/a/fifo") && text.contains("/a/run/app.sock"),
            "{text}"
        );
        assert!(!text.contains("/crowd") && !text.contains(":/s"), "{text}");
        assert!(notes.contains("`--join-networks` shows them"), "{notes}");
    }
    let policy = Policy {
        joins: true,
        ..policy(Shares::ReadOnly)
    };
    let (copy, _) = copied(&json!({"HostConfig": host}), policy);
    let expected = json!(["/app:/a:ro", "/app/run/app.sock:/s:ro", "/crowd:/c:ro"]);
    assert_eq!(copy["HostConfig"]["Binds"], expected);
    assert_eq!(copy["HostConfig"]["Mounts"], json!([]));
}

#[test]
fn broader_access_is_closed_and_reported() {
    let device =
        |rights: &str| json!([{"PathOnHost": "/dev/ttyUSB0", "CgroupPermissions": rights}]);
    for (host, field, closed, note) in [
        (
            json!({"Devices": device("rwm")}),
            "Devices",
            device("r"),
            "`/dev/ttyUSB0` can be READ only",
        ),
        (
            json!({"VolumeDriver": "nfs"}),
            "VolumeDriver",
            Value::Null,
            "`--volume-driver nfs`",
        ),
        (
            json!({"Binds": ["/app/run/app.sock:/a"]}),
            "Binds",
            json!([]),
            "`--join-networks` shows it",
        ),
    ] {
        let (copy, notes) = copied(&json!({"HostConfig": host}), policy(Shares::ReadOnly));
        assert_eq!(copy["HostConfig"][field], closed, "{host}");
        assert!(notes.contains(note), "{note}: {notes}");
    }
    let local = json!({"HostConfig": {"VolumeDriver": "local"}});
    assert_eq!(copied(&local, policy(Shares::ReadOnly)).1, "");
}
