//! `cargo xtask web [--seconds S]`: compares the rows of `web` for a page of nginx with `wrk` in the same time.
//!
//! First it runs `tare run web` for S seconds. Then `wrk -t1 -c1` asks the same server on the host, in a container on
//! the host's network, at a container's own address and through a published port, one after the other as users do it,
//! in two rounds that take the same time together. Each round asks the host twice, as A/A. The table has the ratios
//! of both.
//! `TARE` names a program that is already built. It needs Docker, nginx and wrk.
//! Limits: `wrk` and the server share no processor, unlike in Tare's slices, so an idle processor has to wake up.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::flags::{Json, flags, number, ratio, tare_in};
use xtask_build::dist;
use xtask_build::shell::{program, step};
use xtask_build::workspace::{root, work_folder};

const IMAGE: &str = "tare-web-nginx";
const ROUNDS: u32 = 2;
const HOST: &str = "host";
/// Each row, with the arm and path of the study that ask the same.
const ROWS: [(&str, &str, &str); 4] = [
    ("host, once more", "a-prime", "host→arm"),
    ("Docker, the host's network", "docker-host-net", "host→arm"),
    ("Docker, the container's address", "docker", "host→arm"),
    (
        "Docker, a published port",
        "docker",
        "host→published 127.0.0.1",
    ),
];

fn config(port: u16) -> String {
    format!(
        "user root; daemon off; master_process off; pid /tmp/tare-web-{port}; error_log stderr;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 100000000;\n\
         client_body_temp_path /tmp/1; proxy_temp_path /tmp/2; fastcgi_temp_path /tmp/3;\n\
         uwsgi_temp_path /tmp/4; scgi_temp_path /tmp/5;\n\
         server {{ listen {port}; root {}; }} }}\n",
        "/site"
    )
}

/// Servers, stopped on drop.
struct Servers {
    host: Child,
    containers: Vec<String>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.host.kill();
        let _ = self.host.wait();
        // The killed server leaves its file behind.
        let _ = fs::remove_file("/tmp/tare-web-18480");
        for name in &self.containers {
            let _ = program("docker", &["rm", "--force", name]).output();
        }
        let _ = program("docker", &["image", "rm", "--force", IMAGE]).output();
    }
}

/// Starts the servers and returns their addresses by the row's name.
fn serve(folder: &Path) -> Result<(Servers, BTreeMap<&'static str, String>)> {
    fs::write(
        folder.join("page.txt"),
        "The same line of 64 bytes, so often that they are one KiB. . .\n".repeat(16),
    )?;
    let site = folder.to_str().context("the folder's name is no text")?;
    for port in [18_480, 18_481, 18_482] {
        let text = config(port);
        // The host has no `/site`.
        let text = if port == 18_480 {
            text.replace("/site", site)
        } else {
            text
        };
        fs::write(folder.join(format!("{port}.conf")), text)?;
    }
    let image = root().join("fixtures/planted/own/image.sh");
    program("sh", &[&image.to_string_lossy(), IMAGE, "nginx", "sh"]).output()?;
    let host = Command::new("nginx")
        .args(["-e", "stderr", "-c", &format!("{site}/18480.conf")])
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start nginx")?;
    let mut servers = Servers {
        host,
        containers: Vec::new(),
    };
    let mount = format!("{site}:/site:ro");
    for (port, network) in [
        (18_481, &["-p", "127.0.0.1:18481:18481"][..]),
        (18_482, &["--network", "host"]),
    ] {
        let name = format!("{IMAGE}-{port}");
        let line = [
            "run", "--detach", "--label", "tare", "--name", &name, "-v", &mount,
        ];
        servers.containers.push(name.clone());
        let file = format!("/site/{port}.conf");
        program("docker", &line)
            .arguments(network)
            .arguments(&[IMAGE, "/usr/sbin/nginx", "-e", "stderr", "-c", &file])
            .output()?;
    }
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let found = program(
        "docker",
        &["inspect", "--format", format, &servers.containers[0]],
    )
    .output()?;
    let own = found.trim().to_owned();
    let at = |address: &str| format!("http://{address}/page.txt");
    let ways = [
        (HOST, at("127.0.0.1:18480")),
        (ROWS[0].0, at("127.0.0.1:18480")),
        (ROWS[1].0, at("127.0.0.1:18482")),
        (ROWS[2].0, at(&format!("{own}:18481"))),
        (ROWS[3].0, at("127.0.0.1:18481")),
    ];
    Ok((servers, ways.into_iter().collect()))
}

/// Returns the mean latency, microseconds, from the requests per second that `wrk` prints for one connection.
fn wrk(url: &str, seconds: u64) -> Result<f64> {
    let begin = Instant::now();
    loop {
        let text = program("wrk", &["-t1", "-c1", &format!("-d{seconds}s"), url]).output();
        let rate = text.as_ref().ok().and_then(|text| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("Requests/sec:"))?;
            line.trim().parse::<f64>().ok().filter(|rate| *rate > 0.0)
        });
        match rate {
            Some(rate) => return Ok(1e6 / rate),
            // A server that was just started may not listen yet.
            None if begin.elapsed() < Duration::from_secs(20) => {}
            None => bail!("`wrk` got no answer from {url}: {text:?}"),
        }
    }
}

/// The interval of each row of the study: point, low and high end.
type Intervals = BTreeMap<&'static str, [f64; 3]>;

/// Returns the intervals of a run, and how many of its rows were decided, of how many.
fn of_study(dossier: &Value) -> (Intervals, usize, usize) {
    let with_ratio = |name: &str| {
        let cells = dossier[name].as_array().into_iter().flatten();
        cells.filter(|cell| cell["ratio"]["point"].is_number())
    };
    let all: Vec<&Value> = with_ratio("cells").chain(with_ratio("aa")).collect();
    let decided = with_ratio("cells").filter(|cell| cell["verdict"] != "inconclusive");
    let mut rows = BTreeMap::new();
    for (row, arm, path) in ROWS {
        let is_row = |cell: &&&Value| {
            let is_page =
                cell["params"]["url"] == "/page.txt" && cell["params"]["connections"] != 16;
            cell["arm"] == arm
                && cell["path"] == path
                && cell["metric"] == "service.latency.typical"
                && is_page
        };
        let found = all.iter().find(is_row).and_then(|cell| ratio(cell));
        rows.extend(found.map(|ratio| (row, ratio)));
    }
    (rows, decided.count(), with_ratio("cells").count())
}

/// Asks both ways and prints one table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let [seconds] = flags("web", arguments, [("--seconds", "120")])?;
    let seconds: u64 = number(&seconds)?;
    ensure!(seconds >= 60, "`--seconds` is 60 or more");
    let tare = dist::named_or_built()?;
    let folder = work_folder("web")?;
    step("tare run web");
    let dossier = tare_in(&folder, &tare, &["run", "web", "--json", "-"])
        .arguments(&["--budget", &format!("{seconds}s")])
        .json()?;
    let (rows, decided, all) = of_study(&dossier);
    let (servers, ways) = serve(&folder)?;
    let each = (seconds / (ways.len() as u64 * u64::from(ROUNDS))).max(1);
    let mut shown: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 1..=ROUNDS {
        step(&format!("wrk, round {round} of {ROUNDS}"));
        let host = wrk(&ways[HOST], each)?;
        for (row, ..) in ROWS {
            shown
                .entry(row)
                .or_default()
                .push(wrk(&ways[row], each)? / host);
        }
    }
    drop(servers);
    fs::remove_dir_all(&folder)?;
    println!(
        "| nginx, a page of 1 KiB | `tare run web`, {seconds} s | `wrk -t1 -c1`, {seconds} s in sequence |\n|---|---|---|"
    );
    for (row, ..) in ROWS {
        let tare = rows.get(row).map_or_else(
            || "not measured".to_owned(),
            |[point, low, high]| format!("{point:.3} [{low:.3}, {high:.3}]"),
        );
        let wrk: Vec<String> = shown[row]
            .iter()
            .map(|ratio| format!("{ratio:.2}"))
            .collect();
        println!("| {row} | {tare} | {} |", wrk.join(", "));
    }
    println!("\n`tare run web` decided {decided} of {all} rows");
    Ok(ExitCode::SUCCESS)
}
