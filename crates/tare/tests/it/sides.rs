//! Tests `tare why --a … --b …`: which difference between two sides makes the second one slower.

use crate::prelude::*;

/// Returns the confirmed causes.
pub(crate) fn confirmed(json: &Value) -> Vec<&str> {
    let findings = json["findings"].as_array().unwrap().iter();
    findings
        .filter(|finding| finding["status"] == "confirmed")
        .map(|finding| finding["cause"].as_str().unwrap())
        .collect()
}

#[test]
fn argument_that_makes_a_command_slower_is_confirmed() {
    let product = Product::new();
    let script = "i=0; while [ $i -lt $1 ]; do i=$((i+1)); done";
    let side = |count: u32, more: &str| format!("sh -c '{script}' {more} {count}");
    let (a, b) = (side(20_000, "x"), side(80_000, "y"));
    let arguments = [
        "why", "--json", "-", "--budget", "90s", "--a", &a, "--b", &b,
    ];
    let ended = product.run(arguments).expect(0);
    let json = ended.json();
    assert_eq!(confirmed(&json), ["own.argument.2"], "{ended}");
    product.assert_nothing_left();
}

/// An image of a program with its library, built from files of this machine.
struct Image(String);

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", "-f", &self.0]).output();
    }
}

impl Image {
    /// The library does `count` additions.
    fn with_library(name: &str, count: u64) -> Self {
        let place = tempfile::tempdir().unwrap();
        let app = place.path().join("root/app");
        fs::create_dir_all(&app).unwrap();
        let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
        let body =
            format!("void work(void) {{ volatile long i; for (i = 0; i < {count}L; i++); }}\n");
        write("library.c", &body);
        write(
            "program.c",
            "void work(void);\nint main(void) { work(); return 0; }\n",
        );
        let compile = |arguments: &[&str]| {
            let mut cc = Command::new("cc");
            cc.args(arguments).current_dir(place.path());
            // It links Rust programs too.
            assert!(cc.status().unwrap().success(), "{arguments:?}");
        };
        let library = "root/app/libwork.so";
        let soname = "-Wl,-soname,libwork.so";
        compile(&["-shared", "-fPIC", soname, "-o", library, "library.c"]);
        compile(&[
            "-o",
            "root/app/work",
            "program.c",
            library,
            "-Wl,-rpath,/app",
        ]);
        let listed = Command::new("ldd").arg(app.join("work")).output().unwrap();
        for word in lossy(&listed.stdout).split_whitespace() {
            let is_systems = word.starts_with('/') && !word.contains("libwork");
            if is_systems {
                let to = place.path().join("root").join(&word[1..]);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(Path::new(word), to).unwrap();
            }
        }
        let mut archive = tar::Builder::new(Vec::new());
        archive
            .append_dir_all("", place.path().join("root"))
            .unwrap();
        let file = place.path().join("image.tar");
        fs::write(&file, archive.into_inner().unwrap()).unwrap();
        let name = format!("tare-test-sides-{}:{name}", std::process::id());
        let made = Command::new("docker")
            .args(["import", file.to_str().unwrap(), &name])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        Self(name)
    }
}

#[test]
fn library_that_differs_in_two_images_is_confirmed() {
    if !needs_docker() {
        return;
    }
    let fast = Image::with_library("fast", 20_000_000);
    let slow = Image::with_library("slow", 100_000_000);
    let product = Product::new();
    let side = |image: &Image| format!("docker:image={}", image.0);
    let (a, b) = (side(&fast), side(&slow));
    let sides = ["--a", &a, "--b", &b, "--", "/app/work"];
    let arguments = [&["why", "--json", "-", "--budget", "100s"][..], &sides].concat();
    let ended = product.run(arguments).expect(0);
    let json = ended.json();
    assert_eq!(confirmed(&json), ["own.file./app/libwork.so"], "{ended}");
    product.assert_nothing_left();
}
