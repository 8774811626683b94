//! Tests reports as a user requests them: every form by its name, the page of a run, and the page in a real browser.

use crate::prelude::*;

use crate::product::two_hosts;

fn study() -> String {
    let title = r#"title = "Two <hosts> & \"one\" kernel""#;
    two_hosts(title, &["getppid", "pipe"])
}

/// A run of two hosts, with its page.
pub(crate) fn measured() -> Product {
    let product = Product::new();
    let file = product.file("study.toml", study());
    product
        .tare(&format!("run {file} --html page.html"), &[])
        .expect(0);
    product
}

#[test]
fn every_report_format_is_written_and_in_help() {
    let product = measured();
    let help = product.run(["report", "--help"]).expect(0).stdout;
    for format in tare::report::FORMATS {
        let name = format.name;
        assert!(help.contains(name), "{name}: {help}");
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(format.about), "{name}: {help}");
        let output = product.tare(
            &format!("report --format {name} -o"),
            &[&format!("out-{name}")],
        );
        let is_left_out = match name {
            "png" => !cfg!(feature = "png") || tare::cx::fonts::faces().is_empty(),
            "parquet" => !cfg!(feature = "parquet"),
            _ => false,
        };
        if is_left_out {
            assert!(output.expect(2).stderr.contains("has no "), "{name}");
            continue;
        }
        let output = output.expect(0);
        let made = product.folder().join(format!("out-{name}"));
        if made.is_dir() {
            let listed: Vec<&str> = output.stdout.lines().collect();
            assert!(!listed.is_empty(), "{name}");
            for line in listed {
                assert!(product.folder().join(line).is_file(), "{line}");
            }
        } else {
            assert_eq!(output.stdout, "", "{name}");
            let to_stdout = product.run(["report", "--format", name]).expect(0);
            let file = fs::read(&made).unwrap();
            assert_eq!(to_stdout.stdout, lossy(&file), "{name}");
        }
    }
    product
        .tare("report --format pdf", &[])
        .expect(2)
        .complains("markdown");
    // The page of the run equals the page that is made later.
    let [first, later] = ["page.html", "out-html"].map(|name| product.folder().join(name));
    assert_eq!(contents(first), contents(later));
    let data = contents(product.folder().join("out-jsonl"));
    let line: Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    assert!(line["value"].as_f64().unwrap() > 0.0, "{line}");
    // Two workloads, three arms including A′, seven blocks.
    assert_eq!(data.lines().count(), 2 * 3 * 7);
    assert!(
        line["slices"]
            .as_array()
            .is_some_and(|slices| slices.len() > 1),
        "getppid is measured in turn: {line}"
    );
}

#[test]
fn unwritable_report_file_is_refused_before_measuring() {
    let product = Product::new();
    let ended = product.tare("run --html no/such/folder/page.html", &[]);
    ended.expect(2).advises("may write");
    assert!(product.run(["runs"]).expect(0).stdout.is_empty());
}

/// Returns a server's answer to these lines.
fn asked(address: &str, lines: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = TcpStream::connect(address).unwrap();
    let question = format!("{lines}\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A `tare serve` of a home; killed on drop.
struct Server {
    process: std::process::Child,
    address: String,
}

impl Server {
    fn start(product: &Product) -> Self {
        use std::io::{BufRead as _, BufReader};
        let mut command = product.command(["serve"]);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut shown = String::new();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        stderr.read_line(&mut shown).unwrap();
        let address = shown.split('/').nth(2).unwrap_or_default().to_owned();
        let server = Self { process, address };
        assert!(server.address.starts_with("127.0.0.1:"), "{shown}");
        server
    }

    /// Returns the whole answer to a request that looks like one of a browser on this machine.
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

/// Returns what follows each `before`, up to the next quote.
fn between<'a>(answer: &'a str, before: &'a str) -> Vec<&'a str> {
    let parts = answer.split(before).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

#[test]
fn server_refuses_other_host_names_and_sites() {
    let product = measured();
    let server = Server::start(&product);
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
        server.ask("/compare?a=latest&b=latest", "attacker.example", ""),
        server.ask(
            "/history?cell=x",
            &server.address,
            "\r\nSec-Fetch-Site: cross-site",
        ),
        server.get("/?find=%zz"),
        server.get("/compare?a=latest&b=no-such-run"),
        list,
    ];
    let statuses: Vec<&str> = answers.iter().map(|answer| status(answer)).collect();
    assert_eq!(
        statuses,
        [
            "200", "200", "404", "404", "421", "403", "405", "421", "403", "200", "404", "200"
        ]
    );
    let page = contents(product.folder().join("page.html"));
    assert!(answers[0].ends_with(&page), "{}", answers[0]);
    assert!(answers[1].contains("\"dossier\": 1"), "{}", answers[1]);
    for answer in &answers {
        let head = answer.split("\r\n\r\n").next().unwrap();
        assert_says(head, "x-content-type-options: nosniff");
    }
}

#[test]
fn stored_runs_can_be_searched_compared_and_tracked() {
    let product = measured();
    let file = product.file("other.toml", study().replace("two-hosts", "once-more"));
    product.run(["run", &file]).expect(0);
    let server = Server::start(&product);
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
        assert_says(&found, &format!("{n} of 2 runs"));
        assert_lacks(&found, "<b>");
    }
    let beside = server.get(&format!("/compare?a={}&b={}", runs[1], runs[0]));
    assert_says(&beside, "of 2 costs are the same");
    let history = between(&beside, "href=\"/history?")[0].replace("&amp;", "&");
    let history = server.get(&format!("/history?{history}"));
    assert_eq!(status(&history), "200");
    assert_says(&history, "2 runs measured it");
    for run in &runs {
        assert_says(&history, &format!("href=\"/run/{run}\""));
    }
    assert_says(&history, "<svg");
    let metrics = server.get(&format!("/metrics/{}", runs[0]));
    assert_eq!(between(&metrics, "href=\"/history?").len(), 2, "{metrics}");
    for unknown in ["x", "%5B%5D", ""] {
        let none = server.get(&format!("/history?cell={unknown}"));
        assert_says(&none, "No stored run measured it");
    }
    for page in [all.as_str(), &beside, &history, &metrics] {
        assert_lacks(page, "<script");
        assert!(
            !page.contains("http-equiv=\"refresh\""),
            "nothing is at work: {page}"
        );
    }
}

#[test]
fn live_run_page_refreshes_without_script_until_end() {
    let product = Product::new();
    let file = product.file("study.toml", study());
    let mut started =
        Product::start(product.command(line(&format!("run {file} --blocks 5000"), &[])));
    product.wait_for_trials(&mut started, 12);
    let server = Server::start(&product);
    let at_work = server.get("/run/latest");
    assert_says(&at_work, "http-equiv=\"refresh\"");
    assert_says(&at_work, "(at work)");
    let so_far = server.get("/run/latest?so-far");
    assert_says(&so_far, "INCOMPLETE");
    assert_lacks(&so_far, "http-equiv=\"refresh\"");
    started.signal("INT", false);
    started.wait().expect(4);
    let ended = server.get("/run/latest");
    assert_lacks(&ended, "http-equiv=\"refresh\"");
    assert_says(&ended, "INCOMPLETE");
}

/// Returns a page's document after its scripts ran in a browser of this width, and the browser's complaints.
fn in_a_browser(page: &Path, width: u32, profile: &Path) -> Option<[String; 2]> {
    let opened = crate::browser::opened(page, profile, width, &[]);
    if opened.is_none() {
        skip("chromium", "the program `chromium` is not installed");
    }
    opened
}

#[test]
fn browser_shows_page_without_errors_or_side_scroll() {
    let product = measured();
    let page = product.folder().join("page.html");
    let profile = tempfile::tempdir().unwrap();
    let [document, complaints] = needed!(in_a_browser(&page, 1200, profile.path()));
    // The script ran under the page's own policy: it made buttons of the headings and counted the rows.
    assert!(
        document.contains("<button type=\"button\">"),
        "{complaints}"
    );
    assert_says(&document, "2 of 2 shown");
    assert_lacks(&complaints, "CONSOLE");
    // A copy that measures itself, which the page's policy would forbid.
    let text = contents(&page);
    let policy = text.find("<meta http-equiv").unwrap();
    let end = policy + text[policy..].find('>').unwrap() + 1;
    let measuring = "<script>for (const box of document.querySelectorAll('details')) box.open = true; const page = document.documentElement; document.title = `${page.scrollWidth} of ${page.clientWidth}`</script></body>";
    let copy = format!("{}{}", &text[..policy], &text[end..]).replace("</body>", measuring);
    let file = product.folder().join("measuring.html");
    fs::write(&file, copy).unwrap();
    for width in [500, 800, 1400] {
        let [document, _] = needed!(in_a_browser(&file, width, profile.path()));
        let title = document.split("<title>").nth(1).unwrap();
        let title = title.split("</title>").next().unwrap();
        let (needed, there) = title.split_once(" of ").unwrap();
        let [needed, there] = [needed, there].map(|it| it.parse::<u32>().unwrap());
        assert!(needed <= there, "{width}: {title}");
    }
}
