//! Tests that a question about a container reaches nothing that the container's own `docker run` would not: listeners
//! on the host's loopback, on a user's network and in shared folders stay untouched.

use crate::prelude::*;
use crate::user_container::{Bench, bench, docker, printed};
use crate::user_container_compose::docker_with_compose;
use crate::user_container_ways::{WORK, started};

mod oracle;
mod outside;

use oracle::{Oracle, Peer};

/// A bench with `perl`, with which a script reaches all kinds of listeners.
fn perl_bench(name: &str) -> Option<Bench> {
    let found = Command::new("perl")
        .arg("-v")
        .stdout(Stdio::null())
        .status();
    if !found.is_ok_and(|status| status.success()) {
        skip("perl", "the host has no perl to reach listeners with");
        return None;
    }
    needs_docker()
        .then(|| Bench::with_programs(name, "ENV OF_IMAGE=1", &["sh", "sleep", "cat", "perl"]))
}

/// Asserts that the command ran inside and outside.
#[track_caller]
fn assert_ran(ended: &Ended) {
    ended.complains("at the first look");
}

#[test]
fn oracle_notices_each_way_to_reach_it() {
    if perl_bench("oracle").is_none() {
        return;
    }
    let mut oracle = Oracle::new("own");
    let script = oracle.script("127.0.0.1");
    let status = Command::new("perl").args(["-e", &script]).status().unwrap();
    assert!(status.success());
    let all = [
        "TCP",
        "UDP",
        "abstract socket",
        "socket in a folder",
        "named pipe",
        "file",
    ];
    assert_eq!(oracle.touched(), all);
}

#[test]
fn question_about_a_line_reaches_no_listener() {
    let mut bench = needed!(perl_bench("reach-line"));
    let product = Product::new();
    let mut oracle = Oracle::new("line");
    let peer = Peer::new(&mut bench);
    let script = oracle.script(&peer.address);
    let volume = format!("{0}:{0}", oracle.shown());
    let before = bench.objects();
    for network in ["none", "bridge", peer.network.as_str()] {
        let ask = format!("why --budget 9s -- docker run --network {network} -v {volume}");
        let ended = product.tare(&ask, &[&bench.image, "perl", "-e", &script]);
        assert_ran(&ended);
        assert_eq!(oracle.touched(), [""; 0], "{network}: {ended}");
        assert!(!peer.is_reached_from_other_network(), "{network}: {ended}");
    }
    assert_eq!(bench.objects(), before);
    product.assert_nothing_left();
}

#[test]
fn container_or_service_question_reaches_no_listener() {
    let mut bench = needed!(perl_bench("reach-like"));
    let product = Product::new();
    let mut oracle = Oracle::new("like");
    let peer = Peer::new(&mut bench);
    let script = oracle.script(&peer.address);
    let volume = format!("{0}:{0}:ro", oracle.shown());
    let flags = ["--network", peer.network.as_str(), "-v", &volume];
    let name = started(&mut bench, "like", &flags, &["sleep", "600"]);
    let ask = format!("why --budget 9s --like {name} -- perl -e");
    let ended = product.tare(&ask, &[&script]);
    assert_ran(&ended);
    let config = json!({"name": "reach", "services": {"job": {
        "image": bench.image, "command": ["perl", "-e", script.replace('$', "$$")],
        "networks": {"default": null}, "volumes": [{"type": "bind", "source": oracle.shown(), "target": oracle.shown()}]
    }}, "networks": {"default": {"name": peer.network, "external": true}}});
    let file = product.file("config.json", config.to_string());
    let path = docker_with_compose(&product, &format!("cat '{file}'; exit 0"));
    let mut command = product.command(line("why --compose shop.yml job --budget 9s", &[]));
    command.env("PATH", path);
    let ended = product.finish(command);
    assert_ran(&ended);
    assert_eq!(oracle.touched(), [""; 0], "{ended}");
    assert!(!peer.is_reached_from_other_network(), "{ended}");
    product.assert_nothing_left();
}

#[test]
fn networks_and_sockets_are_joined_on_demand() {
    let mut bench = needed!(perl_bench("reach-join"));
    let product = Product::new();
    let mut oracle = Oracle::new("join");
    let peer = Peer::new(&mut bench);
    let script = oracle.script(&peer.address);
    let volume = format!("{0}:{0}", oracle.shown());
    let line = ["--network", &peer.network, "-v", &volume, &bench.image];
    let rest = [&line[..], &["perl", "-e", &script]].concat();
    let ended = product.tare("why --budget 9s --join-networks -- docker run", &rest);
    ended.complains("it reaches the networks, sockets and named pipes of your container");
    assert!(peer.is_reached(), "{ended}");
    let touched = oracle.touched();
    // A named pipe and a socket belong to the machine even if their folder is read-only.
    assert!(
        touched.contains(&"socket in a folder"),
        "{touched:?}: {ended}"
    );
    assert!(
        !touched.contains(&"TCP") && !touched.contains(&"file"),
        "{touched:?}: {ended}"
    );
    product.assert_nothing_left();
}

#[test]
fn command_needing_network_gets_hint_for_flag() {
    let mut bench = needed!(perl_bench("reach-needs"));
    let product = Product::new();
    let peer = Peer::new(&mut bench);
    let script = "socket A,2,1,0;connect A,pack('S n C4 x8',2,7777,split/\\./,$ARGV[0]) or exit 9";
    let ask = "why --budget 9s -- docker run --network";
    // In a copy, the loopback is not that of the listener.
    let line = [
        &peer.network,
        &bench.image,
        "perl",
        "-e",
        script,
        "127.0.0.1",
    ];
    product
        .tare(ask, &line)
        .expect(5)
        .complains("exited with status 9")
        .advises("--join-networks")
        .advises(&peer.network);
    product.assert_nothing_left();
}

#[test]
fn protections_apply_to_every_arm_until_loosened() {
    let (bench, product) = needed!(bench("reach-kept"));
    let ask = |options: &[&str]| {
        let line = "-- docker run --user 65534 --cap-drop ALL --network none --pids-limit 64 \
                    --security-opt no-new-privileges --cpus 1";
        let command = [bench.image.as_str(), "sh", "-c", WORK];
        let rest = [options, words(line), &command].concat();
        product.tare("why --budget 9s --dry-run", &rest)
    };
    let line = |ended: &Ended, begin: &str| -> String {
        let mut lines = ended.stdout.lines();
        let found = lines.find_map(|line| line.strip_prefix(begin));
        found
            .unwrap_or_else(|| panic!("{begin}: {ended}"))
            .to_owned()
    };
    let ended = ask(&[]).expect(0);
    let kept = line(&ended, "kept in every run: ");
    for flag in [
        "--user 65534",
        "--cap-drop ALL",
        "--network none",
        "--pids-limit 64",
        "no-new-privileges",
    ] {
        assert!(kept.contains(flag), "{flag}: {ended}");
    }
    assert!(
        line(&ended, "removed to compare: ").contains("`--cpus 1`"),
        "{ended}"
    );
    assert!(
        line(&ended, "as a bare process too: ").contains("--user"),
        "{ended}"
    );
    let ended = ask(&["--loosen", "user,pids-limit"]).expect(0);
    let removed = line(&ended, "removed to compare: ");
    assert_says(&removed, "--user");
    assert_says(&removed, "--pids-limit");
    ask(&["--loosen", "memory"]).expect(3).advises("pids-limit");
    let usage = product.tare("why --loosen all --env container -- true", &[]);
    assert!(usage.expect(2).hint().contains("docker run"));
    product.assert_nothing_left();
}

#[test]
fn arm_containers_have_protections_of_original() {
    let (bench, product) = needed!(bench("reach-arms"));
    let ask =
        "why --budget 20s -- docker run --user 65534 --cap-drop ALL --network none --pids-limit 64";
    let script = format!("{WORK}; {WORK}; {WORK}");
    let ask = line(ask, &[&bench.image, "sh", "-c", &script]);
    let mut running = Product::start(product.command(ask));
    let of_image = format!("ancestor={}", bench.image);
    let mut seen = Vec::new();
    // Each container seen meanwhile has all four.
    while running.is_running() {
        let names = docker(&["ps", "--quiet", "--filter", &of_image]);
        for name in lossy(&names.stdout).lines() {
            let format = "{{.Config.User}} {{.HostConfig.CapDrop}} {{.HostConfig.NetworkMode}} {{.HostConfig.PidsLimit}}";
            let found = docker(&["inspect", "--format", format, name]);
            if found.status.success() {
                seen.push(lossy(&found.stdout).trim().to_owned());
            }
        }
    }
    let ended = running.wait();
    assert_ran(&ended);
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["65534 [ALL] none 72"], "{ended}");
    product.assert_nothing_left();
}

#[test]
fn second_writer_of_a_volume_is_refused_by_name() {
    let (mut bench, product) = needed!(bench("reach-writer"));
    let volume = bench.name("volume", "db");
    printed("volume create", &[&volume]);
    let mount = format!("{volume}:/data");
    let name = started(&mut bench, "db", &["-v", &mount], &["sleep", "600"]);
    let script = format!("echo x >/data/log && {WORK}");
    let ask = format!("why --budget 9s -- docker run -v {mount}");
    product
        .tare(&ask, &[&bench.image, "sh", "-c", &script])
        .complains("the copy may be torn")
        .complains(&format!("while the container `{name}` wrote to it"));
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let upper = format!("{}:/up", folder.path().display());
    let other = started(&mut bench, "up", &["-v", &upper], &["sleep", "600"]);
    let work = ["sh", "-c", "touch /data/theirs"];
    let sharing = "why --share-writable --budget 9s";
    let ask = |mount: &str| {
        let ask = format!("{sharing} -- docker run -v {mount} {}", bench.image);
        product.tare(&ask, &work)
    };
    let like = format!("{sharing} --like {name} --");
    let bind = format!("{}:/data", below.display());
    for (ended, who) in [
        (ask(&mount), &name),
        (product.tare(&like, &work), &name),
        (ask(&bind), &other),
    ] {
        ended
            .expect(2)
            .complains("second writer")
            .advises(&format!("stop the container `{who}` first"));
    }
    assert!(!below.join("theirs").exists());
    let shown = printed("exec", &[&name, "sh", "-c", "echo /data/*"]);
    assert_eq!(shown, "/data/*");
    // Once it is stopped there is no other writer.
    printed("rm --force", &[&name]);
    let ended = ask(&mount);
    ended.does_not_complain("second writer");
    let file = fs::File::create(below.join("held")).unwrap();
    let mut holder = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(file)
        .spawn()
        .unwrap();
    printed("rm --force", &[&other]);
    let ended = ask(&bind).expect(2);
    let held = format!("process {}", holder.id());
    drop(holder.stdin.take());
    holder.wait().unwrap();
    ended.complains(&held);
    product.assert_nothing_left();
}

#[test]
fn dry_run_starts_no_container_and_leaves_no_object() {
    let (mut bench, product) = needed!(bench("reach-dry"));
    let folder = tempfile::tempdir().unwrap();
    let network = bench.name("network", "dry");
    printed("network create", &[&network]);
    let before = bench.objects();
    let mount = format!("{}:/data", folder.path().display());
    let line = format!(
        "-- docker run -v {mount} --network {network} {}",
        bench.image
    );
    let ask = format!("why --dry-run --share-writable {line} touch /data/ran");
    let ended = product.tare(&ask, &[]).expect(0);
    for words in [
        "command: touch /data/ran",
        "how often: ",
        "left if the power fails",
        &network,
    ] {
        ended.shows(words);
    }
    assert!(!folder.path().join("ran").exists());
    assert_eq!(bench.objects(), before);
    product
        .tare("run --dry-run quick", &[])
        .expect(0)
        .shows("arm: host");
    assert!(!product.store().exists(), "a store was made");
    product.assert_nothing_left();
}
