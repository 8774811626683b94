//! Tests sliced work: which arms pass the turn over a page of memory, and which limits force whole trials.

use crate::prelude::*;

use tare_model::whole_count;

use crate::oci;
use crate::traces::is_computing;

/// A study of two blocks of a syscall in these arms and the host.
fn study(arms: &str) -> String {
    format!(
        "id = \"turns\"\n[design]\nblocks_min = 2\nblocks_max = 2\n[[arm]]\nid = \"host\"\n{arms}\n\
         [[workload]]\nid = \"getppid\"\n"
    )
}

fn arm(id: &str, driver: &str, settings: &str) -> String {
    format!(
        "[[arm]]\nid = \"{id}\"\ndriver = \"{driver}\"\nrequired = true\nsettings = {{ {settings} }}\n"
    )
}

/// Returns for each completed trial its arm and whether its turns went over a page; `whole` if it was not sliced.
fn ways(product: &Product) -> Vec<String> {
    of_slices(product, "by_page", "whole")
}

/// Returns for each completed trial its arm and a field of its report about slices, else `otherwise`.
fn of_slices(product: &Product, field: &str, otherwise: &str) -> Vec<String> {
    product.stored(&format!(
        "SELECT json_extract(cell, '$.arm') || ' ' || \
         ifnull(json_extract(CAST(stdout AS TEXT), '$.sliced.{field}'), '{otherwise}') \
         FROM trial WHERE kind = 'completed' ORDER BY sequence",
    ))
}

/// Returns the available arms that share this machine's kernel and memory.
fn on_this_kernel() -> Vec<String> {
    let world = World::new("in-turn");
    let mut arms = Vec::new();
    if has_container() {
        arms.push(arm("container", "container", ""));
    } else {
        skip("root", "the built-in container cannot be made");
    }
    for runtime in ["runc", "crun"] {
        if oci::is_available(&world, runtime) {
            let settings = format!("runtime = \"{runtime}\"");
            arms.push(arm(runtime, "oci", &settings));
        }
    }
    if is_ready(&world, &DOCKER, "docker") {
        arms.push(arm("docker", "docker", "network = \"none\""));
    }
    arms
}

#[test]
fn arms_on_one_kernel_pass_the_turn_over_a_page() {
    let arms = on_this_kernel();
    let product = Product::new();
    let file = product.file("turns.toml", study(&arms.concat()));
    let ended = product
        .tare(&format!("run {file} --prove 0s"), &[])
        .expect(0);
    let ways = ways(&product);
    assert_eq!(ways.len(), 2 * (2 + arms.len()), "{ways:?}\n{ended}");
    assert!(ways.iter().all(|way| way.ends_with(" 1")), "{ways:?}");
    product.assert_nothing_left();
}

/// The agent finds the limit, whichever process created the cgroup.
#[test]
fn limit_hidden_by_slices_keeps_whole_trials() {
    if !needs_container() {
        return;
    }
    let world = World::new("limits");
    let mut limited = vec![
        ("container", "cpus = 0.5", "has a processor quota"),
        ("container", "memory = \"256m\"", "has a memory limit"),
    ];
    if oci::is_available(&world, "runc") {
        limited.push(("oci", "cpus = 0.5", "has a processor quota"));
        limited.push(("oci", "memory = \"256m\"", "has a memory limit"));
    }
    for (driver, settings, said) in limited {
        let product = Product::new();
        let file = product.file("turns.toml", study(&arm("limited", driver, settings)));
        let ended = product
            .tare(&format!("run {file} --prove 0s"), &[])
            .expect(0);
        let message = format!("whole trials, because `limited` {said}");
        assert!(
            ended.stderr.contains(&message),
            "{driver} {settings}: {ended}"
        );
        let ways = ways(&product);
        assert_eq!(ways.len(), 2 * 3, "{ways:?}");
        assert!(ways.iter().all(|way| way.ends_with(" whole")), "{ways:?}");
    }
}

/// Another user may not write to the page.
#[test]
fn without_a_page_the_turn_goes_over_the_channels() {
    if !needs_container() {
        return;
    }
    if !is_ready(&World::new("channels"), &DOCKER, "docker") {
        return;
    }
    let product = Product::new();
    let arms = arm("other", "docker", "network = \"none\", user = \"65534\"");
    let file = product.file("turns.toml", study(&arms));
    product
        .tare(&format!("run {file} --prove 0s"), &[])
        .expect(0);
    let ways = ways(&product);
    assert_eq!(ways.len(), 2 * 3, "{ways:?}");
    assert!(ways.iter().all(|way| way.ends_with(" 0")), "{ways:?}");
    product.assert_nothing_left();
}

#[test]
fn early_exit_of_servers_sharing_an_end_is_no_loss() {
    if !needs_container() {
        return;
    }
    let product = Product::new();
    let study = study(&arm("container", "container", "")).replace(
        "id = \"getppid\"",
        "id = \"tcp-stream\"\npath = \"arm→host\"\n[[workload]]\nid = \"tcp-round-trip\"\npath = \"arm→host\"",
    );
    let file = product.file("turns.toml", study);
    let ended = product
        .tare(&format!("run {file} --prove 0s"), &[])
        .expect(0);
    ended.does_not_complain("lost");
    let kinds = product.stored("SELECT DISTINCT kind FROM trial");
    assert_eq!(kinds, ["completed"], "{ended}");
    product.assert_nothing_left();
}

/// Returns for each completed sliced trial the processor of its worker.
fn processors(product: &Product) -> Vec<String> {
    of_slices(product, "cpu", "any")
}

/// Returns the processors of this process, in order.
fn own_processors() -> Vec<u32> {
    let status = contents("/proc/self/status");
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cpus = tare_model::facts::cpu_list(list.unwrap().trim()).unwrap();
    cpus.into_iter().map(whole_count).collect()
}

#[test]
fn workers_on_one_processor_all_take_turns_on_it() {
    let product = Product::new();
    let arms = if has_container() {
        arm("container", "container", "")
    } else {
        String::new()
    };
    let file = product.file("turns.toml", study(&arms));
    let only = *own_processors().last().unwrap();
    let inner = product.command(line(&format!("run {file} --prove 0s"), &[]));
    let command = product.under("taskset", &["-c", &only.to_string()], &inner);
    let ended = product.finish(command).expect(0);
    let on = processors(&product);
    assert!(on.len() >= 4, "{on:?}\n{ended}");
    let there = format!(" {only}");
    assert!(on.iter().all(|on| on.ends_with(&there)), "{on:?}\n{ended}");
    assert!(ways(&product).iter().all(|way| way.ends_with(" 1")));
    product.assert_nothing_left();
}

#[test]
fn cpuset_of_one_arm_pins_slices_of_all_arms() {
    if !needs_container() {
        return;
    }
    let own = own_processors();
    let [_, .., last] = own[..] else {
        return skip("two-processors", "there is one processor only");
    };
    let product = Product::new();
    let settings = format!("cpuset = \"{last}\"");
    let file = product.file("turns.toml", study(&arm("pinned", "container", &settings)));
    let ended = product
        .tare(&format!("run {file} --prove 0s"), &[])
        .expect(0);
    let on = processors(&product);
    assert_eq!(on.len(), 2 * 3, "{on:?}\n{ended}");
    let there = format!(" {last}");
    assert!(on.iter().all(|on| on.ends_with(&there)), "{on:?}\n{ended}");
    product.assert_nothing_left();
}

#[test]
fn ctrl_c_in_cycle_ends_workers_and_drops_block() {
    let product = Product::new();
    let study = study("").replace(
        "blocks_min = 2\nblocks_max = 2",
        "trial = \"1s\"\nblocks_min = 3\nblocks_max = 3",
    );
    let file = product.file("turns.toml", study);
    let mut started = Product::start(product.command(line(&format!("run {file} --prove 0s"), &[])));
    product.wait_for_trials(&mut started, 2);
    // The next block of a second is running as soon as a process computes again.
    let run = product.runs().into_iter().next().unwrap();
    wait_until("a worker has its turn", || is_computing(&run));
    started.signal("INT", true);
    let ended = started.wait().expect(4);
    ended.complains("interrupted");
    let stored = product.stored("SELECT kind FROM trial");
    assert!(stored.len() < 6, "it was too late: {ended}");
    assert!(stored.iter().all(|kind| kind == "completed"), "{stored:?}");
    product.assert_nothing_left();
    product.run(["resume"]).expect(0);
    assert_eq!(product.stored("SELECT kind FROM trial").len(), 6);
}
