//! Tests specifications from elsewhere: the user's file, and the one that Docker used.

use super::{configure, each_runtime, facts, is_available, look, own_namespaces};
use crate::prelude::*;

/// Writes a specification that reaches for the host: its namespaces, its root cgroup, a hook.
fn reaching_out(folder: &Path, trace: &Path) -> String {
    let spec = json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": true, "consoleSize": {"height": 10, "width": 10},
            "user": {"uid": 65534, "gid": 65534}, "cwd": "/no/such/folder", "args": ["/bin/sh"],
            "env": ["PATH=/bin"], "noNewPrivileges": true,
            "capabilities": {"bounding": [], "effective": [], "permitted": []}
        },
        "root": {"path": "/", "readonly": true},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "hooks": {"prestart": [{"path": "/bin/touch", "args": ["touch", trace]}]},
        "linux": {"cgroupsPath": "/", "namespaces": [{"type": "uts"}], "resources": {}}
    });
    let path = folder.join("config \"of\" the user's.json");
    fs::write(&path, spec.to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn user_oci_spec_is_used_but_cannot_reach_host() {
    let _turn = turn();
    for (runtime, world) in each_runtime("users") {
        let own = tempfile::tempdir().unwrap();
        let trace = own.path().join("trace");
        let settings = Params::new()
            .with("runtime", runtime)
            .with("spec", reaching_out(own.path(), &trace));
        let before = Snapshot::take(&world);
        let host = own_namespaces();
        let described = look(&world, &settings, |instance, facts| {
            assert!(
                facts["status.Uid"].starts_with("65534"),
                "{}",
                facts["status.Uid"]
            );
            assert_eq!(facts["status.NoNewPrivs"], "1");
            assert_eq!(facts["status.Seccomp"], "0");
            for (name, inode) in &host {
                let is_own = ["mnt", "pid", "uts"].contains(&name.as_str());
                assert_eq!(facts[&format!("ns.{name}")] != *inode, is_own, "{name}");
            }
            assert_eq!(instance.address_from_host(), Ok([127, 0, 0, 1].into()));
            let mount = &facts["mount./tare-work.options"];
            assert!(mount.split(',').any(|word| word == "rw"), "{mount}");
        });
        assert!(!trace.exists(), "the hook was run");
        for what in ["hooks", "pid", "mount", "workdir"] {
            assert!(
                described.contains_key(&format!("oci.changed.{what}")),
                "{described:?}"
            );
        }
        assert!(
            described["oci.spec.origin"].contains("config"),
            "{described:?}"
        );
        before.assert_restored(&world, "a user's specification");
    }
}

#[test]
fn invalid_oci_spec_is_refused_with_place_and_cleanup() {
    let (_turn, world) = needed!(turn_where("nospec", |world| is_available(world, "runc")));
    let own = tempfile::tempdir().unwrap();
    let before = Snapshot::take(&world);
    let file = |name: &str, text: &str| {
        let path = own.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let cases = [
        (
            file("a.json", "{\"ociVersion\": \"1.0.2\",\n  oops"),
            "line 2",
        ),
        (file("b\u{1b}[31m.json", "{}"), "missing field"),
        (file("c.json", ""), "EOF"),
        (
            own.path().join("d\n.json").display().to_string(),
            "cannot read",
        ),
        (own.path().display().to_string(), "cannot read"),
    ];
    for (path, part) in cases {
        let mut environment = configure(&Params::new().with("spec", path.as_str()));
        for error in [
            environment.prepare(&world.cx()).unwrap_err(),
            environment
                .start(&world.cx(), StartMode::Once)
                .err()
                .unwrap(),
        ] {
            let text = error.to_string();
            assert!(text.contains(part), "{path:?}: {text}");
            assert!(!text.contains('\u{1b}'), "{text:?}");
        }
        environment.remove(&world.cx()).unwrap();
        before.assert_restored(&world, "a bad specification");
    }
}

#[test]
fn oci_spec_rejection_shows_runtime_message() {
    let (_turn, world) = needed!(turn_where("refused", |world| is_available(world, "runc")));
    let own = tempfile::tempdir().unwrap();
    let path = own.path().join("config.json");
    let spec = json!({
        "ociVersion": "1.0.2", "root": {"path": "x"}, "process": {"cwd": "/", "user": {"uid": 0, "gid": 0}},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                   {"destination": "/x", "type": "no-such-file-system", "source": "x"}],
        "linux": {}
    });
    fs::write(&path, spec.to_string()).unwrap();
    let before = Snapshot::take(&world);
    let mut environment = configure(&Params::new().with("spec", path.display().to_string()));
    let error = environment
        .start(&world.cx(), StartMode::Once)
        .err()
        .unwrap();
    let EnvError::Refused { what, answer } = &error else {
        panic!("{error:?}");
    };
    assert_says(what, "runc");
    assert_says(answer, "no such device");
    before.assert_restored(&world, "a refused specification");
}

#[test]
fn docker_oci_spec_runs_without_docker_or_a_mechanism() {
    let _turn = turn();
    let world = World::new("dockers");
    if !is_ready(&world, &DOCKER, "docker") || !is_available(&world, "runc") {
        return;
    }
    let arm = arm_id("docker");
    let mut engine = DOCKER.configure(arm, &params("memory = '256m'")).unwrap();
    engine.prepare(&world.cx()).unwrap();
    let running = engine.start(&world.cx(), StartMode::Resident).unwrap();
    let label = format!("label=tare.run={}", world.run);
    let listed = Command::new("docker")
        .args([
            "ps",
            "--no-trunc",
            "--format",
            "{{.ID}} {{.Names}}",
            "--filter",
            &label,
        ])
        .output();
    let Ok(listed) = listed else {
        engine.end(running, &world.cx());
        return skip(
            "docker",
            "there is no `docker` command to ask for the container's name",
        );
    };
    let text = lossy(&listed.stdout);
    let (id, name) = text.trim().split_once(' ').expect("one container runs");

    let mut found = Vec::new();
    for wanted in [id, &id[..12], name] {
        let settings = Params::new().with("spec", format!("docker:{wanted}"));
        let described = look(&World::new("by-docker"), &settings, |_, facts| {
            found.push(facts.clone());
        });
        assert_eq!(described["oci.spec.origin"], id);
        assert!(described.contains_key("oci.spec"), "{described:?}");
    }
    for facts in &found {
        assert_eq!(facts["status.CapEff"], "00000000a80425fb");
        assert_eq!(facts["status.Seccomp"], "2");
        let hostname = &facts["kernel.hostname"];
        assert!(hostname != "tare" && !hostname.is_empty(), "{hostname}");
        let limit = (256 << 20).to_string();
        let has_limit = |(name, value): (&String, &String)| {
            name.starts_with("cgroup.memory") && *value == limit
        };
        assert!(facts.iter().any(has_limit), "{facts:?}");
    }
    let settings = Params::new()
        .with("spec", format!("docker:{name}"))
        .with("seccomp", "unconfined");
    look(&World::new("by-docker"), &settings, |_, facts| {
        assert_eq!(facts["status.Seccomp"], "0");
        assert_eq!(facts["status.CapEff"], "00000000a80425fb");
    });

    // Read while the container ran, it stays usable after the container is gone.
    let mut kept = configure(&Params::new().with("spec", format!("docker:{name}")));
    kept.prepare(&world.cx()).unwrap();
    engine.end(running, &world.cx());
    let error = configure(&Params::new().with("spec", format!("docker:{name}")))
        .prepare(&world.cx())
        .unwrap_err();
    let EnvError::Absent { why, fix } = &error else {
        panic!("{error:?}");
    };
    assert!(why.contains(name) && fix.is_some(), "{error}");
    match kept.start(&world.cx(), StartMode::Once) {
        Ok(mut instance) => {
            facts(instance.as_mut());
            instance.stop(&world.cx()).unwrap();
        }
        // The files that the engine mounted into it are gone with it, and the runtime names them.
        Err(error) => assert!(error.to_string().contains("containers"), "{error}"),
    }
    kept.remove(&world.cx()).unwrap();
}
