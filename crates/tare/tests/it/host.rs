//! Tests the driver `host`: the driver contract, and its special features.

use crate::prelude::*;

use tare::env::host::Host;

use crate::contract::contract;
#[cfg(target_os = "linux")]
use crate::talk::{LIMIT, call, run};
use tare::env::container::Container;

#[test]
fn host_keeps_the_contract_of_drivers() {
    contract(&Host, &Params::new());
}

#[test]
#[cfg(target_os = "linux")]
fn host_keeps_the_contract_on_one_processor() {
    contract(&Host, &params("cpuset = 0"));
}

#[test]
#[cfg(target_os = "linux")]
fn agent_on_one_processor_reports_one_processor() {
    let world = World::new("cpus");
    let settings = params("cpuset = '0'");
    let arm = arm_id("host");
    let mut environment = Host.configure(arm, &settings).unwrap();
    let mut instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    let facts = inner_facts(instance.as_mut());
    assert_eq!(facts["cpu.affinity"], "0");
    instance.stop(&world.cx()).unwrap();
}

/// Returns the session of a process.
#[cfg(target_os = "linux")]
fn session(pid: u32) -> u32 {
    let stat = contents(format!("/proc/{pid}/stat"));
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // State, parent, group, session.
    fields.split(' ').nth(3).unwrap().parse().unwrap()
}

/// Otherwise the scheduler would have them share a processor with programs at the user's terminal, unlike anything in
/// a container.
#[test]
#[cfg(target_os = "linux")]
fn host_arms_run_in_separate_sessions() {
    let world = World::new("sessions");
    let sessions: Vec<u32> = ["host", "a-prime"]
        .into_iter()
        .map(|id| {
            let before = labelled(world.run.as_str());
            let arm = arm_id(id);
            let mut environment = Host.configure(arm, &Params::new()).unwrap();
            let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
            hello(instance.as_mut());
            let (agent, _) = labelled(world.run.as_str())
                .into_iter()
                .find(|(pid, _)| !before.contains_key(pid))
                .unwrap();
            let session = session(agent);
            instance.stop(&world.cx()).unwrap();
            session
        })
        .collect();
    assert_ne!(sessions[0], session(std::process::id()));
    assert_ne!(sessions[0], sessions[1]);
}

#[test]
#[cfg(target_os = "linux")]
fn missing_processor_is_reported_by_the_agent() {
    let world = World::new("no-cpu");
    let settings = params("cpuset = 1023");
    let arm = arm_id("host");
    let mut environment = Host.configure(arm, &settings).unwrap();
    let mut instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    // The request may be written before the agent has ended; the answer never arrives.
    let _ = instance
        .channel()
        .send(&Request::Hello { protocol: PROTOCOL });
    let answer = instance.channel().receive(Duration::from_secs(20));
    let Err(ChannelError::Closed(words)) = answer else {
        panic!("answered by {answer:?}");
    };
    assert_says(&words, "processors");
    instance.stop(&world.cx()).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn leftovers_of_killed_host_are_swept_by_label() {
    let world = World::new("sweep");
    let before = Snapshot::take(&world);
    // An agent whose input stays open, as if the host had passed its end to another process.
    let mut orphan = Command::new(world.agents.host().path.clone())
        .arg("serve")
        .env("TARE_RUN", world.run.as_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("it carries its label", || {
        !labelled(world.run.as_str()).is_empty()
    });
    let swept = Host.sweep(&world.cx(), world.run.as_str()).unwrap();
    assert_eq!(swept.len(), 1, "{swept:?}");
    assert!(swept[0].contains(&orphan.id().to_string()), "{swept:?}");
    assert!(!orphan.wait().unwrap().success());
    before.assert_restored(&world, "sweep");
}

/// Returns the build that a newly started agent reports, a hash of its file.
#[cfg(target_os = "linux")]
fn build_of_next(environment: &mut dyn tare::env::Environment, world: &World) -> String {
    let mut instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    let reply = ask(instance.as_mut(), &Request::Hello { protocol: PROTOCOL });
    instance.stop(&world.cx()).unwrap();
    let Reply::Hello { build, .. } = reply else {
        panic!("no hello but {reply:?}");
    };
    build
}

#[test]
#[cfg(target_os = "linux")]
fn agent_file_replaced_between_starts_is_not_run() {
    let mut world = World::new("exchanged");
    let file = world.folder.path().join("agent");
    fs::copy(&world.agents.host().path, &file).unwrap();
    world.agents = Agents::only(&file).unwrap();
    let build = world.agents.host().build.clone();
    let traces = world.folder.path().join("traces");
    let drivers: [(&dyn Driver, Params); 3] = [
        (&Host, Params::new()),
        (&Container, Params::new()),
        (&Container, params("rootfs = 'host'")),
    ];
    for (driver, settings) in drivers {
        let arm = arm_id("arm");
        let mut environment = driver.configure(arm, &settings).unwrap();
        let ready = environment.prepare(&world.cx());
        if let (Err(error), "container") = (&ready, driver.id()) {
            crate::world::skip("container", &error.to_string());
            continue;
        }
        assert_eq!(build_of_next(environment.as_mut(), &world), build);
        // Another program replaces the file under the same name.
        let evil = format!("#!/bin/sh\ntouch {}\n", traces.display());
        fs::remove_file(&file).unwrap();
        executable(&file, evil);
        assert_eq!(
            build_of_next(environment.as_mut(), &world),
            build,
            "{settings:?}"
        );
        assert!(!traces.exists(), "{}", driver.id());
        environment.remove(&world.cx()).unwrap();
        let swept = driver.sweep(&world.cx(), world.run.as_str());
        assert!(swept.unwrap().is_empty(), "{}", driver.id());
        assert!(!traces.exists(), "{}", driver.id());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn changed_agent_file_of_the_host_is_refused() {
    let world = World::new("changed");
    let arm = arm_id("arm");
    let mut environment = Host.configure(arm, &Params::new()).unwrap();
    environment.prepare(&world.cx()).unwrap();
    build_of_next(environment.as_mut(), &world);
    // As a measured command of the same user could.
    let file = world.cx().scratch.join("arm.agent");
    let traces = world.folder.path().join("traces");
    let other = world.folder.path().join("other");
    executable(&other, format!("#!/bin/sh\ntouch {}\n", traces.display()));
    fs::rename(&other, &file).unwrap();
    let started = environment.start(&world.cx(), StartMode::Once);
    let error = started.err().unwrap().to_string();
    assert_says(&error, "arm.agent");
    assert!(!traces.exists());
    environment.remove(&world.cx()).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn stopped_agent_is_not_awaited_after_cancel() {
    let world = World::new("stopped");
    let arm = arm_id("host");
    let mut environment = Host.configure(arm, &Params::new()).unwrap();
    let mut instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    let Charged::Process(pid) = instance.charged() else {
        panic!("the host's agent is a process");
    };
    assert!(signal("STOP", pid));
    world.cx().cancel.request();
    // More than any unread pipe holds.
    let call = call("command", Params::new().with("stdin", "x".repeat(4 << 20)));
    let request = run(instance.as_ref(), 1, call, Duration::ZERO, LIMIT);
    let error = instance.channel().send(&request).unwrap_err();
    assert!(
        error.to_string().contains("a stop was requested"),
        "{error}"
    );
    environment.end(instance, &world.cx());
    assert!(labelled(world.run.as_str()).is_empty());
}

/// Returns the cgroups of a process, a line each.
#[cfg(target_os = "linux")]
fn groups(process: u32) -> Vec<String> {
    let text = contents(format!("/proc/{process}/cgroup"));
    text.lines().map(str::to_owned).collect()
}

/// Returns an agent on the host that has answered, with its process; `None` if no cgroup can be created.
#[cfg(target_os = "linux")]
fn in_its_group(world: &World) -> Option<(Box<dyn tare::env::Instance>, u32)> {
    let arm = arm_id("host");
    let mut environment = Host.configure(arm, &Params::new()).unwrap();
    environment.prepare(&world.cx()).unwrap();
    let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
    hello(instance.as_mut());
    let Charged::Process(agent) = instance.charged() else {
        panic!("the host's agent is a process");
    };
    let name = format!("tare-{}+{agent}", world.run);
    if groups(agent).iter().any(|line| line.ends_with(&name)) {
        return Some((instance, agent));
    }
    crate::world::skip("group", "no cgroup without controllers can be made here");
    instance.stop(&world.cx()).unwrap();
    None
}

#[test]
#[cfg(target_os = "linux")]
fn host_cgroup_has_no_controller_and_ends_with_agent() {
    let world = World::new("group");
    let (instance, agent) = needed!(in_its_group(&world));
    let (own, theirs) = (groups(std::process::id()), groups(agent));
    let changed: Vec<&String> = theirs.iter().filter(|line| !own.contains(line)).collect();
    assert_eq!(changed.len(), 1, "{theirs:?}");
    // Without a controller, or with only the freezer; never one that accounts, limits or assigns weights.
    let controllers = changed[0].split(':').nth(1).unwrap();
    let is_harmless =
        controllers.is_empty() || controllers.starts_with("name=") || controllers == "freezer";
    assert!(is_harmless, "{changed:?}");
    assert_eq!(own.len(), theirs.len());
    instance.stop(&world.cx()).unwrap();
    assert_nothing_runs(&world);
}

/// Asserts that no process and no cgroup of the run is left; the files in its folder are removed with the run.
#[cfg(target_os = "linux")]
fn assert_nothing_runs(world: &World) {
    let runs = BTreeSet::from([world.run.to_string()]);
    let nowhere = Path::new("/nonexistent");
    wait_until("nothing of the run is left", || {
        crate::traces::traces(&runs, nowhere).is_empty()
    });
}

/// It has no label, session or parent by which it could be found, and no process is left to look for it.
#[test]
#[cfg(target_os = "linux")]
fn detached_host_command_ends_after_its_run_is_killed() {
    for is_swept in [false, true] {
        let world = World::new("killed-group");
        let (mut instance, agent) = needed!(in_its_group(&world));
        let pid_file = world.folder.path().join("host/pid");
        let script = format!(
            "env -i setsid sh -c 'echo $$ > {0}.part; mv {0}.part {0}; exec sleep 300' & sleep 300",
            pid_file.display()
        );
        let call = CommandCall::new("/bin/sh", ["-c", &script]).to_probe();
        let limit = Duration::from_secs(60);
        let request = run(instance.as_ref(), 1, call, Duration::ZERO, limit);
        instance.channel().send(&request).unwrap();
        wait_until("it has started", || pid_file.exists());
        let left = contents(&pid_file);
        let left = PathBuf::from("/proc").join(left.trim());
        // A stopped agent does not notice its workers' deaths, and killed workers do not clean up.
        assert!(signal("STOP", agent));
        for (process, _) in labelled(world.run.as_str()) {
            if process != agent {
                signal("KILL", process);
            }
        }
        assert!(signal("KILL", agent));
        // A process that has ended without being reaped keeps its entry, but no command line.
        let is_running = || {
            !fs::read(left.join("cmdline"))
                .unwrap_or_default()
                .is_empty()
        };
        assert!(is_running(), "it ended by itself");
        if is_swept {
            drop(instance);
            let swept = Host.sweep(&world.cx(), world.run.as_str()).unwrap();
            assert!(
                swept.iter().any(|line| line.contains("cgroup")),
                "{swept:?}"
            );
            assert!(
                Host.sweep(&world.cx(), world.run.as_str())
                    .unwrap()
                    .is_empty()
            );
        } else {
            instance.stop(&world.cx()).unwrap();
        }
        wait_until("it has ended", || !is_running());
        assert_nothing_runs(&world);
    }
}
