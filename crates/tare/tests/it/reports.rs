//! Reports as a user asks for them: every form by its name, the page of a run, a bundle that is replayed elsewhere, and
//! the page in a real browser.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::product::{Product, two_hosts};
use crate::world::skip;

fn study() -> String {
    let title = r#"title = "Two <hosts> & \"one\" kernel""#;
    two_hosts(title, &["getppid", "pipe"])
}

fn measured() -> Product {
    let product = Product::new();
    let file = product.file("study.toml", study());
    product.run(["run", &file, "--html", "page.html"]).expect(0);
    product
}

#[test]
fn every_form_is_made_by_its_name_and_help_says_what_each_is_for() {
    let product = measured();
    let help = product.run(["report", "--help"]).expect(0).stdout;
    for format in tare::report::FORMATS {
        let name = format.name;
        assert!(help.contains(name), "{name}: {help}");
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(format.about), "{name}: {help}");
        let told = product.run(["report", "--format", name, "-o", &format!("out-{name}")]);
        let is_left_out = match name {
            "png" => !cfg!(feature = "png") || tare::cx::fonts::faces().is_empty(),
            "parquet" => !cfg!(feature = "parquet"),
            _ => false,
        };
        if is_left_out {
            assert!(told.expect(2).stderr.contains("has no "), "{name}");
            continue;
        }
        let told = told.expect(0);
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
            let file = std::fs::read(&made).unwrap();
            assert_eq!(to_stdout.stdout, String::from_utf8_lossy(&file), "{name}");
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
    let (old, new) = (
        sum_of("dossier.json", &bundle),
        sum_of("dossier.json", &changed),
    );
    let sums = find(&changed, old.as_bytes()).unwrap();
    changed[sums..sums + old.len()].copy_from_slice(new.as_bytes());
    let ended = replay("forged.tar", &changed).expect(1);
    assert!(ended.stdout.contains("/cost/wall_s"), "{ended}");

    // Of a version that is not known here.
    let later = forged(
        &bundle,
        "dossier.json",
        b"\"dossier\": 1",
        b"\"dossier\": 2",
    );
    let ended = replay("later.tar", &later).expect(2);
    assert!(ended.stderr.contains("of version 2"), "{ended}");
    assert!(ended.hint().contains("newer"), "{ended}");

    for (name, bytes) in [("cut.tar", &bundle[..1000]), ("text.tar", b"no archive")] {
        let ended = replay(name, bytes).expect(2);
        assert!(ended.stderr.contains("not a bundle"), "{ended}");
    }
    elsewhere.run(["replay", "absent.tar"]).expect(2);
}

/// The archive with other bytes of the same length instead of these in one of its files, and with the checksum of that.
fn forged(archive: &[u8], name: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let before = sum_of(name, archive);
    let mut changed = archive.to_vec();
    while let Some(at) = find(&changed, old) {
        changed[at..at + new.len()].copy_from_slice(new);
    }
    let after = sum_of(name, &changed);
    let at = find(&changed, before.as_bytes()).unwrap();
    changed[at..at + after.len()].copy_from_slice(after.as_bytes());
    changed
}

#[test]
fn a_bundle_is_measured_again_and_its_costs_stand_beside_those_found_here() {
    let product = measured();
    product.run(["report", "--bundle", "run.tar"]).expect(0);
    let bundle = std::fs::read(product.folder().join("run.tar")).unwrap();
    let elsewhere = Product::new();
    elsewhere.file("run.tar", &bundle);

    // Its study is a program, which whoever published it wrote.
    let refused = elsewhere.run(["run", "--again", "run.tar"]).expect(2);
    assert!(refused.hint().contains("--trust"), "{refused}");
    assert_eq!(elsewhere.run(["runs"]).expect(0).stdout, "");
    let chosen = ["run", "--again", "run.tar", "--trust", "--workload", "pipe"];
    elsewhere.run(chosen).expect(2);
    elsewhere.run(["run", "--trust"]).expect(2);

    let told = elsewhere.run(["run", "--again", "run.tar", "--trust"]);
    let told = told.expect(0).stdout;
    for said in [
        "there: run ",
        "here: run ",
        "here ÷ there",
        "of 2 costs are the same",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    let dossier = |product: &Product| product.run(["show", "--json"]).expect(0).json();
    let (there, here) = (dossier(&product), dossier(&elsewhere));
    assert_eq!(
        there["study"], here["study"],
        "the same plan in the same order"
    );
    assert_ne!(there["run"], here["run"]);

    // Whoever began it need not be asked, unless the bundle holds another study under its name.
    product.run(["run", "--again", "run.tar"]).expect(0);
    let changed = forged(
        &bundle,
        "store.db",
        b"\"id\":\"getppid\"",
        b"\"id\":\"integer\"",
    );
    product.file("forged.tar", &changed);
    let refused = product.run(["run", "--again", "forged.tar"]).expect(2);
    assert!(refused.stderr.contains("was not begun here"), "{refused}");
    product.file("cut.tar", &bundle[..2_000]);
    product
        .run(["run", "--again", "cut.tar", "--trust"])
        .expect(2);
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// The SHA-256 of a file in an archive.
fn sum_of(name: &str, archive: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    use std::io::Read as _;
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().ends_with(name) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let digest = Sha256::digest(&bytes);
            let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            return digits.concat();
        }
    }
    panic!("no {name} in the archive");
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

/// A `tare serve` of a home; ended when dropped.
struct Server {
    process: std::process::Child,
    address: String,
}

impl Server {
    fn of(product: &Product) -> Self {
        use std::io::{BufRead as _, BufReader};
        let mut command = product.command(["serve"]);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = String::new();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        stderr.read_line(&mut told).unwrap();
        let address = told.split('/').nth(2).unwrap_or_default().to_owned();
        let server = Self { process, address };
        assert!(server.address.starts_with("127.0.0.1:"), "{told}");
        server
    }

    /// The whole answer to a question as a browser of this machine asks it.
    fn get(&self, path: &str) -> String {
        self.ask(path, &self.address, "")
    }

    fn ask(&self, path: &str, host: &str, more: &str) -> String {
        asked(
            &self.address,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}{more}"),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn status(answer: &str) -> &str {
    answer.split_whitespace().nth(1).unwrap()
}

/// What stands behind each `before` up to the next quote.
fn between<'a>(answer: &'a str, before: &'a str) -> Vec<&'a str> {
    let parts = answer.split(before).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

#[test]
fn runs_are_served_to_this_address_and_to_no_other_name_or_site() {
    let product = measured();
    let server = Server::of(&product);
    let list = server.get("/");
    let run = between(&list, "href=\"/run/")[0].to_owned();
    let answers = [
        server.get(&format!("/run/{run}")),
        server.get(&format!("/run/{run}.json")),
        server.get("/run/no-such-run"),
        server.get("/run/..%2f..%2fetc%2fpasswd"),
        server.ask("/", "attacker.example", ""),
        server.ask("/", &server.address, "\r\nOrigin: https://attacker.example"),
        asked(
            &server.address,
            &format!(
                "POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 0",
                server.address
            ),
        ),
        server.ask("/beside?a=latest&b=latest", "attacker.example", ""),
        server.ask(
            "/history?cell=x",
            &server.address,
            "\r\nSec-Fetch-Site: cross-site",
        ),
        server.get("/?find=%zz"),
        server.get("/beside?a=latest&b=no-such-run"),
        list,
    ];
    let statuses: Vec<&str> = answers.iter().map(|answer| status(answer)).collect();
    assert_eq!(
        statuses,
        [
            "200", "200", "404", "404", "421", "403", "405", "421", "403", "200", "404", "200"
        ]
    );
    let page = std::fs::read_to_string(product.folder().join("page.html")).unwrap();
    assert!(answers[0].ends_with(&page), "{}", answers[0]);
    assert!(answers[1].contains("\"dossier\": 1"), "{}", answers[1]);
    for answer in &answers {
        let head = answer.split("\r\n\r\n").next().unwrap();
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    }
}

#[test]
fn stored_runs_are_searched_set_beside_each_other_and_followed_over_time() {
    let product = measured();
    let file = product.file("other.toml", study().replace("two-hosts", "once-more"));
    product.run(["run", &file]).expect(0);
    let server = Server::of(&product);
    let all = server.get("/");
    let runs: Vec<&str> = between(&all, "rowheader\"><a href=\"/run/");
    assert_eq!(runs.len(), 2, "{all}");
    for (words, n) in [
        ("ONCE-more", 1),
        ("getppid", 2),
        ("getppid+nothing", 0),
        ("%3Cb%3E", 0),
    ] {
        let found = server.get(&format!("/?find={words}"));
        assert_eq!(
            between(&found, "rowheader\"><a href=\"/run/").len(),
            n,
            "{words}: {found}"
        );
        assert!(found.contains(&format!("{n} of 2 runs")), "{found}");
        assert!(!found.contains("<b>"), "{found}");
    }
    let beside = server.get(&format!("/beside?a={}&b={}", runs[1], runs[0]));
    assert!(beside.contains("of 2 costs are the same"), "{beside}");
    let history = between(&beside, "href=\"/history?")[0].replace("&amp;", "&");
    let history = server.get(&format!("/history?{history}"));
    assert_eq!(status(&history), "200");
    assert!(history.contains("2 runs measured it"), "{history}");
    for run in &runs {
        assert!(
            history.contains(&format!("href=\"/run/{run}\"")),
            "{history}"
        );
    }
    assert!(history.contains("<svg"), "{history}");
    let metrics = server.get(&format!("/metrics/{}", runs[0]));
    assert_eq!(between(&metrics, "href=\"/history?").len(), 2, "{metrics}");
    for unknown in ["x", "%5B%5D", ""] {
        let none = server.get(&format!("/history?cell={unknown}"));
        assert!(none.contains("No stored run measured it"), "{none}");
    }
    for page in [all.as_str(), &beside, &history, &metrics] {
        assert!(!page.contains("<script"), "{page}");
        assert!(
            !page.contains("http-equiv=\"refresh\""),
            "nothing is at work: {page}"
        );
    }
}

#[test]
fn a_run_at_work_is_followed_without_script_until_it_ends() {
    let product = Product::new();
    let file = product.file("study.toml", study());
    let mut started = Product::start(product.command(["run", &file, "--blocks", "5000"]));
    product.wait_for_trials(&mut started, 12);
    let server = Server::of(&product);
    let at_work = server.get("/run/latest");
    assert!(at_work.contains("http-equiv=\"refresh\""), "{at_work}");
    assert!(at_work.contains("(at work)"), "{at_work}");
    let so_far = server.get("/run/latest?so-far");
    assert!(so_far.contains("INCOMPLETE"), "{so_far}");
    assert!(!so_far.contains("http-equiv=\"refresh\""), "{so_far}");
    started.signal("INT", false);
    started.wait().expect(4);
    let ended = server.get("/run/latest");
    assert!(!ended.contains("http-equiv=\"refresh\""), "{ended}");
    assert!(ended.contains("INCOMPLETE"), "{ended}");
}

/// What a browser makes of a page at this width: its document after scripts ran, and what it complained of.
fn in_a_browser(page: &Path, width: u32, profile: &Path) -> Option<[String; 2]> {
    let opened = crate::browser::opened(page, profile, width, &[]);
    if opened.is_none() {
        skip("chromium", "the program `chromium` is not installed");
    }
    opened
}

#[test]
fn a_browser_shows_the_page_without_complaint_and_without_scrolling_sideways() {
    let product = measured();
    let page = product.folder().join("page.html");
    let profile = tempfile::tempdir().unwrap();
    let Some([document, complaints]) = in_a_browser(&page, 1200, profile.path()) else {
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
        let Some([document, _]) = in_a_browser(&file, width, profile.path()) else {
            return;
        };
        let title = document.split("<title>").nth(1).unwrap();
        let title = title.split("</title>").next().unwrap();
        let (needed, there) = title.split_once(" of ").unwrap();
        let [needed, there] = [needed, there].map(|it| it.parse::<u32>().unwrap());
        assert!(needed <= there, "{width}: {title}");
    }
}
