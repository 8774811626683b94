//! Tests on Tare's specification, and on one shaped like Docker's.

use super::super::settings::Settings;
use super::*;
use crate::env::EnvError;
use tare_model::Params;
use tare_model::launch::CAPABILITIES;

/// Shaped like what Docker 20.10 writes, with fields that only Docker's runtime knows.
const DOCKERS: &str = r#"{
    "ociVersion": "1.0.2-dev",
    "process": {
        "terminal": true, "consoleSize": {"height": 0, "width": 0},
        "user": {"uid": 7, "gid": 8, "additionalGids": [1]},
        "args": ["/bin/server", "--x"], "env": ["PATH=/bin", "TARE_RUN=other"], "cwd": "/srv",
        "capabilities": {"bounding": ["CAP_CHOWN"], "effective": ["CAP_CHOWN"],
                         "permitted": ["CAP_CHOWN"], "ambient": []},
        "apparmorProfile": "docker-default", "oomScoreAdj": 0
    },
    "root": {"path": "/var/lib/docker/overlay2/x/merged", "readonly": true},
    "hostname": "abc",
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid"],
                "uidMappings": []}],
    "hooks": {"prestart": [{"path": "/proc/1/exe", "args": ["libnetwork-setkey"]}]},
    "annotations": {"a": "b"},
    "linux": {
        "sysctl": {"net.ipv4.ip_unprivileged_port_start": "0"},
        "resources": {"devices": [{"allow": false, "access": "rwm"}], "memory": {"swap": 5},
                      "cpu": {"shares": 2}, "blockIO": {}},
        "cgroupsPath": "/docker/abc",
        "namespaces": [{"type": "mount"}, {"type": "network", "path": "/proc/12/ns/net"},
                       {"type": "uts"}, {"type": "pid"}, {"type": "ipc", "path": "/proc/9/ns/ipc"}],
        "seccomp": {"defaultAction": "SCMP_ACT_ERRNO"},
        "maskedPaths": ["/proc/kcore"], "readonlyPaths": ["/proc/sys"]
    }
}"#;

fn build_with(base: Option<&str>, params: &Params) -> Result<Value, EnvError> {
    let base = base.map(|text| Spec::parse(text).unwrap());
    let available = CAPABILITIES.map(str::to_owned);
    // As on a machine whose processes cannot raise their limits.
    let available: Vec<String> = available
        .into_iter()
        .filter(|name| name != "CAP_SYS_RESOURCE")
        .collect();
    let place = SpecTarget {
        id: "tare-run-arm-1",
        run: "run",
        root: "/scratch/\"quoted\"/rootfs".into(),
        files: "/scratch/files".into(),
        netns: None,
        arguments: &["serve"],
        available: &available,
        kernel: "6.1.0",
        hidden: &[],
        shown: &[],
        release: DockerRelease::default(),
    };
    let settings = Settings::read(params).unwrap();
    let built = build(base.as_ref(), &settings, &place)?;
    Ok(serde_json::from_slice(&built.spec.to_bytes()).unwrap())
}

fn kinds(spec: &Value) -> Vec<&str> {
    let list = spec["linux"]["namespaces"].as_array().unwrap();
    let mut kinds: Vec<&str> = list
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    kinds
}

#[test]
fn built_in_spec_is_docker_default_in_its_cgroup() {
    let spec = build_with(None, &Params::new()).unwrap();
    assert_eq!(
        kinds(&spec),
        ["cgroup", "ipc", "mount", "network", "pid", "uts"]
    );
    assert_eq!(spec["process"]["args"], json!(["/tare-agent", "serve"]));
    assert_eq!(spec["process"]["terminal"], false);
    let bounding = &spec["process"]["capabilities"]["bounding"];
    assert_eq!(bounding.as_array().unwrap().len(), 14);
    assert_eq!(spec["linux"]["cgroupsPath"], "/tare-run-arm-1");
    assert_eq!(spec["root"]["path"], "/scratch/\"quoted\"/rootfs");
    assert!(
        spec["linux"]["seccomp"]["syscalls"]
            .as_array()
            .unwrap()
            .len()
            > 30
    );
    assert_eq!(spec["linux"]["maskedPaths"].as_array().unwrap().len(), 12);
}

#[test]
fn every_switch_changes_its_own_field_only() {
    let params = Params::new()
        .with("seccomp", "unconfined")
        .with("caps", "none")
        .with("no_new_privileges", true)
        .with("masked_paths", false)
        .with("namespaces", "ipc,net")
        .with("cpus", 0.5)
        .with("cpuset", "0-1")
        .with("memory", "64m")
        .with("pids", 50i64);
    let spec = build_with(None, &params).unwrap();
    assert!(spec["linux"].get("seccomp").is_none());
    assert_eq!(spec["process"]["capabilities"]["effective"], json!([]));
    assert_eq!(spec["process"]["noNewPrivileges"], true);
    assert_eq!(spec["linux"]["readonlyPaths"], json!([]));
    assert_eq!(kinds(&spec), ["ipc", "mount", "network", "pid"]);
    assert!(spec.get("hostname").is_none(), "it would be the host's");
    let resources = &spec["linux"]["resources"];
    let cpu = json!({"quota": 50_000, "period": 100_000, "cpus": "0-1"});
    assert_eq!(resources["cpu"], cpu);
    assert_eq!(resources["memory"]["limit"], 64 << 20);
    assert_eq!(resources["pids"]["limit"], 50);
}

#[test]
fn foreign_spec_is_preserved_except_outside_access() {
    let spec = build_with(Some(DOCKERS), &Params::new()).unwrap();
    let before: Value = serde_json::from_str(DOCKERS).unwrap();
    for path in [
        "/process/user",
        "/process/capabilities",
        "/process/apparmorProfile",
        "/annotations",
        "/linux/sysctl",
        "/linux/resources",
        "/linux/seccomp",
        "/linux/maskedPaths",
        "/hostname",
        "/ociVersion",
    ] {
        assert_eq!(spec.pointer(path), before.pointer(path), "{path}");
    }
    assert!(spec.get("hooks").is_none());
    assert!(spec["process"].get("consoleSize").is_none());
    assert_eq!(spec["process"]["env"], json!(["PATH=/bin", "TARE_RUN=run"]));
    let network = json!({"type": "network"});
    let namespaces = spec["linux"]["namespaces"].as_array().unwrap();
    assert!(namespaces.contains(&network));
    // The root is read-only, and the probes need a place to write.
    let last = spec["mounts"].as_array().unwrap().last().unwrap();
    assert_eq!(last["destination"], WORKDIR);
    assert_eq!(spec["mounts"][0]["uidMappings"], json!([]));
}

#[test]
fn one_setting_changes_one_mechanism_of_foreign_spec() {
    let off = build_with(Some(DOCKERS), &Params::new().with("seccomp", "unconfined")).unwrap();
    let mut on = build_with(Some(DOCKERS), &Params::new()).unwrap();
    on["linux"].as_object_mut().unwrap().remove("seccomp");
    assert_eq!(off, on);
    let limited = build_with(Some(DOCKERS), &Params::new().with("memory", 7i64 << 20)).unwrap();
    let memory = json!({"swap": 5, "limit": 7 << 20});
    assert_eq!(limited["linux"]["resources"]["memory"], memory);
}

#[test]
fn lacking_capability_is_refused_or_omitted_from_all() {
    let listed = Params::new().with("caps", "CHOWN,SYS_RESOURCE");
    let error = build_with(None, &listed).unwrap_err();
    assert!(matches!(error, EnvError::Denied { .. }));
    assert!(error.to_string().contains("CAP_SYS_RESOURCE"), "{error}");
    let all = build_with(None, &Params::new().with("caps", "all")).unwrap();
    let given = all["process"]["capabilities"]["permitted"]
        .as_array()
        .unwrap();
    assert_eq!(given.len(), 40);
}

#[test]
fn invalid_linux_spec_is_refused_with_missing_part() {
    for (text, part) in [
        ("", "EOF"),
        ("[]", "invalid type"),
        ("{\"ociVersion\":\"1\"}", "process"),
        (
            r#"{"ociVersion":"1","process":{"cwd":"/"},"root":{"path":"x"}}"#,
            "linux",
        ),
    ] {
        let error = Spec::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn network_sysctl_follows_its_namespace() {
    let sysctl = |network: &str| {
        let built = build_with(Some(DOCKERS), &Params::new().with("network", network)).unwrap();
        built["linux"]["sysctl"].clone()
    };
    assert_eq!(sysctl("host"), json!({}));
    assert_eq!(
        sysctl("none"),
        json!({"net.ipv4.ip_unprivileged_port_start": "0"})
    );
}
