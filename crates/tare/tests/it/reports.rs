//! Reports as a user asks for them: every form by its name, the page of a run, a bundle that is replayed elsewhere, and
//! the page in a real browser.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::product::Product;
use crate::world::skip;

/// A study with a second plain process as an arm.
const STUDY: &str = r#"id = "two-hosts"
title = "Two <hosts> & \"one\" kernel"
[design]
trial = "20ms"
blocks_min = 7
blocks_max = 7
[[arm]]
id = "host"
[[arm]]
id = "again"
driver = "host"
[[workload]]
id = "getppid"
[[workload]]
id = "pipe"
"#;

fn measured() -> Product {
    let product = Product::new();
    let file = product.file("study.toml", STUDY);
    product.run(["run", &file, "--html", "page.html"]).expect(0);
    product
}

#[test]
fn every_form_is_made_by_its_name_and_help_says_what_each_is_for() {
    let product = measured();
    let help = product.run(["report", "--help"]).expect(0).stdout;
    for format in tare::report::FORMATS {
        let name = format.name();
        assert!(help.contains(name), "{name}: {help}");
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(format.about()), "{name}: {help}");
        let told = product
            .run(["report", "--format", name, "-o", &format!("out-{name}")])
            .expect(0);
        let made = product.folder().join(format!("out-{name}"));
        if made.is_dir() {
            let listed: Vec<&str> = told.stdout.lines().collect();
            assert!(!listed.is_empty(), "{name}");
            for line in listed {
                assert!(product.folder().join(line).is_file(), "{line}");
            }
        } else {
            assert_eq!(told.stdout, "", "{name}");
            let to_stdout = product.run(["report", "--format", name]).expect(0);
            let file = std::fs::read_to_string(&made).unwrap();
            assert_eq!(to_stdout.stdout, file, "{name}");
        }
    }
    let unknown = product.run(["report", "--format", "pdf"]).expect(2);
    assert!(unknown.stderr.contains("markdown"), "{unknown}");
    // The page of the run is the page that is made later.
    let [first, later] = ["page.html", "out-html"].map(|name| product.folder().join(name));
    assert_eq!(
        std::fs::read_to_string(first).unwrap(),
        std::fs::read_to_string(later).unwrap()
    );
    let data = std::fs::read_to_string(product.folder().join("out-jsonl")).unwrap();
    let line: Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    assert!(line["value"].as_f64().unwrap() > 0.0, "{line}");
    // Two workloads, three arms with A′, seven blocks.
    assert_eq!(data.lines().count(), 2 * 3 * 7);
    assert!(
        line["slices"]
            .as_array()
            .is_some_and(|slices| slices.len() > 1),
        "getppid is measured in turn: {line}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_found_out_before_anything_is_measured() {
    let product = Product::new();
    let ended = product.run(["run", "--html", "no/such/folder/page.html"]);
    let ended = ended.expect(2);
    assert!(ended.hint().contains("may write"), "{ended}");
    assert!(product.run(["runs"]).expect(0).stdout.is_empty());
}

#[test]
fn a_bundle_is_replayed_elsewhere_bit_for_bit_and_a_changed_one_is_refused() {
    let product = measured();
    product
        .run(["report", "latest", "--bundle", "run.tar"])
        .expect(0);
    product
        .run(["report", "latest", "--bundle", "again.tar"])
        .expect(0);
    let bundle = std::fs::read(product.folder().join("run.tar")).unwrap();
    let again = std::fs::read(product.folder().join("again.tar")).unwrap();
    assert!(bundle == again, "the same run is the same archive");

    let elsewhere = Product::new();
    let replay = |name: &str, bytes: &[u8]| {
        std::fs::write(elsewhere.folder().join(name), bytes).unwrap();
        elsewhere.run(["replay", name])
    };
    let told = replay("run.tar", &bundle).expect(0);
    assert!(told.stdout.contains("bit for bit"), "{told}");
    // What was measured is not in this home, and does not come into it.
    assert!(elsewhere.run(["runs"]).expect(0).stdout.is_empty());

    // A digit of the dossier, with and without its checksum.
    let at = find(&bundle, b"\"wall_s\": ").unwrap() + 10;
    let mut changed = bundle.clone();
    changed[at] = if changed[at] == b'9' { b'8' } else { b'9' };
    let ended = replay("changed.tar", &changed).expect(1);
    assert!(ended.stderr.contains("dossier.json"), "{ended}");
    let (old, new) = (dossier_sum(&bundle), dossier_sum(&changed));
    let sums = find(&changed, old.as_bytes()).unwrap();
    changed[sums..sums + old.len()].copy_from_slice(new.as_bytes());
    let ended = replay("forged.tar", &changed).expect(1);
    assert!(ended.stdout.contains("/cost/wall_s"), "{ended}");

    for (name, bytes) in [("cut.tar", &bundle[..1000]), ("text.tar", b"no archive")] {
        let ended = replay(name, bytes).expect(2);
        assert!(ended.stderr.contains("not a bundle"), "{ended}");
    }
    elsewhere.run(["replay", "absent.tar"]).expect(2);
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// The SHA-256 of the dossier in an archive.
fn dossier_sum(archive: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    use std::io::Read as _;
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().ends_with("dossier.json") {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let digest = Sha256::digest(&bytes);
            let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            return digits.concat();
        }
    }
    panic!("no dossier in the archive");
}

/// What a server answers to these lines.
fn asked(address: &str, lines: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let question = format!("{lines}\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn runs_are_served_to_this_address_and_to_no_other_name_or_site() {
    use std::io::{BufRead as _, BufReader};
    let product = measured();
    let mut command = product.command(["serve"]);
    let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    stderr.read_line(&mut told).unwrap();
    let address = told.split('/').nth(2).unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{told}");
    let get = |path: &str, host: &str, more: &str| {
        asked(
            &address,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}{more}"),
        )
    };
    let answers = (|| {
        let list = get("/", &address, "");
        let run = list
            .split("href=\"/run/")
            .nth(1)?
            .split('"')
            .next()?
            .to_owned();
        Some([
            get(&format!("/run/{run}"), &address, ""),
            get(&format!("/run/{run}.json"), &address, ""),
            get("/run/no-such-run", &address, ""),
            get("/run/..%2f..%2fetc%2fpasswd", &address, ""),
            get("/", "attacker.example", ""),
            get("/", &address, "\r\nOrigin: https://attacker.example"),
            asked(
                &address,
                &format!("POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0"),
            ),
            list,
        ])
    })();
    server.kill().unwrap();
    server.wait().unwrap();
    let answers = answers.expect("the list leads to a run");
    let statuses: Vec<&str> = answers
        .iter()
        .map(|answer| answer.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(
        statuses,
        ["200", "200", "404", "404", "421", "403", "405", "200"]
    );
    let page = std::fs::read_to_string(product.folder().join("page.html")).unwrap();
    assert!(answers[0].ends_with(&page), "{}", answers[0]);
    assert!(answers[1].contains("\"dossier\": 1"), "{}", answers[1]);
    for answer in &answers {
        let head = answer.split("\r\n\r\n").next().unwrap();
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    }
}

/// What a browser makes of a page at this width: its document after scripts ran, and what it complained of.
fn in_a_browser(page: &Path, width: u32, profile: &Path) -> Option<(String, String)> {
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        skip("chromium", "the program `chromium` is not installed");
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stdout), text(&output.stderr)))
}

#[test]
fn a_browser_shows_the_page_without_complaint_and_without_scrolling_sideways() {
    let product = measured();
    let page = product.folder().join("page.html");
    let profile = tempfile::tempdir().unwrap();
    let Some((document, complaints)) = in_a_browser(&page, 1200, profile.path()) else {
        return;
    };
    // The script ran under the page's own policy: it made buttons of the headings and counted the rows.
    assert!(
        document.contains("<button type=\"button\">"),
        "{complaints}"
    );
    assert!(document.contains("2 of 2 shown"), "{document}");
    assert!(!complaints.contains("CONSOLE"), "{complaints}");
    // A copy that measures itself, which the page's policy would forbid.
    let text = std::fs::read_to_string(&page).unwrap();
    let policy = text.find("<meta http-equiv").unwrap();
    let end = policy + text[policy..].find('>').unwrap() + 1;
    let measuring = "<script>for (const box of document.querySelectorAll('details')) box.open = true; const page = document.documentElement; document.title = `${page.scrollWidth} of ${page.clientWidth}`</script></body>";
    let copy = format!("{}{}", &text[..policy], &text[end..]).replace("</body>", measuring);
    let file = product.folder().join("measuring.html");
    std::fs::write(&file, copy).unwrap();
    for width in [500, 800, 1400] {
        let Some((document, _)) = in_a_browser(&file, width, profile.path()) else {
            return;
        };
        let title = document.split("<title>").nth(1).unwrap();
        let title = title.split("</title>").next().unwrap();
        let (needed, there) = title.split_once(" of ").unwrap();
        let [needed, there] = [needed, there].map(|it| it.parse::<u32>().unwrap());
        assert!(needed <= there, "{width}: {title}");
    }
}
