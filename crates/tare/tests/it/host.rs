//! `host`: the driver contract, and what is its own.

use std::time::Duration;

use tare::env::host::Host;
use tare::env::{ChannelError, Driver, StartMode};
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{ArmId, Params};

use crate::contract::contract;
use crate::world::{Snapshot, World, labelled, wait_until};

#[test]
fn host_keeps_the_contract_of_drivers() {
    contract(&Host, &Params::new());
}

#[test]
#[cfg(target_os = "linux")]
fn host_keeps_the_contract_on_one_processor() {
    contract(&Host, &Params::new().with("cpus", 0i64));
}

#[test]
#[cfg(target_os = "linux")]
fn an_agent_on_one_processor_says_so() {
    let world = World::new("cpus");
    let settings = Params::new().with("cpus", "0");
    let arm = ArmId::new("host").unwrap();
    let mut environment = Host.configure(arm, &settings).unwrap();
    let mut instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    let request = Request::Facts {
        paths: Vec::new(),
        tools: Vec::new(),
    };
    instance.channel().send(&request).unwrap();
    let reply = instance.channel().receive(Duration::from_secs(20)).unwrap();
    let Reply::Facts { facts } = reply else {
        panic!("no facts but {reply:?}");
    };
    assert_eq!(facts["cpu.affinity"], "0");
    instance.stop(&world.cx()).unwrap();
}

/// The session that a process belongs to.
#[cfg(target_os = "linux")]
fn session(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // State, parent, group, session.
    fields.split(' ').nth(3).unwrap().parse().unwrap()
}

/// Or the scheduler would have them share a processor with what runs at the user's terminal, and nothing in a
/// container does.
#[test]
#[cfg(target_os = "linux")]
fn two_arms_on_the_host_share_a_session_with_nobody() {
    let world = World::new("sessions");
    let sessions: Vec<u32> = ["host", "a-prime"]
        .into_iter()
        .map(|id| {
            let before = labelled(world.run.as_str());
            let arm = ArmId::new(id).unwrap();
            let mut environment = Host.configure(arm, &Params::new()).unwrap();
            let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
            instance
                .channel()
                .send(&Request::Hello { protocol: PROTOCOL })
                .unwrap();
            let answer = instance.channel().receive(Duration::from_secs(20)).unwrap();
            assert!(matches!(answer, Reply::Hello { .. }), "{answer:?}");
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
fn a_processor_that_does_not_exist_is_told_in_the_agents_own_words() {
    let world = World::new("no-cpu");
    let settings = Params::new().with("cpus", 1023i64);
    let arm = ArmId::new("host").unwrap();
    let mut environment = Host.configure(arm, &settings).unwrap();
    let mut instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    // The request may be written before the agent has ended; the answer never comes.
    let _ = instance
        .channel()
        .send(&Request::Hello { protocol: PROTOCOL });
    let answer = instance.channel().receive(Duration::from_secs(20));
    let Err(ChannelError::Closed(words)) = answer else {
        panic!("answered by {answer:?}");
    };
    assert!(words.contains("processors"), "{words}");
    instance.stop(&world.cx()).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_killed_host_left_behind_is_swept_by_its_label() {
    let world = World::new("sweep");
    let before = Snapshot::take(&world);
    // An agent whose input stays open, as if the host had handed its end to somebody else.
    let mut orphan = std::process::Command::new(world.agents.host().path.clone())
        .arg("serve")
        .env("TARE_RUN", world.run.as_str())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
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
