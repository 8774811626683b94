//! Tests the variants of a Docker container: each setting against its effect inside, each bad input against its
//! error, and the paths between two ends.

use crate::prelude::*;

use tare::config::{Adjustments, parse};
use tare::env::{Published, PublishedAt};
use tare_model::Value;

use crate::docker::{
    absent, end, engine_facts, environment, leftovers, of_engine, remove, with_instance, world,
};

mod copy_up;
mod packed;
mod paths;

/// Docker's own fourteen capabilities (moby `oci/caps/defaults.go`).
const DEFAULT_CAPABILITIES: &str = "00000000a80425fb";

fn fact<'a>(facts: &'a Facts, name: &str) -> &'a str {
    facts.get(name).map_or("", String::as_str)
}

/// Returns the facts inside a resident instance with these settings.
fn inside(world: &World, settings: &Params) -> Facts {
    let mut found = Facts::new();
    with_instance(world, settings, StartMode::Resident, |instance| {
        found = inner_facts(instance);
    });
    found
}

/// Returns the error of a start with these settings; nothing is left afterwards.
fn refusal(world: &World, settings: &Params) -> EnvError {
    let mut environment = environment(&DOCKER, "arm", settings);
    let outcome = environment
        .prepare(&world.cx())
        .and_then(|()| environment.start(&world.cx(), StartMode::Resident));
    let Err(error) = outcome else {
        panic!("{settings:?} was granted");
    };
    remove(world, environment.as_mut());
    error
}

#[test]
fn docker_variant_study_parses_with_a_dozen_arms() {
    let text = include_str!("../../../../examples/studies/docker-variants.toml");
    let study = parse("docker-variants.toml", text, &Adjustments::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let docker = study.arms.iter().filter(|arm| arm.driver == "docker");
    let settings: BTreeSet<String> = docker
        .map(|arm| serde_json::to_string(&arm.settings).unwrap())
        .collect();
    assert_eq!(settings.len(), 12, "{settings:?}");
    assert!(study.budget_ns.unwrap() <= 240_000_000_000);
}

#[test]
fn security_variants_take_effect_inside() {
    let world = needed!(world("variants"));
    let engine = engine_facts(&world);
    let lacks: Vec<Value> = fact(&engine, "engine.capabilities_missing")
        .split_whitespace()
        .map(Value::from)
        .collect();
    let every = params("cap_add = 'ALL'").with("cap_drop", Value::List(lacks));
    let all = fact(&engine, "engine.CapBnd").to_owned();
    let none = "0000000000000000";
    for (settings, seccomp, capabilities, no_new_privileges) in tare_model::rows! {
        (Params::new(), "2", DEFAULT_CAPABILITIES, "0"),
        (params("seccomp = 'unconfined'"), "0", DEFAULT_CAPABILITIES, "0"),
        (params("cap_drop = 'ALL'"), "2", none, "0"),
        (params("cap_drop = 'ALL', cap_add = 'NET_BIND_SERVICE'"), "2", "0000000000000400", "0"),
        (every, "2", all.as_str(), "0"),
        (params("no_new_privileges = true"), "2", DEFAULT_CAPABILITIES, "1"),
    } {
        let facts = inside(&world, &settings);
        assert_eq!(fact(&facts, "status.Seccomp"), seccomp, "{settings:?}");
        assert_eq!(fact(&facts, "status.NoNewPrivs"), no_new_privileges);
        if capabilities == all {
            // An engine grants only capabilities that it knows: an old one has no name for the newest.
            let bits = |digits: &str| u64::from_str_radix(digits, 16).unwrap_or(u64::MAX);
            let given = bits(fact(&facts, "status.CapEff"));
            let usual = bits(DEFAULT_CAPABILITIES);
            assert_eq!(given & usual, usual, "{given:x}");
            assert_eq!(given & (1 << 21), 1 << 21, "SYS_ADMIN: {given:x}");
            assert_eq!(given & !bits(&all), 0, "{given:x}");
        } else {
            assert_eq!(fact(&facts, "status.CapEff"), capabilities, "{settings:?}");
            assert_eq!(fact(&facts, "status.CapBnd"), capabilities, "{settings:?}");
        }
    }
}

#[test]
fn custom_profile_is_in_force_and_named_by_hash() {
    let world = needed!(world("profile"));
    let path = world.folder.path().join("no \"mkdir\".json");
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]}"#;
    fs::write(&path, profile).unwrap();
    let settings = Params::new().with("seccomp", path.to_str().unwrap());
    let mut environment = environment(&DOCKER, "arm", &settings);
    environment.prepare(&world.cx()).unwrap();
    let facts = environment.describe(&world.cx());
    assert_eq!(fact(&facts, "seccomp.profile_sha256").len(), 64);
    assert!(fact(&facts, "asked.SecurityOpt").contains("seccomp=sha256:"));
    let mut instance = environment.resident(&world);
    assert_eq!(fact(&inner_facts(instance.as_mut()), "status.Seccomp"), "2");
    // A probe that creates folders hits the seccomp filter; one that does not is unaffected.
    let files = run(instance.as_mut(), 1, "files");
    assert!(
        files.contains("mkdir") || files.contains("not permitted"),
        "{files}"
    );
    assert!(run(instance.as_mut(), 2, "getppid").starts_with("done"));
    end(&world, instance, environment);
}

/// Returns the last reply to a short trial of a probe.
fn run(instance: &mut dyn Instance, trial: u64, probe: &str) -> String {
    match crate::talk::trial(instance, trial, probe, Params::new()) {
        Reply::Done { raw, .. } => format!("done {}", lossy(&raw.stdout.0)),
        Reply::Unavailable { reason, .. } => format!("unavailable {reason}"),
        Reply::Failed { failure, .. } => format!("failed {failure}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn broken_or_missing_profile_refused_before_setup() {
    let world = World::new("badprofile");
    let broken = world.folder.path().join("broken.json");
    fs::write(&broken, "{\"defaultAction\": \"SCMP_ACT_ALLOW\",\n \"sysc").unwrap();
    // No engine is asked: the result is the same without one.
    let nowhere = tare::env::docker::Docker::with_host("unix:///nonexistent/docker.sock");
    for (path, says) in [
        (broken.to_str().unwrap(), "line 2"),
        ("/nonexistent/profile.json", "No such file"),
    ] {
        let settings = Params::new().with("seccomp", path);
        let refused = environment(&nowhere, "arm", &settings).prepare(&world.cx());
        let error = refused.unwrap_err().to_string();
        assert_says(&error, path);
        assert_says(&error, says);
    }
}

#[test]
fn limits_terminal_and_init_are_found_inside() {
    let world = needed!(world("limits"));
    let settings = Params::new()
        .with("ulimits", Value::List(vec!["nofile=512:1024".into()]))
        .with("shm", "128m")
        .with("cpus", 0.5)
        .with("cpuset", "0")
        .with("memory", "128m")
        .with("tty", true)
        .with("init", true)
        .with("log_driver", "none")
        .with("apparmor", "unconfined");
    let mut environment = environment(&DOCKER, "arm", &settings);
    environment.prepare(&world.cx()).unwrap();
    let asked = environment.describe(&world.cx());
    let has_apparmor = fact(&asked, "engine.security").contains("name=apparmor");
    assert_eq!(
        fact(&asked, "security.apparmor").contains("absent"),
        !has_apparmor,
        "{asked:?}"
    );
    assert_eq!(fact(&asked, "asked.Tty"), "true");
    let mut instance = environment.resident(&world);
    let facts = inner_facts(instance.as_mut());
    let nofile = facts
        .iter()
        .find(|(name, _)| name.contains("nofile") || name.contains("open_files"))
        .unwrap_or_else(|| panic!("{facts:?}"));
    // The soft limit is the engine's, or sometimes the hard one: runc's first process raises its soft limit like
    // every Go program, at any time before or after runc sets it.
    assert!(nofile.1.ends_with("1024"), "{nofile:?}");
    assert_eq!(fact(&facts, "status.Cpus_allowed_list"), "0", "{facts:?}");
    let found = inspect(&world, "arm-1");
    assert_eq!(found["Config"]["Tty"], true, "{found}");
    let limit = &found["HostConfig"]["Ulimits"][0];
    assert_eq!(
        (&limit["Soft"], &limit["Hard"]),
        (&512.into(), &1024.into())
    );
    assert_eq!(found["HostConfig"]["ShmSize"], 128 << 20);
    assert_eq!(found["HostConfig"]["NanoCpus"], 500_000_000);
    assert_eq!(found["HostConfig"]["Memory"], 128 << 20);
    assert_eq!(found["HostConfig"]["Init"], true);
    assert_eq!(found["HostConfig"]["LogConfig"]["Type"], "none");
    // Only process 1 has the terminal: frames with every byte value still pass.
    assert!(run(instance.as_mut(), 1, "getppid").starts_with("done"));
    instance.stop(&world.cx()).unwrap();
    // A terminal would corrupt the stream of an agent that is process 1, so that one has none.
    let once = environment.greeted(&world.cx(), StartMode::Once);
    assert_eq!(inspect(&world, "arm-2")["Config"]["Tty"], false);
    end(&world, once, environment);
}

#[test]
fn entry_program_is_pid_one_stopped_then_killed() {
    let world = needed!(world("entry"));
    for (has_init, first) in [(false, "sleep"), (true, "docker-init")] {
        let settings = Params::new()
            .with("programs", Value::List(vec!["sleep".into()]))
            .with("entry", "sleep infinity")
            .with("stop_after", 1i64)
            .with("init", has_init);
        let mut environment = environment(&DOCKER, "arm", &settings);
        environment.prepare(&world.cx()).unwrap();
        for mode in [StartMode::Resident, StartMode::Once] {
            let mut instance = environment.greeted(&world.cx(), mode);
            let facts = inner_facts(instance.as_mut());
            let name = fact(&facts, "init.name");
            assert!(
                name == first || (has_init && name.contains("init")),
                "{name}"
            );
            let is_heard = fact(&facts, "init.handles_sigterm");
            assert_eq!(is_heard, has_init.to_string(), "{name}");
            let begin = Instant::now();
            instance.stop(&world.cx()).unwrap();
            // A process that ignores the signal is waited for; the other one's speed is not checked.
            assert!(has_init || begin.elapsed() >= Duration::from_secs(1));
        }
        remove(&world, environment.as_mut());
    }
}

/// Returns the engine's description of a container of this run.
fn inspect(world: &World, name: &str) -> serde_json::Value {
    let name = format!("tare-{}-{name}", world.run);
    let found = of_engine(async |client| client.inspect_container(&name, None).await);
    serde_json::to_value(found.unwrap()).unwrap()
}

#[test]
fn missing_engine_feature_is_named_with_advice() {
    let world = needed!(world("refused"));
    for (name, value, says) in [
        (
            "network",
            "container:tare-test-none",
            "no container whose network",
        ),
        ("runtime", "tare-none", "runtime"),
        ("log_driver", "tare-none", "no log driver"),
        ("platform", "linux/riscv64", "no static Linux agent"),
        ("ulimits", "nofile=2147483584", "`ulimits` asks for more"),
        ("cpuset", "4000", "CPU"),
    ] {
        let settings = Params::new().with(name, value);
        let (why, fix) = absent(refusal(&world, &settings));
        assert!(why.contains(says), "{name}: {why}");
        assert!(!fix.is_empty(), "{name}");
    }
}

#[test]
fn bind_folder_is_created_in_place_and_removed() {
    let world = needed!(world("bindfolder"));
    let parent = tempfile::Builder::new()
        .prefix("tare it's \"here\"")
        .tempdir()
        .unwrap();
    let names = || fs::read_dir(parent.path()).unwrap().count();
    let settings = params("storage = 'bind'").with("bind_folder", parent.path().to_str().unwrap());
    let mut first = environment(&DOCKER, "arm", &settings);
    let instance = first.resident(&world);
    assert_eq!(names(), 1);
    instance.stop(&world.cx()).unwrap();
    assert_eq!(names(), 0);
    first.remove(&world.cx()).unwrap();
    assert_eq!(fs::read_dir(world.folder.path()).unwrap().count(), 0);
    // A killed run leaves the folder behind, and the sweep finds it.
    let mut killed = environment(&DOCKER, "arm", &settings);
    let instance = killed.start(&world.cx(), StartMode::Resident).unwrap();
    std::mem::forget(instance);
    assert_eq!(names(), 1);
    let swept = leftovers(&world, &DOCKER);
    assert!(
        swept.iter().any(|line| line.starts_with("folder ")),
        "{swept:?}"
    );
    assert_eq!(names(), 0);
    killed.remove(&world.cx()).unwrap();
}

#[test]
fn served_folder_unmounts_on_stop_and_by_sweep() {
    let world = needed!(world("served"));
    if !crate::docker::can_serve(&world) {
        return;
    }
    crate::docker::assert_open(&world, "served", &["fuse.bindfs", "fuse"]);
    let mounts = || {
        let list = contents("/proc/self/mountinfo");
        let folder = world.folder.path().to_str().unwrap();
        list.lines().filter(|line| line.contains(folder)).count()
    };
    let before = mounts();
    let settings = params("storage = 'served', network = 'none'");
    let mut first = environment(&DOCKER, "arm", &settings);
    let instance = first.resident(&world);
    assert_eq!(mounts(), before + 1);
    instance.stop(&world.cx()).unwrap();
    assert_eq!(mounts(), before);
    first.remove(&world.cx()).unwrap();
    // A killed run leaves the mount and its server behind; even without its server it stays mounted.
    let mut killed = environment(&DOCKER, "arm", &settings);
    let instance = killed.start(&world.cx(), StartMode::Resident).unwrap();
    std::mem::forget(instance);
    assert_eq!(mounts(), before + 1);
    let swept = leftovers(&world, &DOCKER);
    assert!(
        swept.iter().any(|line| line.starts_with("folder ")),
        "{swept:?}"
    );
    assert_eq!(mounts(), before);
    killed.remove(&world.cx()).unwrap();
}

#[test]
fn silent_context_times_out_naming_it() {
    let world = World::new("context");
    // Runs this program again, with another Docker configuration folder.
    if std::env::var_os("TARE_TEST_CONTEXT").is_none() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let folder = world.folder.path();
        for (name, host) in [
            ("mute", format!("tcp://{address}")),
            ("gone", "unix:///nonexistent/docker.sock".to_owned()),
        ] {
            use sha2::{Digest, Sha256};
            let hash: String = Sha256::digest(name.as_bytes())
                .iter()
                .fold(String::new(), |digits, byte| {
                    digits + &format!("{byte:02x}")
                });
            let meta = folder.join("contexts/meta").join(hash);
            fs::create_dir_all(&meta).unwrap();
            let text = serde_json::json!({"Name": name, "Endpoints": {"docker": {"Host": host}}});
            fs::write(meta.join("meta.json"), text.to_string()).unwrap();
        }
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "docker_variants::silent_context_times_out_naming_it",
            ])
            .env("TARE_TEST_CONTEXT", "1")
            .env("DOCKER_CONFIG", folder)
            .env_remove("DOCKER_HOST")
            .output()
            .unwrap();
        let text = lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert_says(&text, "1 passed");
        return;
    }
    for (context, says) in [
        ("mute", "does not answer"),
        ("gone", "no Docker engine listens"),
        ("none", "has no file"),
    ] {
        let settings = Params::new().with("context", context);
        let mut environment = environment(&DOCKER, "arm", &settings);
        let Some(Availability::Absent { why, fix }) = environment.detect(&world.cx()) else {
            panic!("{context} is there");
        };
        assert_says(&why, context);
        assert_says(&why, says);
        assert!(fix.unwrap().contains("docker context"), "{context}");
        // An engine that does not answer gets more time here than during detection.
        if context != "mute" {
            let error = environment.prepare(&world.cx()).unwrap_err();
            assert!(error.to_string().contains(context), "{error}");
        }
    }
}
