//! Measures reports of long runs: `tare show` over a store of a million trials, and the page of a run with 200 cells.
//!
//! The stores repeat short real runs with added noise (`examples/many_trials.rs`). If there is a browser, it opens
//! the page headless; the time is from the start of the navigation to the end of layout.
//! Limits: the store is in the page cache; painting is not included.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Row, peak_mib};
use xtask_build::dist;
use xtask_build::shell::{cargo, program};

const TRIALS: u32 = 1_000_000;
/// Longest report, seconds, and most memory, MiB.
const BOUND: (f64, f64) = (5.0, 512.0);

const TRIALS_OF_PAGE: u32 = 100_000;
/// Seconds to make the page and to open it, and its largest size, MB.
const PAGE_BOUND: (f64, f64, f64) = (3.0, 2.0, 3.0);
/// Fifty sizes in four arms: 200 cells.
const WIDE_STUDY: &str = r#"id = "wide"
design = { trial = "5ms", blocks_min = 6, blocks_max = 6 }
arm = [
  { id = "host" },
  { id = "one", driver = "host" },
  { id = "two", driver = "host" },
  { id = "three", driver = "host" },
  { id = "four", driver = "host" },
]
[[workload]]
id = "read-files"
[workload.sweep]
kib = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50]
"#;
/// How often the browser opens the page; the median counts.
const OPENED: usize = 5;

pub(super) fn rows(folder: &Path) -> Result<Vec<Row>> {
    let tare = dist::named_or_built()?;
    let mut rows = long(&tare, folder)?;
    rows.extend(page(&tare, folder)?);
    Ok(rows)
}

fn long(tare: &Path, folder: &Path) -> Result<Vec<Row>> {
    let of_short = ["--env", "host,container", "--blocks", "10", "--workload"];
    let few = [
        &["quick"],
        &of_short[..],
        &["integer,getppid,pipe,stat,chase"],
    ]
    .concat();
    let home = stored(tare, &folder.join("long"), &few, TRIALS)?;
    let (seconds, peak_mib) = report(tare, &home, &["show"])?;
    Ok(vec![Row::checked(
        "report over 10⁶ trials",
        "≤ 5 s, ≤ 512 MiB",
        format!("{seconds:.1} s, {peak_mib:.0} MiB"),
        seconds <= BOUND.0 && peak_mib <= BOUND.1,
    )])
}

fn page(tare: &Path, folder: &Path) -> Result<Vec<Row>> {
    let study = folder.join("wide.toml");
    std::fs::write(&study, WIDE_STUDY)?;
    let wide = study.to_string_lossy();
    let home = stored(tare, &folder.join("wide"), &[&wide], TRIALS_OF_PAGE)?;
    let file = home.join("page.html");
    let file_name = file.to_string_lossy();
    let made = ["report", "--format", "html", "-o", &file_name];
    let (seconds, peak_mib) = report(tare, &home, &made)?;
    let megabytes = std::fs::metadata(&file)?.len() as f64 / 1e6;
    let opened = opened(&file)?;
    Ok(vec![
        Row::checked(
            "page of 200 cells from 10⁵ trials",
            "≤ 3 s",
            format!("{seconds:.1} s, {peak_mib:.0} MiB"),
            seconds <= PAGE_BOUND.0,
        ),
        Row::checked(
            "that page: size",
            "≤ 3 MB",
            format!("{megabytes:.2} MB"),
            megabytes <= PAGE_BOUND.2,
        ),
        Row {
            promise: "that page: opened in Chromium",
            bound: "≤ 2 s",
            figure: opened.map_or_else(
                || "`chromium` is not here".to_owned(),
                |seconds| format!("{seconds:.2} s"),
            ),
            is_kept: opened.map(|seconds| seconds <= PAGE_BOUND.1),
        },
    ])
}

/// Creates a home whose store repeats a short run until it has `trials` trials.
fn stored(tare: &Path, home: &Path, run: &[&str], trials: u32) -> Result<PathBuf> {
    std::fs::create_dir_all(home)?;
    let (short, long) = (home.join("short.sqlite"), home.join("store.sqlite"));
    let (short_name, long_name) = (short.to_string_lossy(), long.to_string_lossy());
    program(tare, &["run"])
        .arguments(run)
        .arguments(&["--store", &short_name])
        .output()?;
    cargo(&["run", "--quiet", "--release", "--package", "tare"])
        .arguments(&["--example", "many_trials", "--"])
        .arguments(&[&short_name, &long_name, &trials.to_string()])
        .run()?;
    Ok(home.to_owned())
}

/// Returns the time of a `tare` command, seconds, and its peak memory, MiB.
fn report(tare: &Path, home: &Path, command: &[&str]) -> Result<(f64, f64)> {
    let begin = Instant::now();
    let mut child = Command::new(tare)
        .args(command)
        .env("TARE_HOME", home)
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run `tare`")?;
    // The kernel keeps the peak only while the process lives.
    let mut peak = 0.0;
    let ended = loop {
        peak = peak_mib(child.id()).unwrap_or(0.0).max(peak);
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    ensure!(ended.success(), "`tare {}` ended with {ended}", command[0]);
    Ok((begin.elapsed().as_secs_f64(), peak))
}

/// Returns the seconds until a browser has laid out the page and run its script; `None` if there is no browser.
fn opened(page: &Path) -> Result<Option<f64>> {
    const MEASURING: &str =
        "<script>document.body.offsetHeight; document.title = performance.now()</script></body>";
    let text = std::fs::read_to_string(page)?;
    // The page's own policy forbids any other script.
    let policy = text
        .find("<meta http-equiv")
        .context("the page has no policy")?;
    let end = policy + text[policy..].find('>').context("a tag has no end")? + 1;
    let copy = page.with_extension("measuring.html");
    let measuring = format!("{}{}", &text[..policy], &text[end..]).replace("</body>", MEASURING);
    std::fs::write(&copy, measuring)?;
    let profile = page.with_extension("profile");
    let mut took = Vec::new();
    for _ in 0..OPENED {
        let output = Command::new("chromium")
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--dump-dom",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("file://{}", copy.display()))
            .stderr(Stdio::null())
            .output();
        let Ok(output) = output else {
            return Ok(None);
        };
        let document = String::from_utf8_lossy(&output.stdout);
        let title = document.split("<title>").nth(1).unwrap_or_default();
        let title = title.split('<').next().unwrap_or_default();
        let ms: f64 = title.parse().context("the browser did not measure")?;
        took.push(ms / 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok(Some(took[took.len() / 2]))
}
