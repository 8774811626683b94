//! Tests services of compose files, alone and with their dependencies.
//!
//! The plugin's answers are as it prints them; the engine is real.

use crate::prelude::*;
use crate::user_container::{Bench, bench, printed};
use crate::user_container_ways::WORK;

/// Creates programs that answer questions about a compose file with shell scripts, and otherwise run the real ones;
/// returns the search path with them in front.
fn with_programs(product: &Product, scripts: &[(&str, &str)]) -> String {
    let folder = product.folder().join("bin");
    fs::create_dir_all(&folder).unwrap();
    for (name, script) in scripts {
        executable(&folder.join(name), script);
    }
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", folder.display())
}

/// Creates a `docker` that answers `compose` with a script, and otherwise runs the real one; returns the search path.
pub(crate) fn docker_with_compose(product: &Product, compose: &str) -> String {
    let real = which_docker();
    let log = product.folder().join("asked");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >>'{}'\nif [ \"$1\" = compose ]; then\n{compose}\nfi\nexec '{real}' \"$@\"\n",
        log.display()
    );
    with_programs(product, &[("docker", &script)])
}

fn which_docker() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut folders = path.split(':');
    let found = folders.find(|folder| Path::new(folder).join("docker").is_file());
    format!("{}/docker", found.unwrap_or("/usr/bin"))
}

#[test]
fn compose_service_is_read_as_the_plugin_resolves_it() {
    let (bench, product) = needed!(bench("compose"));
    let mark = format!("{}-shop", bench.mark);
    let config = json!({
        "name": mark,
        "services": {"job": {
            "image": bench.image, "command": ["sh", "-c", WORK], "entrypoint": null,
            "environment": {"PASSWORD": "hush-hush", "MODE": "batch"}, "shm_size": "33554432",
            "networks": {"default": null}
        }},
        "networks": {"default": {"name": format!("{mark}_default"), "ipam": {}}}
    });
    let printed = product.file("config.json", config.to_string());
    let path = docker_with_compose(&product, &format!("cat '{printed}'; exit 0"));
    let before = bench.objects();
    let mut command = product.command(line("why --compose shop.yml job --budget 12s", &[]));
    command.env("PATH", &path);
    let ended = product.finish(command).expect(0);
    ended.complains("the variable `MODE`");
    ended.complains("shop_default");
    assert_eq!(bench.objects(), before);
    let asked = contents(product.folder().join("asked"));
    let first = asked.lines().next().unwrap();
    assert!(
        first.starts_with("compose -f shop.yml ") && first.ends_with(" config --format json"),
        "{asked}"
    );
    // Neither in an argument nor in the store nor in the output.
    let stored = fs::read(product.store()).unwrap();
    let has = |bytes: &[u8]| bytes.windows(9).any(|part| part == b"hush-hush");
    assert!(!has(asked.as_bytes()) && !has(&stored) && !has(ended.stdout.as_bytes()));
    product.assert_nothing_left();
}

#[test]
fn unreadable_compose_file_is_refused_with_hint() {
    if !needs_docker() {
        return;
    }
    let product = Product::new();
    let ask = |compose: &str, service: &str| {
        let path = docker_with_compose(&product, compose);
        let ask = format!("why --compose shop.yml {service} --budget 8s");
        let mut command = product.command(line(&ask, &[]));
        command.env("PATH", &path);
        product.finish(command).expect(3)
    };
    assert!(ask(NO_PLUGIN, "job").hint().contains("docker-compose-v2"));
    let wrong = "echo 'yaml: line 3: mapping values are not allowed' >&2; exit 15";
    ask(wrong, "job").complains("mapping values are not allowed");
    ask(
        "echo '{\"services\": {\"web\": {\"image\": \"x\"}}}'; exit 0",
        "job",
    )
    .complains("no service `job`")
    .advises("web");
    ask("echo 'no JSON'; exit 0", "job").complains("compose plugin");
    let built = "echo '{\"name\": \"shop\", \"services\": {\"job\": {\"build\": {\"context\": \"/x\"}}}}'; exit 0";
    ask(built, "job").advises("build job");
    product.assert_nothing_left();
}

/// Behaves like a missing compose plugin.
const NO_PLUGIN: &str = "echo \"docker: 'compose' is not a docker command.\" >&2; exit 1";

#[test]
fn standalone_compose_replaces_plugin_unless_old() {
    let (bench, product) = needed!(bench("standalone"));
    docker_with_compose(&product, NO_PLUGIN);
    let config = json!({"name": "shop", "services": {"job": {
        "image": bench.image, "command": ["sh", "-c", WORK], "environment": {"MODE": "batch"}
    }}});
    let file = product.file("config.json", config.to_string());
    let ask = |script: &str| {
        let path = with_programs(&product, &[("docker-compose", script)]);
        let mut command = product.command(words("why --compose shop.yml job --budget 25s"));
        command.env("PATH", &path);
        product.finish(command)
    };
    ask(&format!("#!/bin/sh\ncat '{file}'\n"))
        .expect(0)
        .complains("the variable `MODE`");
    // The answer of version 1, which has no JSON.
    let old = "#!/bin/sh\nprintf 'Validate and view the Compose file.\n\nUsage: config [options]\n' >&2; exit 1\n";
    ask(old)
        .expect(3)
        .complains("version 2")
        .advises("docker-compose-v2");
    product.assert_nothing_left();
}

/// A project of a job and its dependency, asked about with its compose file.
struct Shop {
    bench: Bench,
    product: Product,
    path: String,
}

impl Shop {
    /// `job` works only if `db` and its other name can be resolved.
    fn new(name: &str, db: &Value) -> Self {
        let programs = ["sh", "sleep", "cat", "touch", "getent"];
        let bench = Bench::with_programs(name, "ENV OF_IMAGE=1", &programs);
        let product = Product::new();
        let script = format!("getent hosts db store >/dev/null || exit 9; {WORK}");
        let mark = format!("{}-shop", bench.mark);
        let mut config = json!({
            "name": mark,
            "services": {
                "db": db,
                "job": {
                    "image": bench.image, "command": ["sh", "-c", script],
                    "environment": {"MODE": "batch"}, "networks": {"default": null},
                    "depends_on": {"db": {"condition": "service_healthy", "required": true}}
                }
            },
            "networks": {"default": {"name": format!("{mark}_default"), "ipam": {}}},
            "volumes": {"data": {"name": format!("{mark}_data")}}
        });
        config["services"]["db"]["image"] = bench.image.as_str().into();
        config["services"]["db"]["networks"] = json!({"default": {"aliases": ["store"]}});
        let file = product.file("config.json", config.to_string());
        let path = docker_with_compose(&product, &format!("cat '{file}'; exit 0"));
        Self {
            bench,
            product,
            path,
        }
    }

    fn command(&self, more: &[&str]) -> Command {
        let ask = line("why --compose shop.yml job --budget 25s", more);
        let mut command = self.product.command(ask);
        command.env("PATH", &self.path);
        command
    }

    fn ask(&self, more: &[&str]) -> Ended {
        self.product.finish(self.command(more))
    }

    /// Returns the running dependencies.
    fn services(&self) -> String {
        let of_image = format!("ancestor={}", self.bench.image);
        let filters = ["--filter", &of_image, "--filter", "name=-service-db"];
        printed("ps --format {{.Names}}", &filters)
    }
}

#[test]
fn compose_dependencies_run_only_during_the_question() {
    if !needs_docker() {
        return;
    }
    // It is healthy only some time after its start, by a file that it wrote into its initially empty volume.
    let work = "cat /data/mine && exit 4; sleep 1; touch /data/ready; sleep 600";
    let mut shop = Shop::new(
        "depends",
        &json!({
            "command": ["sh", "-c", work],
            "healthcheck": {"test": ["CMD-SHELL", "cat /data/ready"], "interval": "500ms", "retries": 40},
            "volumes": [{"type": "volume", "source": "data", "target": "/data", "volume": {}}]
        }),
    );
    let volume = format!("{}-shop_data", shop.bench.mark);
    shop.bench.keep("volume", &volume);
    printed("volume create", &[&volume]);
    let mount = format!("{volume}:/data");
    let command = [shop.bench.image.as_str(), "sh", "-c", "touch /data/mine"];
    printed(&format!("run --rm -v {mount}"), &command);
    let before = shop.bench.objects();
    let ended = shop.ask(&["--with-dependencies"]).expect(0);
    ended.complains("`db`, which it depends on");
    ended.complains("the variable `MODE`");
    ended.does_not_complain("own network");
    assert_eq!(shop.bench.objects(), before);
    shop.ask(&[])
        .expect(5)
        .complains("NOT started: `db`")
        .complains("--with-dependencies")
        .complains("exited with status 9");
    assert_eq!(shop.bench.objects(), before);
    shop.product.assert_nothing_left();
}

#[test]
fn exited_or_unhealthy_dependency_is_reported() {
    if !needs_docker() {
        return;
    }
    let sick = json!({
        "command": ["sleep", "600"],
        "healthcheck": {"test": ["CMD", "cat", "/none"], "interval": "200ms", "retries": 2}
    });
    for (name, db, said) in [
        (
            "ended",
            json!({"command": ["sh", "-c", "exit 3"]}),
            "ended with status 3",
        ),
        ("sick", sick, "is unhealthy"),
    ] {
        let shop = Shop::new(name, &db);
        let before = shop.bench.objects();
        shop.ask(&["--with-dependencies"])
            .expect(3)
            .complains(said)
            .advises("--like");
        assert_eq!(shop.bench.objects(), before);
        shop.product.assert_nothing_left();
    }
}

#[test]
fn dependencies_of_killed_question_are_swept() {
    if !needs_docker() {
        return;
    }
    // It is never healthy, so the question waits for it.
    let shop = Shop::new(
        "killed",
        &json!({
            "command": ["sleep", "600"],
            "healthcheck": {"test": ["CMD", "cat", "/none"], "interval": "300s", "retries": 2}
        }),
    );
    let before = shop.bench.objects();
    let mut started = Product::start(shop.command(&["--with-dependencies"]));
    wait_until("the service runs", || {
        assert!(started.is_running());
        !shop.services().is_empty()
    });
    started.signal("KILL", false);
    started.wait();
    assert_ne!(shop.services(), "");
    shop.product.run(["clean"]).expect(0);
    assert_eq!(shop.bench.objects(), before);
    shop.product.assert_nothing_left();
    // Ctrl-C meanwhile ends it at once.
    let mut started = Product::start(shop.command(&["--with-dependencies"]));
    wait_until("the service runs", || {
        assert!(started.is_running());
        !shop.services().is_empty()
    });
    started.signal("INT", false);
    started.wait().expect(4);
    assert_eq!(shop.bench.objects(), before);
    shop.product.assert_nothing_left();
}

/// The engine's events of created containers, written down from now on: it remembers only the last 256 of all users.
struct CreatedContainers {
    client: std::process::Child,
    file: PathBuf,
}

impl CreatedContainers {
    fn follow(product: &Product) -> Self {
        let file = product.folder().join("events");
        let client = Command::new("docker")
            .args(["events", "--since", &now_s()])
            .args(["--filter", "event=create", "--filter", "type=container"])
            .args([
                "--format",
                "{{.Actor.Attributes.name}} {{.Actor.Attributes.image}}",
            ])
            .stdout(fs::File::create(&file).unwrap())
            .spawn()
            .unwrap();
        Self { client, file }
    }

    /// The images of the arm's containers by the instances' numbers, once those of two have been seen.
    fn images(&self, arm: &str) -> BTreeMap<String, String> {
        let named = |line: &str| {
            let (name, image) = line.split_once(' ')?;
            let number = name.rsplit_once(&format!("-{arm}-"))?.1;
            Some((number.to_owned(), image.to_owned()))
        };
        let seen = || -> BTreeMap<String, String> {
            let text = contents(&self.file);
            text.lines().filter_map(named).collect()
        };
        wait_until("the engine says what it created", || seen().len() >= 2);
        seen()
    }
}

impl Drop for CreatedContainers {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

/// Seconds since the epoch.
fn now_s() -> String {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    since.as_secs_f64().to_string()
}

#[test]
fn services_of_a_compose_file_are_nodes_in_order() {
    let (head, product) = needed!(bench("nodes-head"));
    let worker = Bench::new("nodes-worker", "ENV OF_IMAGE=2");
    let service = |bench: &Bench| json!({"image": bench.image, "command": ["sh", "-c", WORK], "networks": {"default": null}});
    let config = json!({
        "name": "lab",
        "services": {"head": service(&head), "worker": service(&worker)},
        "networks": {"default": {"name": "lab_default", "ipam": {}}}
    });
    let answer = product.file("config.json", config.to_string());
    let path = docker_with_compose(&product, &format!("cat '{answer}'; exit 0"));
    let study = |path: &str| {
        format!(
            "id = \"nodes\"\n[design]\nblocks_min = 6\nblocks_max = 6\n\
             [[arm]]\nid = \"host\"\n[[arm]]\nid = \"cluster\"\ndriver = \"docker\"\n\
             settings = {{ compose = \"lab.yml head worker\" }}\n\
             [[workload]]\nid = \"tcp-round-trip\"\npath = \"{path}\"\n"
        )
    };
    let run = |path_of_nodes: &str| {
        let file = product.file("nodes.toml", study(path_of_nodes));
        let mut command = product.command(line(&format!("run {file} --json -"), &[]));
        command.env("PATH", &path);
        product.finish(command)
    };
    let created = CreatedContainers::follow(&product);
    let dossier = run("node-1→node-2").expect(0).json();
    let cells = dossier["cells"].as_array().unwrap();
    let is_measured = |cell: &Value| cell["arm"] == "cluster" && cell["ratio"].is_object();
    assert!(cells.iter().any(is_measured), "{cells:#?}");
    let made = created.images("cluster");
    drop(created);
    assert_eq!(made["1"], head.image, "{made:?}");
    assert_eq!(made["2"], worker.image, "{made:?}");
    let ended = run("node-2→node-3");
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(shown.contains("names 2 services"), "{ended}");
    product.assert_nothing_left();
}
