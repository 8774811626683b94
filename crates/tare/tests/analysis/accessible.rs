//! Tests the accessibility of the page: every figure has text, headings are in order, table headers name their cells,
//! controls have labels, the keyboard reaches all that scrolls, and every text has enough contrast, light and dark.
//! Checked in a real browser, page by page; and by axe-core with all its rules if `TARE_AXE` names its file, which is
//! third-party and not in this repository. No page makes network requests or causes a browser complaint.

use std::path::Path;

use tare::analyze::analyze;
use tare::report::html;
use tare_model::Params;
use tare_model::dossier::Dossier;
use tare_testkit::{browser, skip};

use super::forms::assert_says;
use super::forms::files_of;
use super::generator::find;
use super::snapshots::{hostile, ordinary, unavailable};

const CHECKS: &str = include_str!("accessible.js");

/// Every kind of page.
fn pages() -> Vec<(&'static str, String)> {
    let of = |dossier: &Dossier| html::page(dossier);
    let plain = analyze(&ordinary().run(), &find);
    let mut pairs = ordinary().run();
    pairs.head.study.pairs = true;
    let later = ordinary().seed(9).dossier();
    let moment = |dossier: &Dossier| html::Moment {
        run: dossier.run.clone(),
        started: dossier.started.clone(),
        kernel: "6.1".to_owned(),
        cell: dossier.cells[1].clone(),
    };
    let listed = html::Listed {
        run: plain.run.clone(),
        study: "synthetic".to_owned(),
        title: "Made up".to_owned(),
        arms: vec!["host".to_owned()],
        started: plain.started.clone(),
        trials: 7,
        ended: "blocks".to_owned(),
    };
    let live = html::Live {
        run: plain.run.clone(),
        title: "Made up".to_owned(),
        trials: 7,
        seconds: 3,
        budget_s: Some(90),
        arms: vec![
            ("host".to_owned(), Params::new(), None),
            ("vm".to_owned(), Params::new(), Some("no".to_owned())),
        ],
        done: (1, 4),
        remarks: vec!["differs: nothing that matters".to_owned()],
    };
    vec![
        ("ordinary", of(&plain)),
        ("pairs", of(&analyze(&pairs, &find))),
        ("unavailable", of(&analyze(&unavailable(), &find))),
        ("hostile", of(&analyze(&hostile(), &find))),
        ("why", of(&super::forms::answer_of_why())),
        ("publication", of(&super::publication::dossier())),
        ("several", of(&super::concurrency::with_series())),
        ("beside", html::compared(&plain, &later)),
        (
            "history",
            html::history(&[moment(&plain), moment(&later)], 3),
        ),
        ("metrics", html::metrics(&plain)),
        ("list", html::index(&[listed], 1, 1, "made")),
        ("live", html::live(&live)),
        ("figures", figures()),
    ]
}

/// A user's page with every kind of standalone figure.
fn figures() -> String {
    let dossiers = [
        analyze(&ordinary().run(), &find),
        analyze(&hostile(), &find),
        super::forms::answer_of_why(),
        super::publication::dossier(),
        super::concurrency::with_series(),
    ];
    let mut drawn = String::new();
    for dossier in &dossiers {
        let files = files_of("svg", dossier);
        for file in files {
            drawn.push_str("<figure>");
            drawn.push_str(std::str::from_utf8(&file.content).unwrap());
            drawn.push_str("</figure>");
        }
    }
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Figures</title>\
         <style>svg {{ max-width: 100%; height: auto; }} figure {{ margin: 0; }}</style></head>\
         <body><main><h1>Figures</h1>{drawn}</main></body></html>"
    )
}

/// Returns the page in one of its two colour schemes, with the checks appended and without its policy, which would
/// forbid them.
fn checking(page: &str, is_dark: bool, axe: &str) -> String {
    let policy = page.find("<meta http-equiv=\"Content-Security").unwrap();
    let end = policy + page[policy..].find('>').unwrap() + 1;
    let page = format!("{}{}", &page[..policy], &page[end..]);
    let refresh = page.find("<meta http-equiv=\"refresh\"");
    let page = match refresh {
        Some(at) => {
            let end = at + page[at..].find('>').unwrap() + 1;
            format!("{}{}", &page[..at], &page[end..])
        }
        None => page,
    };
    let media = if is_dark {
        "@media all"
    } else {
        "@media not all"
    };
    let page = page.replace("@media (prefers-color-scheme: dark)", media);
    let checks = format!("<script>{axe}</script><script>{CHECKS}</script></body>");
    page.replace("</body>", &checks)
}

/// Width of a phone, narrower than a browser's window can be.
const PHONE: u32 = 360;

/// Returns a page with these pages in frames of this width, which reports the results of their checks once all are
/// done.
fn framed(pages: &[(String, String)], width: u32) -> String {
    let frames = pages.iter().map(|(name, page)| {
        let page = page.replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe title=\"{name}\" width=\"{width}\" height=\"900\" srcdoc=\"{page}\"></iframe>\n")
    });
    let frames: String = frames.collect();
    format!("<!DOCTYPE html><html><body>{frames}<script>{GATHER}</script></body></html>")
}

/// Waits until the checks of every frame have reported.
const GATHER: &str = "const frames = [...document.querySelectorAll('iframe')];
const said = (frame) => frame.contentDocument.getElementById('found');
const gather = () => {
  if (!frames.every(said)) return setTimeout(gather, 100);
  const told = document.createElement('pre');
  told.id = 'found';
  const wrong = frames.filter((frame) => said(frame).textContent !== 'nothing');
  told.textContent = wrong.map((frame) => `${frame.title}:\\n${said(frame).textContent}`).join('\\n\\n') || 'nothing';
  document.body.replaceChildren(told);
};
addEventListener('load', gather);";

/// Returns the document of a file in a browser of this width, and the browser's complaints; `None` without a browser.
fn opened(file: &Path, profile: &Path, width: u32) -> Option<[String; 2]> {
    // Virtual time passes only while the page is idle, so this waits for what a page does later.
    let opened = browser::opened(file, profile, width, &["--virtual-time-budget=30000"]);
    if opened.is_none() {
        skip::skip("chromium", "the program `chromium` is not installed");
    }
    opened
}

/// Returns the checks' report in a browser of this width; `None` without a browser.
fn found(file: &Path, profile: &Path, width: u32) -> Option<String> {
    let [document, _] = opened(file, profile, width)?;
    let shown = document.split("<pre id=\"found\">").nth(1);
    let shown = shown.unwrap_or_else(|| panic!("the checks did not run: {document}"));
    Some(shown.split("</pre>").next().unwrap().to_owned())
}

/// Returns the lines in which a browser reports console output and policy violations of pages.
fn complaints(told: &str) -> Vec<&str> {
    told.lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect()
}

/// Returns the text of axe-core, if available.
fn axe() -> Option<String> {
    let Some(file) = std::env::var_os("TARE_AXE") else {
        skip::skip("axe", "`TARE_AXE` names no file of axe-core");
        return None;
    };
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("axe") && !text.contains("</script"));
    Some(text)
}

/// How pages are checked: each width, and both colour schemes, which no width changes.
const LOOKS: [(u32, bool); 4] = [(1400, false), (1400, true), (800, true), (PHONE, false)];

#[test]
fn pages_pass_accessibility_checks() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    let axe = axe().unwrap_or_default();
    let pages = pages();
    for (name, page) in &pages {
        super::figures::keep(&format!("{name}.html"), page);
    }
    let mut problems = Vec::new();
    for (width, is_dark) in LOOKS {
        // axe-core's rules are about a page's content, not its width.
        let axe = if width == LOOKS[0].0 { &axe } else { "" };
        let checked = pages
            .iter()
            .map(|(name, page)| ((*name).to_owned(), checking(page, is_dark, axe)));
        let file = folder.path().join(format!("{width}-{is_dark}.html"));
        std::fs::write(&file, framed(&checked.collect::<Vec<_>>(), width)).unwrap();
        // A browser's window is wider than a phone.
        match found(&file, &profile, width.max(800)) {
            None => return,
            Some(told) if told == "nothing" => {}
            Some(told) => problems.push(format!("{width}, dark {is_dark}:\n{told}")),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn framed_accessibility_checks_find_problems() {
    let folder = tempfile::tempdir().unwrap();
    let page = |body: &str| {
        let head = "<html lang=en><head><title>t</title><meta http-equiv=\"Content-Security-Policy\"></head>";
        let texts = (0..10)
            .map(|n| format!("<p>{n}"))
            .collect::<Vec<_>>()
            .concat();
        checking(
            &format!("{head}<body><main><h1>one</h1>{body}{texts}</main></body></html>"),
            false,
            "",
        )
    };
    let wide = page("<div style=\"width:500px\">wide</div>");
    let pages = [("good".to_owned(), page("")), ("bad".to_owned(), wide)];
    let file = folder.path().join("frames.html");
    std::fs::write(&file, framed(&pages, PHONE)).unwrap();
    let Some(told) = found(&file, &folder.path().join("profile"), 800) else {
        return;
    };
    assert!(told.starts_with("bad:\nwider than its window"), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
}

#[test]
fn accessibility_checks_find_problems() {
    let folder = tempfile::tempdir().unwrap();
    let page = "<html lang=en><head><title>t</title><meta http-equiv=\"Content-Security-Policy\"></head>\
                <body><main><h1>one</h1><h3>three</h3><svg></svg><table><tr><th>a</th></tr></table><input>\
                <nav></nav><nav></nav><table><tr><th scope=col> </th></tr></table><div style=\"width:2000px\">wide</div>\
                <a href=\"#no\">x</a><p style=\"color:#aaa\">pale</p><img src=\"no-such.png\" alt=\"\"><p>1<p>2<p>3<p>4<p>5<p>6</main></body></html>";
    let file = folder.path().join("wrong.html");
    std::fs::write(&file, checking(page, false, "")).unwrap();
    let Some(told) = found(&file, &folder.path().join("profile"), 800) else {
        return;
    };
    for what in [
        "heading after h1",
        "figure without text",
        "header without scope",
        "header without text",
        "two landmarks of one name",
        "wider than its window",
        "control without label",
        "link to nowhere",
        "contrast 2.3",
        "loads file:",
    ] {
        assert!(told.contains(what), "{what}: {told}");
    }
    assert_eq!(told.lines().count(), 10, "{told}");
}

#[test]
fn axe_is_at_work_among_the_checks() {
    let Some(axe) = axe() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wrong = "<html><head><title>t</title><meta http-equiv=\"Content-Security-Policy\"></head><body><img src=x></body></html>";
    let file = folder.path().join("wrong.html");
    std::fs::write(&file, checking(wrong, false, &axe)).unwrap();
    if let Some(told) = found(&file, &folder.path().join("profile"), 1200) {
        assert_says(&told, "axe, image-alt");
    }
}

#[test]
fn a_browser_complains_of_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    // Each page unchanged, under its own policy, in a frame of one page.
    let frame = |name: &str, page: &str| {
        std::fs::write(folder.path().join(format!("{name}.html")), page).unwrap();
        format!("<iframe src=\"{name}.html\"></iframe>")
    };
    let told_of = |frames: &str| {
        let file = folder.path().join("frames.html");
        std::fs::write(&file, format!("<!DOCTYPE html>{frames}")).unwrap();
        opened(&file, &profile, 1200)
    };
    let frames: String = pages()
        .iter()
        .map(|(name, page)| frame(name, page))
        .collect();
    let Some([_, told]) = told_of(&frames) else {
        return;
    };
    assert_eq!(complaints(&told), [""; 0]);
    let page = html::page(&analyze(&ordinary().run(), &find));
    let wrong = page.replace(
        "<main>",
        "<main><script>nothing</script><img src=\"http://127.0.0.1:9/\">",
    );
    let [_, told] = told_of(&frame("wrong", &wrong)).unwrap();
    let shown = complaints(&told);
    assert!(
        shown.iter().any(|line| line.contains("script-src")),
        "{shown:?}"
    );
    assert!(
        shown.iter().any(|line| line.contains("127.0.0.1")),
        "{shown:?}"
    );
}
