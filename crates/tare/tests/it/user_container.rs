//! Tests `tare why` with user containers: copied completely, never touched.
//!
//! The images are imported from host files, as `fixtures/planted/own/image.sh` packs them. The engine's objects of a
//! test are compared before and after with the engine's own client.

use crate::prelude::*;

use tare::env::user_container::ArmRequest;

use crate::docker::{leftovers, world};
use crate::why::confirmed;

/// This test's image, and its helpers that create and remove containers.
pub(crate) struct Bench {
    pub(crate) image: String,
    /// Part of the names of all its objects.
    pub(crate) mark: String,
    /// Objects to remove at the end: kind and name.
    made: Vec<(&'static str, String)>,
}

/// Returns an image that sets one variable, and the product, if there is an engine.
pub(crate) fn bench(name: &str) -> Option<(Bench, Product)> {
    needs_docker().then(|| (Bench::new(name, "ENV OF_IMAGE=1"), Product::new()))
}

pub(crate) fn docker(arguments: &[&str]) -> Output {
    Command::new("docker").args(arguments).output().unwrap()
}

/// Returns the client's output; panics if it fails.
#[track_caller]
pub(crate) fn printed(words: &str, rest: &[&str]) -> String {
    let arguments = line(words, rest);
    let output = docker(&arguments);
    let text = lossy(&output.stdout);
    let stderr_text = lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr_text}");
    text.trim().to_owned()
}

impl Bench {
    /// With these changes to the image's configuration.
    pub(crate) fn new(name: &str, changes: &str) -> Self {
        Self::with_programs(name, changes, &["sh", "sleep", "cat", "touch"])
    }

    /// With only these programs in it.
    pub(crate) fn with_programs(name: &str, changes: &str, programs: &[&str]) -> Self {
        let mark = format!("{name}-{}", std::process::id());
        let image = format!("tare-own-test/{mark}");
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/planted/own/image.sh"
        );
        let status = Command::new("sh")
            .args([script, &image])
            .args(programs)
            .env("CHANGES", format!("--change={changes}"))
            .status()
            .unwrap();
        assert!(status.success());
        Self {
            image: image.clone(),
            mark,
            made: vec![("image", image)],
        }
    }

    pub(crate) fn name(&mut self, kind: &'static str, name: &str) -> String {
        let name = format!("tare-own-test-{}-{name}", self.mark);
        self.keep(kind, &name);
        name
    }

    /// Asks `tare why` with these options about a script in a container of the image with these flags; returns the
    /// dossier, whose outcome must be an overhead.
    pub(crate) fn cost(
        &self,
        product: &Product,
        options: &[&str],
        flags: &[&str],
        script: &str,
    ) -> Value {
        let docker = words("-- docker run --rm");
        let command = [self.image.as_str(), "sh", "-c", script];
        let rest = [options, docker, flags, &command].concat();
        let dossier = product.tare("why --json -", &rest).expect(0).json();
        assert_valid_dossier(&dossier);
        assert_eq!(dossier["why"]["outcome"], "cost", "{:#}", dossier["why"]);
        dossier
    }

    /// Registers an object for removal at the end.
    pub(crate) fn keep(&mut self, kind: &'static str, name: &str) {
        self.made.push((kind, name.to_owned()));
    }

    /// Returns the engine's objects of this bench: all containers of its image, and objects with its mark. Others
    /// belong to other tests and users.
    pub(crate) fn objects(&self) -> Vec<String> {
        let (of_image, named) = (
            format!("ancestor={}", self.image),
            format!("name={}-", self.mark),
        );
        let images = format!("reference=*/{}", self.mark);
        let mut all = Vec::new();
        for (kind, question, filter) in [
            ("container", "ps --all", &of_image),
            ("container", "ps --all", &named),
            ("volume", "volume ls", &named),
            ("network", "network ls", &named),
            ("image", "image ls", &images),
        ] {
            let lines = printed(&format!("{question} --quiet --filter {filter}"), &[]);
            all.extend(lines.lines().map(|line| format!("{kind} {line}")));
        }
        all.sort();
        all.dedup();
        all
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for (kind, name) in self.made.iter().rev() {
            docker(&[kind, "rm", "--force", name]);
        }
    }
}

pub(crate) fn inspected(name: &str) -> Value {
    let all: Value = serde_json::from_str(&printed("inspect", &[name])).unwrap();
    all[0].clone()
}

pub(crate) fn wish<'a>(world: &'a World, source: Source<'a>) -> ContainerRequest<'a> {
    ContainerRequest {
        source,
        folder: world.folder.path(),
        shares: Shares::ReadOnly,
        with_dependencies: false,
        context: None,
        consent: tare::env::user_container::Consent::default(),
    }
}

/// Returns the notes on the copies for another attempt, if there are any.
pub(crate) fn notes_of_copies(
    driver: &dyn Driver,
    cx: &Context<'_>,
    wish: ContainerRequest<'_>,
    own: &UserContainer,
) -> Option<String> {
    let settings = &own.settings;
    let shown = driver
        .take_copies(cx, &ArmRequest { wish, settings })
        .unwrap()?;
    let lines: Vec<&str> = shown.iter().map(|line| line.now.as_str()).collect();
    Some(lines.join("\n"))
}

pub(crate) fn taken(world: &World, source: Source<'_>) -> UserContainer {
    DOCKER.take(&world.cx(), &wish(world, source)).unwrap()
}

/// Returns the only running container of this world's run.
pub(crate) fn container_of(world: &World) -> String {
    let label = format!("label=tare.run={}", world.run);
    printed("ps --quiet --filter", &[&label])
}

/// Starts an arm like this, and hands over the engine's description of its container.
pub(crate) fn arm_of(world: &World, own: &UserContainer, look: impl FnOnce(Value)) {
    let mut environment = DOCKER.configure(arm_id("like"), &own.settings).unwrap();
    environment.prepare(&world.cx()).unwrap();
    let instance = environment.resident(world);
    look(inspected(&container_of(world)));
    environment.end(instance, &world.cx());
    assert_eq!(leftovers(world, &DOCKER), [""; 0]);
}

/// Forty flags that an engine accepts on any machine, as a line.
fn forty_flags() -> Vec<&'static str> {
    "--add-host=a:192.0.2.1 --blkio-weight=0 --cap-add=SYS_NICE --cap-drop=NET_RAW --cpu-period=100000 \
     --cpu-quota=90000 --cpu-shares=512 --cpuset-cpus=0 --device=/dev/null:/dev/zip:r --dns=192.0.2.53 \
     --dns-option=timeout:1 --dns-search=example --domainname=home -e=PLAIN=1 --env=SECOND=2 --expose=99 \
     --group-add=5 --health-cmd=true --hostname=own --init --ipc=shareable --label=a=b --log-driver=json-file \
     --log-opt=max-size=1m --memory=256m --memory-reservation=64m --memory-swap=300m --memory-swappiness=10 --oom-score-adj=100 \
     --pids-limit=200 --publish=127.0.0.1:0:99 --read-only --restart=on-failure:3 --security-opt=no-new-privileges \
     --shm-size=32m --stop-signal=SIGINT --sysctl=net.core.somaxconn=99 --tmpfs=/scratch:size=1m --ulimit=nofile=500:600 \
     --user=1000:1000 --workdir=/tmp --cgroupns=host"
        .split(' ')
        .filter(|flag| !flag.is_empty())
        .collect()
}

#[test]
fn forty_run_flags_round_trip_through_the_arm() {
    let world = needed!(world("own-flags"));
    let mut bench = Bench::new("flags", "ENV OF_IMAGE=1");
    let flags = forty_flags();
    assert!(flags.len() >= 40, "{}", flags.len());
    let made = bench.name("container", "flags");

    let command = [&flags[..], &[&bench.image, "sleep", "9"]].concat();
    printed(&format!("create --name {made}"), &command);
    let expected = inspected(&made);
    let before = bench.objects();
    let typed = line("docker run -it", &command).into_iter();
    let typed: Vec<String> = typed.map(str::to_owned).collect();
    let own = taken(&world, Source::Line(&typed));
    assert_eq!(bench.objects(), before, "something was made to find it out");
    assert_eq!(
        (own.argv.join(" ").as_str(), own.directory.as_str()),
        ("sleep 9", "/tmp")
    );
    arm_of(&world, &own, |arm| {
        let changed = [
            "AutoRemove",
            "RestartPolicy",
            "PortBindings",
            "Mounts",
            "ConsoleSize",
            "ContainerIDFile",
            "PidsLimit",
        ];
        let fields = expected["HostConfig"].as_object().unwrap();
        for (name, value) in fields {
            let is_changed = changed.contains(&name.as_str());
            let nothing =
                |value: &Value| value.is_null() || *value == json!([]) || *value == json!({});
            let arms = &arm["HostConfig"][name.as_str()];
            assert!(
                is_changed || value == arms || (nothing(value) && nothing(arms)),
                "{name}: {value} became {arms}"
            );
        }
        for name in ["User", "WorkingDir", "Hostname", "Domainname", "StopSignal"] {
            assert_eq!(arm["Config"][name], expected["Config"][name], "{name}");
        }
        let env = arm["Config"]["Env"].as_array().unwrap();
        for text in expected["Config"]["Env"].as_array().unwrap() {
            assert!(env.contains(text), "{text} is missing in {env:?}");
        }
        assert_eq!(arm["HostConfig"]["RestartPolicy"]["Name"], "no");
        // With room for the agent in addition to the command.
        assert_eq!(arm["HostConfig"]["PidsLimit"], 208);
        assert_eq!(arm["Config"]["Labels"]["a"], Value::Null);
    });
}

#[test]
fn omitted_settings_are_absent_from_arms_container() {
    let world = needed!(world("own-without"));
    let bench = Bench::new("without", "ENV OF_IMAGE=1");
    let line = format!(
        "docker run --cpus 0.5 --dns 192.0.2.1 -e A=1 -e B=2 -e LD_LIBRARY_PATH=/mine {} sleep 9",
        bench.image
    );
    let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let mut own = taken(&world, Source::Line(&line));
    let ids: Vec<&str> = own.differences.iter().map(|it| it.id.as_str()).collect();
    for id in [
        "cpus",
        "dns",
        "env.A",
        "env.B",
        "env.OF_IMAGE",
        // Where the line says that files are, like any other variable.
        "env.LD_LIBRARY_PATH",
        "engine.seccomp",
    ] {
        assert!(ids.contains(&id), "{id} is none of {ids:?}");
    }
    let away: Vec<String> = ["cpus", "env.A", "env.OF_IMAGE", "engine.seccomp"]
        .map(str::to_owned)
        .into();
    own.settings = tare::env::user_container::without(&own.settings, &away);
    arm_of(&world, &own, |arm| {
        assert_eq!(arm["HostConfig"]["NanoCpus"], 0);
        assert_eq!(arm["HostConfig"]["Dns"], json!(["192.0.2.1"]));
        assert_eq!(
            arm["HostConfig"]["SecurityOpt"],
            json!(["seccomp=unconfined"])
        );
        let env = arm["Config"]["Env"].to_string();
        assert!(
            env.contains("B=2") && !env.contains("A=1") && !env.contains("OF_IMAGE=1"),
            "{env}"
        );
    });
}

#[test]
fn own_leaves_container_volume_and_secrets_unchanged() {
    if !needs_docker() {
        return;
    }
    let _turn = turn();
    let mut bench = Bench::new("kept", "ENV OF_IMAGE=1");
    let volume = bench.name("volume", "kept");
    let name = bench.name("container", "kept");
    printed("volume create", &[&volume]);
    let mount = format!("{volume}:/data");
    let work = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; cat /data/mine";
    let flags = "-e PASSWORD=hush-hush --label x=y -p 127.0.0.1:0:80";
    let command = [bench.image.as_str(), "sh", "-c", "echo mine >/data/mine"];
    printed(&format!("run --name {name} -v {mount} {flags}"), &command);
    let (before, all) = (inspected(&name), bench.objects());
    let product = Product::new();
    let ask = |more: &[&str], command: &str| {
        let rest = [more, &["--", "sh", "-c", command]].concat();
        product.tare(&format!("why --like {name} --budget 30s"), &rest)
    };
    let ended = ask(&[], work).expect(0);
    ended.shows("Compared with: the ");
    ended.complains("READ-ONLY");
    // It writes to a copy by default.
    let writing = "test ! -e /data/theirs.0; echo theirs >/data/theirs; ";
    let copied = ask(&[], &format!("{writing}{work}")).expect(0);
    copied.complains("`/data` is a COPY of");
    assert!(!copied.stdout.contains("READ-ONLY"), "{copied}");
    assert_eq!(inspected(&name), before);
    assert_eq!(bench.objects(), all);
    let stored = fs::read(product.store()).unwrap();
    let has = |bytes: &[u8]| bytes.windows(9).any(|part| part == b"hush-hush");
    assert!(!has(&stored) && !has(ended.stdout.as_bytes()) && !has(ended.stderr.as_bytes()));
    let command = [bench.image.as_str(), "sh", "-c", "cat /data/*"];
    let shown = printed(&format!("run --rm -v {mount}"), &command);
    assert_eq!(shown, "mine");
    product.assert_nothing_left();
}

#[test]
fn uncatalogued_difference_is_found_and_confirmed() {
    let (bench, product) = needed!(bench("found"));
    // Only the program reads the variable: no rule knows it. So slow that what is left of the cost is narrow on a busy
    // machine too.
    let script = "n=3000; test -n \"$(cat /proc/self/environ)\"; case $(cat /proc/$$/environ | cat) in *SLOW_MODE*) n=240000;; esac; i=0; while [ $i -lt $n ]; do i=$((i+1)); done";
    let options = ["--apply-check", "--budget", "150s"];
    let flags = "--dns 192.0.2.1 -e OTHER=1 -e SLOW_MODE=1 --shm-size 32m --pids-limit 99";
    let dossier = bench.cost(&product, &options, words(flags), script);
    let first = confirmed(&dossier, "own.env.SLOW_MODE");
    assert!(
        first["advice"].as_str().unwrap().contains("-e SLOW_MODE"),
        "{first:#}"
    );
    // The line itself was changed, and the report says how without the variable's value.
    let applied = &dossier["why"]["applied"];
    assert_eq!(applied["is_gone"], true, "{applied:#}");
    assert_eq!(
        applied["change"], "your line without `-e SLOW_MODE=…`",
        "{applied:#}"
    );
    let others = dossier["findings"].as_array().unwrap().iter().skip(1);
    assert!(
        others
            .clone()
            .all(|finding| finding["status"] != "confirmed"),
        "{:#}",
        dossier["findings"]
    );
    product.assert_nothing_left();
}

#[test]
fn own_invalid_question_is_refused_with_hint() {
    let (bench, product) = needed!(bench("refused"));
    let refused = |arguments: &str, code: i32, said: &str, hint: &str| {
        let ended = product
            .tare("why --budget 9s", &line(arguments, &[]))
            .expect(code);
        ended.complains(said);
        assert!(
            hint.is_empty() || ended.hint().contains(hint),
            "{hint}: {ended}"
        );
    };
    let image = bench.image.as_str();
    for (arguments, code, said, hint) in tare_model::rows! {
        ("--like nobody-has-this -- true", 3, "there is no container `nobody-has-this`", "docker ps"),
        ("-- docker run --no-such-flag IMAGE", 3, "no-such-flag", ""),
        ("-- docker run no/such:image true", 3, "not on this engine", "docker pull"),
        ("-- docker run IMAGE", 2, "has no command", "behind"),
        ("--set cpus=1 -- docker run IMAGE true", 2, "`cpus` has no effect", "docker run"),
        ("-- docker run IMAGE sleep 99", 5, "did not end within", "--like"),
        ("-- docker run IMAGE no-such-program", 5, "no-such-program", ""),
        ("-- docker run IMAGE sh -c false", 5, "exited with status 1", ""),
        ("-- podman run IMAGE true", 3, "podman", "podman"),
    } {
        refused(&arguments.replace("IMAGE", image), code, said, hint);
    }
    product.assert_nothing_left();
}
