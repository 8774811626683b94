//! Tests the ways to ask about a user container other than a line and `--like`: inside a running container; and what
//! must not go wrong with them.

use crate::docker::{LIMIT, world};
use crate::prelude::*;
use crate::user_container::{Bench, arm_of, bench, inspected, printed};

use crate::tools_io::texts;

/// A loop of some milliseconds.
pub(crate) const WORK: &str = "i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done";

/// Starts a container of this test.
pub(crate) fn started(bench: &mut Bench, name: &str, flags: &[&str], command: &[&str]) -> String {
    let name = bench.name("container", name);
    let rest = [flags, &[&bench.image], command].concat();
    printed(&format!("run --detach --name {name}"), &rest);
    name
}

#[test]
fn inside_measures_in_running_container_and_cleans_up() {
    let (mut bench, product) = needed!(bench("inside"));
    // Neither the container's user nor its working directory allows writing at the root.
    let flags = words("--user 1000:1000 --workdir /tmp -e PASSWORD=hush-hush");
    let name = started(&mut bench, "inside", flags, &["sleep", "600"]);
    let look = || {
        (
            inspected(&name),
            bench.objects(),
            printed("diff", &[&name]),
            printed(&format!("top {name} -eo pid,args"), &[]),
        )
    };
    let before = look();
    let script = format!("{WORK}; test -n \"$PASSWORD\"; echo done");
    let ask = format!("why --inside {name} --budget 20s --json - -- sh -c");
    let ended = product.tare(&ask, &[&script]).expect(0);
    let dossier = ended.json();
    assert_valid_dossier(&dossier);
    let arms = texts(&dossier["arms"], "id");
    for arm in ["plain", "copy", "docker"] {
        assert!(arms.contains(&arm), "{arm} is none of {arms:?}");
    }
    assert_eq!(look(), before);
    let stored = fs::read(product.store()).unwrap();
    let has = |bytes: &[u8]| bytes.windows(9).any(|part| part == b"hush-hush");
    assert!(!has(&stored) && !has(ended.stderr.as_bytes()) && !has(ended.stdout.as_bytes()));
    product.assert_nothing_left();
}

#[test]
fn inside_unusable_container_is_refused_with_hint() {
    let (mut bench, product) = needed!(bench("closed"));
    let refused = |name: &str, said: &str, hint: &str| {
        product
            .tare(
                &format!("why --inside {name} --budget 9s -- sh -c"),
                &[WORK],
            )
            .expect(3)
            .complains(said)
            .advises(hint);
    };
    refused("nobody-has-this", "there is no container", "docker ps");
    let closed = started(&mut bench, "closed", &["--read-only"], &["sleep", "600"]);
    refused(&closed, "root is read-only", "--like");
    let paused = started(&mut bench, "paused", &[], &["sleep", "600"]);
    printed("pause", &[&paused]);
    refused(&paused, "is paused", "docker unpause");
    printed("unpause", &[&paused]);
    printed("kill", &[&paused]);
    refused(&paused, "does not run", "docker start");
    product.assert_nothing_left();
}

#[test]
fn container_ending_during_inside_reports_leftovers() {
    let (mut bench, product) = needed!(bench("ends"));
    let first = "trap 'exit 7' TERM; while :; do sleep 0.1; done";
    let name = started(&mut bench, "ends", &[], &["sh", "-c", first]);
    let ended = product
        .tare(
            &format!("why --inside {name} --budget 9s -- sh -c"),
            &["kill 1; sleep 9"],
        )
        .expect(5);
    ended.complains("the agent is gone");
    ended.complains("still lies in it");
    // Once the container runs again it is removed.
    printed("start", &[&name]);
    product.run(["clean"]).expect(0);
    assert!(
        !printed("diff", &[&name]).contains("tare-inside"),
        "{ended}"
    );
}

#[test]
fn unusual_run_flags_are_noted_or_refused_with_hint() {
    let (bench, product) = needed!(bench("odd"));
    let before = bench.objects();
    // The engine's socket controls the host: it is not mounted by default.
    let socket = "/var/run/docker.sock:/var/run/docker.sock";
    let command = [bench.image.as_str(), "sh", "-c", WORK];
    let ask = format!("why --budget 15s -- docker run -v {socket} --pid host");
    let ended = product.tare(&ask, &command).expect(0);
    ended.complains("is not shown inside");
    ended.complains("the processes of the machine");
    // Its output goes where its own first process writes, not to the machine's.
    assert!(!ended.stdout.contains("trials failed"), "{ended}");
    product
        .tare("why --apply-check --env container -- true", &[])
        .expect(2)
        .advises("docker run");
    assert_eq!(bench.objects(), before);
    product.assert_nothing_left();
}

#[test]
fn image_without_a_shell_can_be_compared() {
    if !needs_docker() {
        return;
    }
    let bench = Bench::with_programs("bare", "ENV OF_IMAGE=1", &["sleep"]);
    let product = Product::new();
    let command = [bench.image.as_str(), "sleep", "0.1"];
    product
        .tare("why --budget 12s -- docker run -e MODE=1", &command)
        .expect(0)
        .shows("Compared with: the ");
    product.assert_nothing_left();
}

#[test]
fn very_slow_command_gets_lower_bound_and_cause() {
    let (bench, product) = needed!(bench("slow"));
    // No rule knows the variable, and six runs with it would take an hour.
    let script = "case $(cat /proc/$$/environ | cat) in *SLOW_MODE*) sleep 600;; esac; i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done";
    let flags = words("-e OTHER=1 -e SLOW_MODE=1 --shm-size 32m");
    let dossier = bench.cost(&product, &["--budget", "90s"], flags, script);
    let answer = dossier["why"]["answer"].as_str().unwrap();
    assert!(answer.starts_with("At least "), "{answer}");
    // The depth of the bisection depends on the time.
    let first = &dossier["findings"][0];
    let claim = first["claim"].as_str().unwrap();
    assert!(claim.contains("`SLOW_MODE`"), "{first:#}");
    product.assert_nothing_left();
}

#[test]
fn study_arm_with_run_line_matches_the_line() {
    let world = needed!(world("own-line"));
    let bench = Bench::new("line", "ENV OF_IMAGE=1");
    let line = format!(
        "docker run --rm --cpus 0.5 -e 'MODE=a b' {} sh -c true",
        bench.image
    );
    let own = UserContainer {
        settings: Params::new().with("run", line).with("without", "cpus"),
        ..UserContainer::default()
    };
    arm_of(&world, &own, |found| {
        assert_eq!(found["HostConfig"]["NanoCpus"], 0);
        let variables = found["Config"]["Env"].as_array().unwrap();
        assert!(variables.iter().any(|it| it == "MODE=a b"), "{variables:?}");
    });
    let nowhere = params("run = 'docker run --no-such-flag nobody/has-this'");
    let mut environment = DOCKER.configure(arm_id("like"), &nowhere).unwrap();
    let error = environment.prepare(&world.cx()).unwrap_err();
    assert!(error.to_string().contains("no-such-flag"), "{error}");
    environment.remove(&world.cx()).unwrap();
}

#[test]
fn plain_run_uses_the_client_path_and_cleans_up() {
    let (bench, _) = needed!(bench("typed"));
    let world = needed!(world("typed"));
    let cx = world.cx();
    let before = bench.objects();
    let line = format!("docker run --rm -e MODE=1 {}", bench.image);
    let settings = Params::new().with("run", line);
    let driver = tare::env::find("docker").unwrap();
    let mut environment = driver.configure(arm_id("typed"), &settings).unwrap();
    let script = "cat; echo $MODE >&2; exit 3";
    let argv = ["sh", "-c", script].map(str::to_owned);
    let ran = environment.as_typed(&cx, &argv, b"hello\n", LIMIT);
    let ran = ran.unwrap().unwrap();
    assert_eq!((ran.status, ran.printed), (3, 8), "{ran:?}");
    assert!(
        ran.start_ns > 0 && ran.run_ns > 0 && ran.end_ns > 0,
        "{ran:?}"
    );
    environment.remove(&cx).unwrap();
    assert_eq!(bench.objects(), before);
}

#[test]
fn stdin_reaches_every_run_of_interactive_line() {
    let (bench, product) = needed!(bench("input"));
    let script = "n=0; while read line; do n=$((n+1)); done; test $n = 300";
    let asked = |input: &[u8]| {
        let ask = "why --budget 20s --json - -- docker run --rm -i";
        let inner = product.command(line(ask, &[&bench.image, "sh", "-c", script]));
        let redirecting = ["-c", "exec \"$0\" \"$@\" <\"$INPUT\""];
        let mut outer = product.under("sh", &redirecting, &inner);
        outer.env("INPUT", product.file("input", input));
        product.finish(outer)
    };
    let dossier = asked("line\n".repeat(300).as_bytes()).expect(0).json();
    assert_valid_dossier(&dossier);
    let carried = dossier["why"]["carried"].to_string();
    let expected = "standard input: 1500 bytes, given to every run";
    assert_says(&carried, expected);
    asked(b"\xff\xfe").expect(2).complains("is text of up to");
    product.assert_nothing_left();
}
