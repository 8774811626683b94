//! Limits what copies of the user's container reach outside of it, through devices and shared namespaces.
//!
//! Pure: takes a configuration, returns one without write access to devices that keep state, and a note for every
//! change.
//! Limits: the addresses that a program listens on are unknown; only its image says whether it is a server.

use crate::env::prelude::*;

use super::machine::Machine;

/// Names of disks, and of devices that give write access to disks and memory: followed by letters, followed by
/// numbers, alone, and folders.
const LETTERED: [&str; 5] = ["dasd", "hd", "sd", "vd", "xvd"];
const NUMBERED: [&str; 12] = [
    "dm-", "drbd", "loop", "md", "mmcblk", "mtd", "nbd", "nvme", "ram", "sg", "sr", "zd",
];
const ALONE: [&str; 3] = ["kmem", "mem", "port"];
const FOLDERS: [&str; 4] = ["bsg", "disk", "mapper", "md"];

/// Devices that keep no state between uses, so a second program may use them too.
const STATELESS: [&str; 15] = tare_model::rows! {
    "accel", "cuse", "dma_heap", "dri", "full", "fuse", "kfd", "kvm", "net/tun", "null", "random", "udmabuf",
    "urandom", "vhost-net", "zero",
};

fn is_stateless(path: &str) -> bool {
    let name = path.strip_prefix("/dev/").unwrap_or_default();
    let is_in = |of: &str| {
        let rest = name.strip_prefix(of);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    STATELESS.into_iter().any(is_in) || name.starts_with("nvidia")
}

/// Makes devices that keep state read-only, also disks that device cgroup rules allow.
pub(super) fn disks(host: &mut Value, machine: &dyn Machine, notes: &mut Vec<String>) {
    if let Value::Array(devices) = &mut host["Devices"] {
        for device in devices {
            let path = device["PathOnHost"].as_str().unwrap_or_default().to_owned();
            let rights = device["CgroupPermissions"].as_str().unwrap_or("rwm");
            let is_written = rights.is_empty() || rights.contains(['w', 'm']);
            if is_written && (!is_stateless(&path) || is_disk(&path, machine)) {
                device["CgroupPermissions"] = json!("r");
                notes.push(format!(
                    "the device `{}` can be READ only; `--share-writable` lets the command write to it",
                    printable(&path)
                ));
            }
        }
    }
    if let Value::Array(rules) = &mut host["DeviceCgroupRules"] {
        let before = rules.len();
        let texts = rules.iter().filter_map(Value::as_str).flat_map(rule);
        let changed: Vec<Value> = texts.map(Value::String).collect();
        if changed.len() != before || changed != *rules {
            notes.push(
                "its rules for devices let disks be READ only; `--share-writable` leaves them as they are"
                    .to_owned(),
            );
        }
        *rules = changed;
    }
}

fn is_disk(path: &str, machine: &dyn Machine) -> bool {
    let path = path.trim_end_matches('/');
    // A whole folder of devices is searched if possible.
    path == "/dev" || is_named_so(path) || (machine.is_here() && machine.is_disk(path))
}

fn is_named_so(path: &str) -> bool {
    let name = path.strip_prefix("/dev/").unwrap_or_default();
    let behind = |begins: &[&str], is_so: fn(char) -> bool| {
        let mut rests = begins.iter().filter_map(|begin| name.strip_prefix(begin));
        rests.any(|rest| rest.starts_with(is_so))
    };
    behind(&LETTERED, |letter| letter.is_ascii_lowercase())
        || behind(&NUMBERED, |letter| letter.is_ascii_digit())
        || ALONE.contains(&name)
        || FOLDERS.contains(&name.split('/').next().unwrap_or_default())
}

/// Returns a device cgroup rule without write access to block devices; `a` means block and character devices.
fn rule(text: &str) -> Vec<String> {
    let mut words = text.split_whitespace();
    let (kind, numbers) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    match kind {
        "b" => vec![format!("b {numbers} r")],
        "a" => {
            let numbers = if numbers.is_empty() { "*:*" } else { numbers };
            let rights = words.next().unwrap_or("rwm");
            vec![format!("c {numbers} {rights}"), format!("b {numbers} r")]
        }
        _ => vec![text.to_owned()],
    }
}

/// Returns warnings on a container that reaches further than others: copies have the same rights.
pub(crate) fn warned(body: &Value) -> Vec<String> {
    let host = &body["HostConfig"];
    let mut notes = Vec::new();
    if host["Privileged"] == true {
        notes.push(
            "it is privileged, and so are the copies: what the command does to the machine and its disks, it does each time"
                .to_owned(),
        );
    }
    for (field, what) in [
        ("PidMode", "sees and may signal the processes"),
        ("IpcMode", "shares the memory and semaphores"),
        ("NetworkMode", "has the network, addresses and ports"),
        ("UTSMode", "has the name"),
    ] {
        let mode = host[field].as_str().unwrap_or_default();
        let whose = match mode.split_once(':') {
            Some(("container", other)) => format!("of the container `{}`", printable(other)),
            _ if mode == "host" => "of the machine".to_owned(),
            _ => continue,
        };
        notes.push(format!(
            "it {what} {whose}, and so do the copies: what the command does there, it does each time"
        ));
    }
    notes
}

/// Returns why the container's own command must not run a second time while the original may be running: it would
/// answer in its place. `is_server`: whether its image or its configuration says that it is a server.
pub(crate) fn would_answer(body: &Value, is_server: bool) -> Option<String> {
    let mode = body["HostConfig"]["NetworkMode"]
        .as_str()
        .unwrap_or_default();
    let is_exposed = |ports: &Value| match ports {
        Value::Object(ports) => !ports.is_empty(),
        Value::Array(ports) => !ports.is_empty(),
        _ => false,
    };
    let is_anothers = mode == "host" || mode.starts_with("container:");
    (is_anothers && (is_server || is_exposed(&body["ExposedPorts"]))).then(|| {
        "it serves on addresses that are not its own, where a copy would answer in place of the original".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::user_container::share::Share;

    struct Other;

    impl Machine for Other {
        fn has(&self, _: &Share) -> bool {
            true
        }
        fn is_here(&self) -> bool {
            true
        }
        fn is_disk(&self, device: &str) -> bool {
            device == "/srv/link-to-a-disk"
        }
    }

    #[test]
    fn devices_become_read_only_unless_stateless() {
        let device = |path: &str, rights: &str| json!({"PathOnHost": path, "PathInContainer": "/dev/x", "CgroupPermissions": rights});
        let mut host = json!({
            "Devices": [device("/dev/vda", "rwm"), device("/dev/fuse", "rwm"), device("/dev/sdb", "r"),
                        device("/srv/link-to-a-disk", ""), device("/dev/mapper/x", "w"), device("/dev", "rwm"),
                        device("/dev/ttyUSB0", "rwm"), device("/dev/dri/card0", "rw"), device("/dev/net/tun", "rwm")],
            "DeviceCgroupRules": ["c 189:* rmw", "b 8:* rwm", "a *:* rwm"]
        });
        let mut notes = Vec::new();
        disks(&mut host, &Other, &mut notes);
        let rights: Vec<&str> = host["Devices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["CgroupPermissions"].as_str().unwrap())
            .collect();
        assert_eq!(rights, ["r", "rwm", "r", "r", "r", "r", "r", "rw", "rwm"]);
        assert_eq!(
            host["DeviceCgroupRules"],
            json!(["c 189:* rmw", "b 8:* r", "c *:* rwm", "b *:* r"])
        );
        assert_eq!(notes.len(), 6, "{notes:?}");
        for path in [
            "/dev/sgx_enclave",
            "/dev/snd",
            "/dev/dri",
            "/dev/null",
            "/dev/loop-control",
        ] {
            assert!(!is_named_so(path), "{path}");
        }
        let mut none = json!({"Devices": null, "DeviceCgroupRules": ["c 1:3 r"]});
        let before = none.clone();
        disks(&mut none, &Other, &mut notes);
        assert_eq!((none, notes.len()), (before, 6));
    }

    #[test]
    fn access_outside_the_container_is_warned_about() {
        let notes = |host: Value| warned(&json!({"HostConfig": host})).join("\n");
        assert_eq!(
            notes(
                json!({"PidMode": "", "Privileged": false, "IpcMode": "private", "NetworkMode": "mine"})
            ),
            ""
        );
        for (host, word) in [
            (json!({"Privileged": true}), "privileged"),
            (json!({"PidMode": "host"}), "processes of the machine"),
            (json!({"IpcMode": "container:db"}), "of the container `db`"),
            (json!({"NetworkMode": "host"}), "ports of the machine"),
        ] {
            assert!(notes(host).contains(word), "{word}");
        }
    }

    #[test]
    fn server_on_shared_network_is_not_duplicated() {
        let of = |mode: &str, ports: Value, is_server| {
            let body = json!({"HostConfig": {"NetworkMode": mode}, "ExposedPorts": ports});
            would_answer(&body, is_server).is_some()
        };
        assert!(of("host", json!({"80/tcp": {}}), false));
        assert!(of("container:db", Value::Null, true));
        assert!(!of("host", Value::Null, false));
        assert!(!of("bridge", json!({"80/tcp": {}}), true));
    }
}
