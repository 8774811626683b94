//! The cases in which runs are killed: the command of each, and its requirements.

use std::time::Duration;

use serde_json::Value;

use super::account::{self, Account};
use super::server::{Plan, Server, names};

/// File name of a study in Tare's working directory.
pub(super) const STUDY: &str = "study.toml";

/// A kind of run that is killed.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The environment that it needs, as `tare doctor` names it.
    environment: &'static str,
    /// The latest moment of a kill: some seconds after the first trial.
    pub(super) latest: Duration,
}

const fn case(name: &'static str, environment: &'static str, seconds: u64) -> Case {
    Case {
        name,
        environment,
        latest: Duration::from_secs(seconds),
    }
}

/// The cases, slowest first.
pub(super) const CASES: &[Case] = &tare_model::rows! {
    case("vm", "vm", 16),
    case("podman", "podman", 7),
    case("cluster", "container", 6),
    case("docker", "docker", 5),
    case("why", "container", 5),
    case("oci", "oci", 4),
    case("container", "container", 4),
    case("ssh", "ssh", 4),
    case("host", "host", 3),
};

pub(super) fn case_names() -> String {
    let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    names.join(", ")
}

/// Three nodes on a separate network, with the benchmark as small as possible.
const NODES: &str = "id = \"nodes\"\nbaseline = \"host\"\n[design]\nblocks_min = 400\nblocks_max = 400\n\
    [[arm]]\nid = \"host\"\n[[arm]]\nid = \"container\"\n[[workload]]\nid = \"hpcc\"\n\
    [workload.params]\nnodes = 3\ncores = 1\nmemory = 8\nblock = 32\nscale = 15\n";

/// A command that takes some milliseconds.
const WORK: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";

/// A case that can run here.
pub(super) struct PreparedCase {
    pub(super) line: Vec<String>,
    pub(super) study: Option<&'static str>,
    account: Option<Account>,
    server: Option<Server>,
}

/// Starts what a case needs; the error says why the case cannot run here.
pub(super) fn prepared(case: &Case, doctor: &Value) -> Result<PreparedCase, String> {
    let mut place = PreparedCase {
        line: Vec::new(),
        study: None,
        account: None,
        server: None,
    };
    // The case creates its server or user, whether or not they work otherwise.
    if !["ssh", "podman"].contains(&case.name) {
        is_ready(doctor, case.environment)?;
    }
    let environment = match case.name {
        "cluster" => {
            place.study = Some(NODES);
            place.line = words(&["run", STUDY]);
            return Ok(place);
        }
        "why" => {
            let ask = ["why", "--env", "container", "--budget", "60s"];
            place.line = words(&[&ask[..], &["--", "sh", "-c", WORK]].concat());
            return Ok(place);
        }
        "ssh" => {
            let server = place.server.insert(Server::try_start(&Plan::default())?);
            let [config, folder] = server.places();
            let (config, folder) = (config.display(), folder.display());
            format!("ssh:host=server,config={config},folder={folder}")
        }
        "podman" => {
            let account = place.account.insert(Account::take()?);
            let user = account.name().map(|name| format!(",as={name}"));
            format!("podman:runtime=runc{}", user.unwrap_or_default())
        }
        other => other.to_owned(),
    };
    let work = ["--workload", "getppid,integer", "--blocks", "400"];
    place.line = words(&[&["run", "--env", &environment], &work[..]].concat());
    Ok(place)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn is_ready(doctor: &Value, environment: &str) -> Result<(), String> {
    let rows = doctor["environments"].as_array().into_iter().flatten();
    let mut rows = rows.filter(|row| row["id"] == environment);
    match rows.next() {
        Some(row) if row["ready"] == true => Ok(()),
        Some(row) => Err(row["why"].as_str().unwrap_or("no reason given").to_owned()),
        None => Err("not known to this `tare`".to_owned()),
    }
}

impl PreparedCase {
    /// Returns leftovers of a run that this machine's own traces do not show.
    pub(super) fn left(&self, run: &str) -> Vec<String> {
        let remote = self.server.iter().flat_map(|server| {
            let names = names(&server.remote()).into_iter();
            names.map(|name| format!("on the server {name}"))
        });
        let podman = self.account.iter().flat_map(|account| {
            let filter = format!("--filter=label=tare.run={run}");
            let questions = [["ps", "-aq", &filter], ["images", "-aq", &filter]];
            questions
                .into_iter()
                .flat_map(|question| {
                    let found = account::podman(account.name(), &question);
                    let found = found.unwrap_or_else(|error| error);
                    let lines = found
                        .lines()
                        .map(|line| format!("podman {} {line}", question[0]));
                    lines.collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        });
        remote.chain(podman).collect()
    }
}
