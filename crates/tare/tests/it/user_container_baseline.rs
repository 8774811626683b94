//! Tests the baseline of a user container: the host's program if it is the same bytes, otherwise the image's files as
//! a bare process. Neither is written to.

use crate::prelude::*;
use crate::sides::confirmed;
use crate::user_container::{Bench, printed};

/// This test's folder on the host's root, with the same path in the image.
struct HostFolder(PathBuf);

impl HostFolder {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Path of the program: first the image's, then the host's.
    fn program(&self) -> String {
        self.0.join("work").display().to_string()
    }

    fn put(&self, shell: &str) {
        let program = self.program();
        let _ = fs::remove_file(&program);
        fs::copy(shell, &program).unwrap();
    }
}

impl Drop for HostFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a place and its program; `None` if the test cannot run.
fn place(name: &str) -> Option<(HostFolder, String)> {
    if !needs_docker() || !needs_root() {
        return None;
    }
    let place = HostFolder::new(name);
    let program = place.program();
    Some((place, program))
}

/// Returns a place whose program is a file of an image, which also has the program `beside`; the host's file is
/// another program.
fn exchanged(
    name: &str,
    inside: &str,
    beside: &str,
    outside: &str,
) -> Option<(HostFolder, String, Bench)> {
    let (place, program) = place(name)?;
    place.put(inside);
    let bench = Bench::with_programs(name, "ENV OF_IMAGE=1", &[&program, beside]);
    place.put(outside);
    Some((place, program, bench))
}

/// Asks about a container of the image; returns the dossier.
fn asked(product: &Product, bench: &Bench, flags: &[&str], command: &[&str]) -> Value {
    asked_for("100s", product, (bench, flags), command)
}

fn asked_for(
    budget: &str,
    product: &Product,
    (bench, flags): (&Bench, &[&str]),
    command: &[&str],
) -> Value {
    let ask = format!("why --json - --budget {budget} -- docker run --rm");
    let rest = [flags, &[&bench.image], command].concat();
    product.tare(&ask, &rest).expect(0).json()
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

#[test]
fn different_host_program_is_userland_below_variable() {
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
    // The steps are present if the machine leaves enough time for them.
    if let Some(rungs) = dossier["ladder"]["rungs"].as_array() {
        assert_eq!(rungs[0]["arm"], "image");
        let title = rungs[0]["title"].as_str().unwrap();
        assert!(title.starts_with("userland"), "{title}");
    }
    // Only the mechanism: both sides of the search have the same userland.
    assert_eq!(
        confirmed(&dossier),
        ["own.env.SLOW_MODE"],
        "{:#}",
        dossier["findings"]
    );
    // Files that the command wrote disappeared with each arm.
    assert!(!Path::new("/tare-own-trace").exists());
    let script = "if [ -e /tare-own-trace ]; then echo there; fi";
    assert_eq!(
        printed("run --rm", &[&bench.image, &program, "-c", script]),
        ""
    );
    assert_eq!(bench.objects(), before);
    product.assert_nothing_left();
}

#[test]
fn mount_over_image_file_is_not_in_the_baseline() {
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
    assert_says(&line, "the image's own files as a bare process");
    assert_eq!(
        confirmed(&dossier),
        ["own.mounted./etc/passwd"],
        "{:#}",
        dossier["findings"]
    );
    product.assert_nothing_left();
}

#[test]
fn identical_host_program_is_the_baseline() {
    if !needs_docker() || !needs_root() {
        return;
    }
    let bench = Bench::with_programs("same-bytes", "ENV OF_IMAGE=1", &["sh"]);
    let product = Product::new();
    let script = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; : > /tare-own-trace";
    let flags = ["--cpus", "0.2"];
    let dossier = asked(&product, &bench, &flags, &["sh", "-c", script]);
    let line = compared(&dossier);
    assert_says(&line, "the host's own program as a bare process");
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
fn program_reading_other_host_files_uses_image_files() {
    let (_place, data, bench) = needed!(exchanged("other-data", "/bin/cat", "sh", "/bin/true"));
    let product = Product::new();
    let script = format!("exec 3< '{data}'; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done");
    let dossier = asked_for("20s", &product, (&bench, &[]), &["sh", "-c", &script]);
    let line = compared(&dossier);
    let why = format!("the command reads `{data}`, which is other bytes on the host");
    assert_says(&line, &why);
    assert_eq!(baseline(&dossier)["id"], "image");
    // The host's program does something else there, so it is no step of the ladder either.
    assert_lacks(&line, "`userland`");
    product.assert_nothing_left();
}

#[test]
fn host_only_program_in_pipe_is_flagged_not_a_cost() {
    if !needs_docker() || !needs_root() {
        return;
    }
    let bench = Bench::with_programs("pipe", "ENV OF_IMAGE=1", &["sh", "cat"]);
    let product = Product::new();
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sort /bin/sh | cat >/dev/null";
    let command = ["sh", "-c", script];
    let dossier = asked_for("20s", &product, (&bench, &[]), &command);
    let line = compared(&dossier);
    let why = "on the host's files it writes to standard error on one side only";
    assert_says(&line, why);
    assert_eq!(baseline(&dossier)["id"], "image");
    let carried = dossier["why"]["carried"].to_string();
    let expected = "written to standard error on both sides, with exit status 0: ";
    assert_says(&carried, expected);
    assert_says(&carried, "sort: not found");
    product.assert_nothing_left();
}

#[test]
fn slow_entrypoint_is_confirmed_as_a_difference() {
    let (_place, program) = needed!(place("entry"));
    executable(program.as_ref(), "#!/bin/sh\nsleep 0.1\nexec \"$@\"\n");
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
