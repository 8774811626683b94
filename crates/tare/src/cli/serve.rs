//! `tare serve`: serves stored runs as pages to a browser on this machine.
//!
//! Only requests with this exact address as `Host` are answered, and none from pages of other sites, which prevents
//! DNS rebinding and cross-site requests. Read-only. A running run is shown from its stored state; its dossier is
//! computed only on request, because that would disturb the run.
//! Limits: cannot identify the user who sends a request; the address is printed to stderr only.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use tare_model::dossier::Dossier;
use tare_model::study::A_PRIME;
use tare_model::{RunId, fact};

use super::{Exit, Failed, output, recount};
use crate::cx::loopback::{self, Answer, Question};
use crate::recount::lines;
use crate::report;
use crate::report::html::{self, Listed, Live, Moment};
use crate::session::home::GivenPaths;
use crate::store::{RunLine, Store};
use crate::why;

const PAGE: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Shows the runs of the store in a browser on this machine, until Ctrl-C. Other users of the machine can see them too
/// meanwhile.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Listen on this port of 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

impl Serve {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let file = place.store_file()?;
        // Fails now rather than at the first request.
        Store::open_to_read(&file)?;
        let tell = |address: SocketAddr| {
            output::tell(&format!("http://{address}/ shows the runs; Ctrl-C ends it"));
        };
        let failed = |error| {
            Failed::failure(format!(
                "cannot hear on port {} of the loopback: {error}",
                self.port
            ))
            .hint("`--port 0` takes one that is free")
        };
        let pages = Pages::new(file);
        match loopback::serve(self.port, tell, move |address, question| {
            answered(address, question, &pages)
        }) {
            Ok(never) => match never {},
            Err(error) => Err(failed(error)),
        }
    }
}

fn plain_answer(status: u16, text: &str) -> Answer {
    Answer {
        status,
        kind: TEXT,
        content: format!("{text}\n"),
    }
}

/// Answers a request.
fn answered(address: SocketAddr, question: &Question, pages: &Pages) -> Answer {
    if let Some(refused) = refused(address, question) {
        return refused;
    }
    pages
        .answer(&PageRequest::parse(question))
        .unwrap_or_else(|failed| {
            let status = match failed.exit {
                Exit::Usage => 404,
                _ => 500,
            };
            plain_answer(status, &output::printable(&failed.message))
        })
}

/// Returns the refusal of a request, if it must be refused.
fn refused(address: SocketAddr, question: &Question) -> Option<Answer> {
    let own = [address.to_string(), format!("localhost:{}", address.port())];
    let is_own = |name: &str| own.iter().any(|own| own == name);
    if !question.host.as_deref().is_some_and(is_own) {
        return Some(plain_answer(421, &format!("ask http://{address}/")));
    }
    let is_foreign = |origin: &str| !origin.strip_prefix("http://").is_some_and(is_own);
    let is_elsewhere = |site: &str| !matches!(site, "none" | "same-origin");
    if question.origin.as_deref().is_some_and(is_foreign)
        || question.site.as_deref().is_some_and(is_elsewhere)
    {
        return Some(plain_answer(403, "another site's page asks"));
    }
    if !matches!(question.method.as_str(), "GET" | "HEAD") {
        return Some(plain_answer(405, "there is nothing to change here"));
    }
    None
}

/// A request's path and query fields.
struct PageRequest<'a> {
    path: &'a str,
    fields: BTreeMap<String, String>,
}

impl<'a> PageRequest<'a> {
    fn parse(question: &'a Question) -> Self {
        let query = question.query.as_deref().unwrap_or_default();
        Self {
            path: &question.path,
            fields: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        }
    }

    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// The maximum number of listed runs; the rest is counted.
const MOST_LISTED: usize = 500;
/// The maximum number of runs in one metric's history: each dossier is computed from raw output.
const MOST_OVER_TIME: usize = 60;

/// The maximum number of cached dossiers.
const MOST_DERIVED: usize = 4 * MOST_OVER_TIME;

/// Cached dossiers for histories, by run name: the number of trials, and the dossier without large parts that no
/// history shows.
type Derived = BTreeMap<String, (u32, Rc<Dossier>)>;

/// The pages of a store.
struct Pages {
    file: PathBuf,
    derived: RefCell<Derived>,
}

impl Pages {
    fn new(file: PathBuf) -> Self {
        Self {
            file,
            derived: RefCell::default(),
        }
    }

    fn answer(&self, asked: &PageRequest<'_>) -> Result<Answer, Failed> {
        let store = Store::open_to_read(&self.file)?;
        let page = |content: String| Answer {
            status: 200,
            kind: PAGE,
            content,
        };
        match asked.path {
            "/" => return Ok(page(listed(&store, asked.field("find"))?)),
            "/compare" => {
                let [first, second] = ["a", "b"].map(|name| {
                    let run = recount::resolve(&store, asked.field(name))?;
                    recount::dossier(&store, &run)
                });
                return Ok(page(html::compared(&first?, &second?)));
            }
            "/history" => return Ok(page(self.history(&store, asked.field("cell"))?)),
            _ => {}
        }
        if let Some(run) = asked
            .path
            .strip_prefix("/metrics/")
            .filter(|name| is_name(name))
        {
            let run = recount::resolve(&store, run)?;
            return Ok(page(html::metrics(&recount::dossier(&store, &run)?)));
        }
        let Some(name) = asked
            .path
            .strip_prefix("/run/")
            .filter(|name| is_name(name))
        else {
            return Ok(plain_answer(404, "there is no such page"));
        };
        if let Some(name) = name.strip_suffix(".json") {
            let run = recount::resolve(&store, name)?;
            return Ok(Answer {
                status: 200,
                kind: JSON,
                content: report::json::to_string(&recount::dossier(&store, &run)?),
            });
        }
        let run = recount::resolve(&store, name)?;
        if !asked.fields.contains_key("so-far") && store.is_at_work(&run)? {
            return Ok(page(html::live(&live(&store, &run)?)));
        }
        Ok(page(html::page(&recount::dossier(&store, &run)?)))
    }

    /// Returns the page of a metric over all runs that have its arm and workload.
    fn history(&self, store: &Store, question: &str) -> Result<String, Failed> {
        let parts: Vec<serde_json::Value> = serde_json::from_str(question).unwrap_or_default();
        let text = |at: usize| parts.get(at).and_then(serde_json::Value::as_str);
        let has =
            |list: &[String], name: Option<&str>| list.iter().any(|own| Some(own.as_str()) == name);
        let mut runs = store.runs()?;
        runs.retain(|line| {
            let arms = has(&line.arms, text(0)) && has(&line.arms, text(1));
            arms && has(&line.workloads, text(2)) && !why::is_an_answer(&line.study)
        });
        let mut moments = Vec::new();
        for line in runs.iter().take(MOST_OVER_TIME) {
            let dossier = self.derived(store, line)?;
            if let Some(cell) = html::asked(question, &dossier) {
                let baseline = dossier.arms.iter().find(|arm| arm.baseline);
                let kernel = baseline.and_then(|arm| arm.facts.get(fact::KERNEL_RELEASE));
                moments.push(Moment {
                    run: dossier.run.clone(),
                    started: dossier.started.clone(),
                    kernel: kernel.cloned().unwrap_or_else(|| "not recorded".to_owned()),
                    cell: cell.clone(),
                });
            }
        }
        moments.sort_by(|one, other| (&one.started, &one.run).cmp(&(&other.started, &other.run)));
        let n_left_out = runs.len().saturating_sub(MOST_OVER_TIME);
        Ok(html::history(&moments, n_left_out))
    }

    /// Returns the dossier of a run, from the cache if the number of trials is unchanged.
    fn derived(&self, store: &Store, line: &RunLine) -> Result<Rc<Dossier>, Failed> {
        let name = line.id.to_string();
        if let Some((n_trials, known)) = self.derived.borrow().get(&name)
            && *n_trials == line.n_trials
        {
            return Ok(Rc::clone(known));
        }
        let mut dossier = recount::dossier(store, &line.id)?;
        for cell in &mut dossier.cells {
            cell.blocks = Vec::new();
        }
        let dossier = Rc::new(dossier);
        let mut all = self.derived.borrow_mut();
        all.insert(name, (line.n_trials, Rc::clone(&dossier)));
        while all.len() > MOST_DERIVED {
            // Names begin with the time, so this is the oldest run.
            all.pop_first();
        }
        Ok(dossier)
    }
}

/// Whether the end of a path is the name of one run.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '%'])
}

/// Returns the page that lists the runs containing all of these words.
fn listed(store: &Store, search: &str) -> Result<String, Failed> {
    let all = lines::answers(store.runs()?);
    let wanted: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
    let found: Vec<Listed> = all.iter().map(line).collect();
    let found: Vec<Listed> = found
        .into_iter()
        .zip(&all)
        .filter(|(listed, line)| {
            let text = format!(
                "{} {} {} {} {} {} {}",
                listed.run,
                listed.study,
                listed.title,
                listed.arms.join(" "),
                line.workloads.join(" "),
                listed.started,
                listed.ended
            );
            let text = text.to_lowercase();
            wanted.iter().all(|word| text.contains(word.as_str()))
        })
        .map(|(listed, _)| listed)
        .collect();
    let shown = &found[..found.len().min(MOST_LISTED)];
    Ok(html::index(shown, found.len(), all.len(), search))
}

fn line(line: &RunLine) -> Listed {
    let arms = line.arms.iter().filter(|arm| *arm != A_PRIME);
    Listed {
        run: line.id.to_string(),
        study: line.study.clone(),
        title: lines::about(line),
        arms: arms.cloned().collect(),
        started: lines::started(line.started_unix_ns),
        trials: line.n_trials,
        ended: lines::ended(line).to_owned(),
    }
}

/// Returns the stored state of a running run, without computing its dossier.
fn live(store: &Store, run: &RunId) -> Result<Live, Failed> {
    let stored = store.run_without_records(run)?;
    let line = store.runs()?.into_iter().find(|line| line.id == *run);
    let shown = stored
        .study
        .arms
        .iter()
        .filter(|spec| spec.id.as_str() != A_PRIME);
    let arms = shown.map(|spec| {
        let record = stored.arms.iter().find(|record| record.arm == spec.id);
        let missing = record.filter(|record| !record.available);
        let reason = missing.map(|record| record.reason.clone().unwrap_or_default());
        (spec.id.to_string(), spec.stored_settings(), reason)
    });
    Ok(Live {
        run: run.to_string(),
        title: stored.study.title.clone(),
        trials: line.map_or(0, |line| line.n_trials),
        seconds: stored.wall_ns / 1_000_000_000,
        budget_s: stored.study.budget_ns.map(|ns| ns / 1_000_000_000),
        arms: arms.collect(),
        done: (stored.workload_ends.len(), stored.study.workloads.len()),
        remarks: stored.remarks.into_iter().map(|it| it.text).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(change: impl FnOnce(&mut Question)) -> Option<u16> {
        let address = SocketAddr::from(([127, 0, 0, 1], 7431));
        let mut question = Question {
            method: "GET".into(),
            path: "/".into(),
            query: None,
            host: Some("127.0.0.1:7431".into()),
            origin: None,
            site: None,
        };
        change(&mut question);
        refused(address, &question).map(|answer| answer.status)
    }

    #[test]
    fn form_fields_decode_and_bad_escapes_stay_text() {
        let fields = |query: &str| {
            let question = Question {
                query: Some(query.into()),
                ..Question::default()
            };
            PageRequest::parse(&question).fields
        };
        let read = fields("find=a+b%26c&x&=y&find=%C3%A9");
        let read: Vec<(&str, &str)> = read.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(read, [("", "y"), ("find", "é"), ("x", "")]);
        for (broken, text) in [("%", "%"), ("%zz", "%zz"), ("%ff", "\u{fffd}")] {
            assert_eq!(fields(&format!("find={broken}"))["find"], text);
        }
    }

    #[test]
    fn only_local_same_origin_requests_are_answered() {
        assert_eq!(status(|_| ()), None);
        assert_eq!(status(|it| it.host = Some("localhost:7431".into())), None);
        assert_eq!(
            status(|it| it.origin = Some("http://localhost:7431".into())),
            None
        );
        assert_eq!(status(|it| it.site = Some("none".into())), None);
        for host in [
            "attacker.example:7431",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "?",
            "",
        ] {
            assert_eq!(
                status(|it| it.host = Some(host.into())),
                Some(421),
                "{host}"
            );
        }
        assert_eq!(status(|it| it.host = None), Some(421));
        for origin in [
            "https://attacker.example",
            "null",
            "http://127.0.0.1:80",
            "https://127.0.0.1:7431",
        ] {
            assert_eq!(
                status(|it| it.origin = Some(origin.into())),
                Some(403),
                "{origin}"
            );
        }
        for site in ["cross-site", "same-site", "?"] {
            assert_eq!(
                status(|it| it.site = Some(site.into())),
                Some(403),
                "{site}"
            );
        }
        assert_eq!(status(|it| it.method = "POST".into()), Some(405));
    }
}
