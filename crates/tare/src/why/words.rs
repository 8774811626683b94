//! Messages of `tare why` before and between its rounds, and its default environment.

use tare_model::CommandReport;

use super::served::named;
use crate::env::{self, Availability};
use crate::failed::{Exit, Failed};
use crate::output;
use crate::report;
use crate::why::engine::{Next, Reason};
use crate::why::observed::Observed;
use crate::why::{Ask, First};
use crate::workload::user_command::REQUEST;

/// The error if six blocks do not fit into the budget.
pub(crate) fn too_long(ask: &Ask, first: &First) -> Failed {
    let (host, inside) = (first.host.wall_ns as f64, first.env.wall_ns as f64);
    let needed_s = 6.0 * (host + inside) / 1e9 * 1.3 + 20.0;
    Failed::failure(format!(
            "the command takes {} {} and took {} in `{}`, once: {:.2}×, without an interval; six blocks of both do not fit into the budget",
            report::terminal::time(host),
            if ask.own.is_some() {
                "in what it is compared with"
            } else {
                "on the host"
            },
            report::terminal::time(inside),
            ask.driver,
            inside / host.max(1.0)
        ),
    )
    .hint(format!(
        "`--budget {}m` compares them, three times that tries suspects too; or give the command less to do",
        (needed_s / 60.0).ceil()
    ))
}

/// How long the command, or a request, took in a first run.
pub(super) fn took(look: &Observed) -> String {
    let request_ns = request_ns(&look.report);
    let time = report::terminal::time(request_ns.unwrap_or(look.wall_ns as f64));
    if look.report.is_ended_early {
        format!("more than {time}")
    } else {
        time
    }
}

/// The typical time of a request, if Tare sent the requests.
fn request_ns(report: &CommandReport) -> Option<f64> {
    report
        .pick
        .as_ref()
        .filter(|pick| pick.metric.as_deref() == Some(REQUEST))?;
    let text = String::from_utf8_lossy(&report.stdout.0);
    named(&text, "typical_ns")?.parse().ok()
}

/// Prints how long the command, or a request, took in the first runs.
pub(super) fn tell_first(ask: &Ask, first: &First) {
    output::tell(&format!(
        "`{}`: {} on the host, {} in `{}` at the first look",
        report::command_line(&ask.command),
        took(&first.host),
        took(&first.env),
        ask.driver
    ));
    for remark in &first.remarks {
        output::tell(&format!("note: {remark}"));
    }
}

/// Prints what is measured next, and why.
pub(crate) fn tell_next(next: &Next, left_ns: u64) {
    match &next.reason {
        Reason::Closer => output::tell("looking more closely at both sides"),
        Reason::Undecided => output::tell("more blocks for what was tried and is not decided"),
        Reason::Differences { what, is_restart } => {
            if *is_restart {
                output::tell("nothing was proved: the differences are searched once more");
            }
            output::tell(what);
        }
        Reason::Suspects {
            n_tried,
            with_ladder,
        } => output::tell(&format!(
            "trying {n_tried} suspect{}{}: {} arms, at most {} more",
            if *n_tried == 1 { "" } else { "s" },
            if *with_ladder {
                " and climbing the ladder"
            } else {
                ""
            },
            next.study.arms.len(),
            report::terminal::time(left_ns as f64),
        )),
    }
}

/// The first available one of the usual environments.
pub(crate) fn usual(cx: &crate::cx::Context<'_>) -> Result<String, Failed> {
    let mut reasons = Vec::new();
    for driver in env::usual() {
        match driver.detect(cx) {
            Availability::Ready(_) => return Ok(driver.id().to_owned()),
            Availability::Absent { why, .. } => reasons.push(format!("{}: {why}", driver.id())),
        }
    }
    Err(Failed::new(
        Exit::Environment,
        format!(
            "there is no environment to ask about: {}",
            reasons.join("; ")
        ),
    )
    .hint("`tare doctor` says how to get one; `--env NAME` names another"))
}
