//! What a container of the user's own is compared with: the host's program where it is the same bytes, else the image's
//! files as a bare process, and nothing of either is written to.

use crate::launcher::is_root;
use crate::own::{Bench, has_engine, printed};
use crate::prelude::*;

/// A folder of this test's own on the host's root, whose path is the same in the image.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// The program that the image is to have, and then the one that the host has.
    fn program(&self) -> String {
        self.0.join("work").display().to_string()
    }

    fn put(&self, shell: &str) {
        let program = self.program();
        let _ = fs::remove_file(&program);
        fs::copy(shell, &program).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A place and its program; `None` where it cannot be tried.
fn place(name: &str) -> Option<(Place, String)> {
    if !has_engine() || !is_root() {
        return None;
    }
    let place = Place::new(name);
    let program = place.program();
    Some((place, program))
}

/// A place whose program is one file in an image, which has another program beside it, and another on the host.
fn exchanged(
    name: &str,
    inside: &str,
    beside: &str,
    outside: &str,
) -> Option<(Place, String, Bench)> {
    let (place, program) = place(name)?;
    place.put(inside);
    let bench = Bench::with_programs(name, "ENV OF_IMAGE=1", &[&program, beside]);
    place.put(outside);
    Some((place, program, bench))
}

/// The dossier of a question about a container of the image.
fn asked(product: &Product, bench: &Bench, flags: &[&str], command: &[&str]) -> Value {
    asked_for("100s", product, (bench, flags), command)
}

fn asked_for(
    budget: &str,
    product: &Product,
    (bench, flags): (&Bench, &[&str]),
    command: &[&str],
) -> Value {
    let ask = ["why", "--json", "-", "--budget", budget, "--"];
    let line = [&["docker", "run", "--rm"], flags, &[&bench.image]].concat();
    let arguments = [&ask[..], &line, command].concat();
    product.run(arguments).expect(0).json()
}

fn compared(dossier: &Value) -> String {
    let carried = dossier["why"]["carried"].as_array().unwrap();
    let mut lines = carried.iter().filter_map(Value::as_str);
    let line = lines.find(|line| line.starts_with("compared with: "));
    line.unwrap_or_else(|| panic!("{carried:?}")).to_owned()
}

fn baseline(dossier: &Value) -> &Value {
    let mut arms = dossier["arms"].as_array().unwrap().iter();
    arms.find(|arm| arm["baseline"] == true).unwrap()
}

/// The causes that were confirmed.
fn confirmed(dossier: &Value) -> Vec<&str> {
    let findings = dossier["findings"].as_array().unwrap().iter();
    let confirmed = findings.filter(|finding| finding["status"] == "confirmed");
    confirmed
        .filter_map(|finding| finding["cause"].as_str())
        .collect()
}

#[test]
fn another_program_on_the_host_is_the_userland_and_a_variable_is_found_above_it() {
    // The same name on the host, and another interpreter.
    let (_place, program, bench) = needed!(exchanged("userland", "/bin/bash", "cat", "/bin/dash"));
    let product = Product::new();
    let before = bench.objects();
    let script = "n=3000; case $(cat /proc/$$/environ | cat) in *SLOW_MODE*) n=60000;; esac; i=0; while [ $i -lt $n ]; do i=$((i+1)); done; : > /tare-own-trace";
    let command = [program.as_str(), "-c", script];
    let dossier = asked(&product, &bench, &["-e", "SLOW_MODE=1"], &command);
    let line = compared(&dossier);
    assert!(
        line.contains("the image's own files as a bare process")
            && line.contains("the host has other bytes: ")
            && line.contains("`userland`"),
        "{line}"
    );
    assert_eq!(baseline(&dossier)["id"], "image");
    // The steps stand where the machine leaves the time for them.
    if let Some(rungs) = dossier["ladder"]["rungs"].as_array() {
        assert_eq!(rungs[0]["arm"], "image");
        let title = rungs[0]["title"].as_str().unwrap();
        assert!(title.starts_with("userland"), "{title}");
    }
    // Nothing but the mechanism: the userland is on both sides of the search.
    assert_eq!(
        confirmed(&dossier),
        ["own.env.SLOW_MODE"],
        "{:#}",
        dossier["findings"]
    );
    // What the command wrote went with each arm.
    assert!(!Path::new("/tare-own-trace").exists());
    let script = "if [ -e /tare-own-trace ]; then echo there; fi";
    let line = ["run", "--rm", &bench.image, &program, "-c", script];
    assert_eq!(printed(&line), "");
    assert_eq!(bench.objects(), before);
    product.assert_nothing_left();
}

#[test]
fn a_file_that_is_mounted_over_the_images_gives_way_to_it_below_every_container() {
    let (_place, program, bench) = needed!(exchanged("over", "/bin/bash", "cat", "/bin/dash"));
    let product = Product::new();
    let users = "user:x:2000:2000::/tmp:/bin/sh\n".repeat(20_000);
    product.file("passwd", &users);
    let over = product.folder().join("passwd");
    let over = format!("{}:/etc/passwd:ro", over.display());
    let script = "while read -r line; do :; done < /etc/passwd";
    let flags = ["-v", over.as_str()];
    let dossier = asked(&product, &bench, &flags, &[&program, "-c", script]);
    let line = compared(&dossier);
    assert!(
        line.contains("the image's own files as a bare process"),
        "{line}"
    );
    assert_eq!(
        confirmed(&dossier),
        ["own.mounted./etc/passwd"],
        "{:#}",
        dossier["findings"]
    );
    product.assert_nothing_left();
}

#[test]
fn the_hosts_own_program_is_the_baseline_where_it_is_the_same_bytes() {
    if !has_engine() || !is_root() {
        return;
    }
    let bench = Bench::with_programs("same-bytes", "ENV OF_IMAGE=1", &["sh"]);
    let product = Product::new();
    let script = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; : > /tare-own-trace";
    let flags = ["--cpus", "0.2"];
    let dossier = asked(&product, &bench, &flags, &["sh", "-c", script]);
    let line = compared(&dossier);
    assert!(
        line.contains("the host's own program as a bare process"),
        "{line}"
    );
    assert_eq!(baseline(&dossier)["id"], "host");
    assert_eq!(
        confirmed(&dossier),
        ["own.cpus"],
        "{:#}",
        dossier["findings"]
    );
    assert!(!Path::new("/tare-own-trace").exists());
    product.assert_nothing_left();
}

#[test]
fn a_program_that_reads_other_files_on_the_host_is_compared_with_the_images_files() {
    let (_place, data, bench) = needed!(exchanged("other-data", "/bin/cat", "sh", "/bin/true"));
    let product = Product::new();
    let script = format!("exec 3< '{data}'; i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done");
    let dossier = asked(&product, &bench, &[], &["sh", "-c", &script]);
    let line = compared(&dossier);
    let why = format!("the command reads `{data}`, which is other bytes on the host");
    assert!(line.contains(&why), "{line}");
    assert_eq!(baseline(&dossier)["id"], "image");
    // The host's program does something else there: it is no step of the way either.
    assert!(!line.contains("`userland`"), "{line}");
    product.assert_nothing_left();
}

#[test]
fn a_program_of_a_pipe_that_only_the_host_has_is_no_cost_and_is_pointed_out() {
    if !has_engine() || !is_root() {
        return;
    }
    let bench = Bench::with_programs("pipe", "ENV OF_IMAGE=1", &["sh", "cat"]);
    let product = Product::new();
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sort /bin/sh | cat >/dev/null";
    let command = ["sh", "-c", script];
    let dossier = asked_for("20s", &product, (&bench, &[]), &command);
    let line = compared(&dossier);
    let why = "on the host's files it writes to standard error on one side only";
    assert!(line.contains(why), "{line}");
    assert_eq!(baseline(&dossier)["id"], "image");
    let carried = dossier["why"]["carried"].to_string();
    let said = "written to standard error on both sides, with exit status 0: ";
    assert!(
        carried.contains(said) && carried.contains("sort: not found"),
        "{carried}"
    );
    product.assert_nothing_left();
}

#[test]
fn an_entry_that_takes_its_time_is_left_away_like_any_other_difference() {
    use std::os::unix::fs::PermissionsExt;
    let (_place, program) = needed!(place("entry"));
    fs::write(&program, "#!/bin/sh\nsleep 0.1\nexec \"$@\"\n").unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let bench = Bench::with_programs("entry", "ENV OF_IMAGE=1", &[&program, "sh", "sleep"]);
    let product = Product::new();
    let flags = ["--entrypoint", &program, "-e", "MODE=1"];
    let script = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; echo done";
    let dossier = asked(&product, &bench, &flags, &["sh", "-c", script]);
    assert_eq!(
        confirmed(&dossier),
        ["own.entrypoint"],
        "{:#}",
        dossier["findings"]
    );
    product.assert_nothing_left();
}
