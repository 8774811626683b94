//! `tare serve`: the runs of the store as pages, for a browser on this machine.
//!
//! Only questions for this very address are answered, and none that another site's page asks: a name that its owner
//! points to the loopback, or a form on a foreign page, gets nothing. Nothing is written.
//! What it cannot see: which user of the machine asks; the address is told on standard error alone.

use std::net::SocketAddr;
use std::path::Path;

use clap::Args;

use super::home::Place;
use super::{Exit, Failed, output, recount};
use crate::cx::loopback::{self, Answer, Question};
use crate::report;
use crate::report::html::Listed;
use crate::store::Store;

const PAGE: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Shows the runs of the store in a browser on this machine, until Ctrl-C. Other users of the machine can see them too
/// meanwhile.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The port on 127.0.0.1; 0 for any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

impl Serve {
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        let file = place.store_file()?;
        // Found out now rather than at the first question.
        Store::open_to_read(&file)?;
        let tell = |address: SocketAddr| {
            output::tell(&format!("http://{address}/ shows the runs; Ctrl-C ends it"));
        };
        let failed = |error| {
            Failed::new(
                Exit::Finding,
                format!("cannot hear on port {} of the loopback: {error}", self.port),
            )
            .hint("`--port 0` takes one that is free")
        };
        match loopback::serve(self.port, tell, move |address, question| {
            answered(address, question, &file)
        }) {
            Ok(never) => match never {},
            Err(error) => Err(failed(error)),
        }
    }
}

fn told(status: u16, text: &str) -> Answer {
    Answer {
        status,
        kind: TEXT,
        content: format!("{text}\n"),
    }
}

/// The answer to a question.
fn answered(address: SocketAddr, question: &Question, store: &Path) -> Answer {
    if let Some(refused) = refused(address, question) {
        return refused;
    }
    let found = page(&question.path, store);
    found.unwrap_or_else(|failed| {
        let status = match failed.exit {
            Exit::Usage => 404,
            _ => 500,
        };
        told(status, &output::printable(&failed.message))
    })
}

/// Why a question is not answered, if it is not.
fn refused(address: SocketAddr, question: &Question) -> Option<Answer> {
    let own = [address.to_string(), format!("localhost:{}", address.port())];
    let is_own = |name: &str| own.iter().any(|own| own == name);
    if !question.host.as_deref().is_some_and(is_own) {
        return Some(told(421, &format!("ask http://{address}/")));
    }
    let is_foreign = |origin: &str| !origin.strip_prefix("http://").is_some_and(is_own);
    let is_elsewhere = |site: &str| !matches!(site, "none" | "same-origin");
    if question.origin.as_deref().is_some_and(is_foreign)
        || question.site.as_deref().is_some_and(is_elsewhere)
    {
        return Some(told(403, "another site's page asks"));
    }
    if !matches!(question.method.as_str(), "GET" | "HEAD") {
        return Some(told(405, "there is nothing to change here"));
    }
    None
}

fn page(path: &str, store: &Path) -> Result<Answer, Failed> {
    let store = Store::open_to_read(store)?;
    if path == "/" {
        let runs = store.runs()?.into_iter().map(|line| Listed {
            run: line.id.to_string(),
            study: line.study,
            trials: line.n_trials,
        });
        return Ok(Answer {
            status: 200,
            kind: PAGE,
            content: report::html::index(&runs.collect::<Vec<_>>()),
        });
    }
    let name = path.strip_prefix("/run/").unwrap_or_default();
    let (name, is_json) = match name.strip_suffix(".json") {
        Some(name) => (name, true),
        None => (name, false),
    };
    if name.is_empty() || name.contains(['/', '%']) {
        return Ok(told(404, "there is no such page"));
    }
    let run = recount::resolve(&store, name)?;
    let dossier = recount::dossier(&store, &run)?;
    Ok(Answer {
        status: 200,
        kind: if is_json { JSON } else { PAGE },
        content: if is_json {
            report::json::to_string(&dossier)
        } else {
            report::html::page(&dossier)
        },
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
            host: Some("127.0.0.1:7431".into()),
            origin: None,
            site: None,
        };
        change(&mut question);
        refused(address, &question).map(|answer| answer.status)
    }

    #[test]
    fn only_questions_for_this_address_from_nowhere_else_are_answered() {
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
