//! `tare list`: environments, workloads, studies and causes.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde_json::json;
use tare_model::Params;

use super::{Exit, Failed, output};
use crate::env::mechanism::Set;
use crate::report::terminal::{Style, listed};
use crate::{cause, config, env, plan, workload};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListedKind {
    Environments,
    Workloads,
    Studies,
    Causes,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// What to list; everything when omitted.
    what: Option<ListedKind>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn execute(&self) -> Result<Exit, Failed> {
        let is_wanted = |kind: &&ListedKind| self.what.is_none_or(|only| only == **kind);
        let kinds = ListedKind::value_variants().iter().filter(is_wanted);
        if self.json {
            let all: Result<serde_json::Map<_, _>, Failed> =
                kinds.map(|kind| kind.json()).collect();
            output::data(&format!("{:#}\n", serde_json::Value::Object(all?)))?;
        } else {
            let parts: Result<Vec<_>, Failed> = kinds.map(|kind| kind.text()).collect();
            output::text(&parts?.join("\n"))?;
        }
        Ok(Exit::Done)
    }
}

impl ListedKind {
    fn json(self) -> Result<(String, serde_json::Value), Failed> {
        let (name, value) = match self {
            Self::Environments => ("environments", environments_json()),
            Self::Workloads => ("workloads", workloads_json()),
            Self::Studies => ("studies", studies_json()?),
            Self::Causes => ("causes", causes_json()),
        };
        Ok((name.to_owned(), value))
    }

    fn text(self) -> Result<String, Failed> {
        let (title, rows) = match self {
            Self::Environments => (
                "Environments (`tare doctor` says which of them work here)",
                environments(),
            ),
            Self::Workloads => ("Workloads", workloads()),
            Self::Studies => ("Studies", studies()?),
            Self::Causes => (
                "Causes (what each reads, and how large it was seen to be)",
                causes(output::style()),
            ),
        };
        Ok(format!("{title}\n{rows}"))
    }
}

fn environments() -> String {
    let mut rows = Vec::new();
    for driver in env::DRIVERS {
        rows.push(vec![
            format!("  {}", driver.id()),
            driver.about().to_owned(),
        ]);
        for setting in driver.settings() {
            rows.push(vec![
                String::new(),
                format!("{}: {}", setting.name, meaning(setting)),
            ]);
        }
        for mechanism in driver.mechanisms().all {
            let off: Vec<String> = mechanism.off.iter().map(switched_off).collect();
            rows.push(vec![
                String::new(),
                format!(
                    "mechanism {}: off with {}, and then {}",
                    mechanism.title,
                    off.join(" and "),
                    mechanism.price
                ),
            ]);
        }
    }
    output::columns(&rows)
}

fn meaning(setting: &env::Setting) -> String {
    let default = match setting.default {
        "" => "must be said".to_owned(),
        default => format!("default: {default}"),
    };
    format!("{}; {}; {default}", setting.doc, setting.takes)
}

fn switched_off((name, set): &(&str, Set)) -> String {
    match set {
        Set::Text(text) => format!("`{name} = \"{text}\"`"),
        Set::Flag(flag) => format!("`{name} = {flag}`"),
    }
}

fn environments_json() -> serde_json::Value {
    let setting = |setting: &env::Setting| {
        json!({
            "name": setting.name,
            "doc": setting.doc,
            "takes": setting.takes.to_string(),
            "default": setting.default,
            "was": setting.was,
        })
    };
    let mechanism = |mechanism: &env::mechanism::Mechanism| {
        let off = mechanism.off.iter();
        let off = off.map(|(name, set)| ((*name).to_owned(), (*set).into()));
        json!({"title": mechanism.title, "off": Params(off.collect()), "price": mechanism.price})
    };
    let describe = |driver: &&dyn env::Driver| {
        let settings: Vec<_> = driver.settings().iter().map(setting).collect();
        let mechanisms: Vec<_> = driver.mechanisms().all.iter().map(mechanism).collect();
        json!({"id": driver.id(), "about": driver.about(), "settings": settings, "mechanisms": mechanisms})
    };
    env::DRIVERS.iter().map(describe).collect()
}

fn workloads() -> String {
    let mut text = String::new();
    for workload in workload::WORKLOADS {
        let paths: Vec<&str> = workload.paths().iter().map(|path| path.name()).collect();
        let paths = if paths.is_empty() {
            String::new()
        } else {
            format!(" (paths: {})", paths.join(", "))
        };
        let _ = writeln!(text, "  {}: {}{paths}", workload.id(), workload.about());
        let rows: Vec<Vec<String>> = workload
            .params()
            .iter()
            .map(|param| {
                vec![
                    format!("      {}", param.name),
                    format!("[{}]", tare_model::Value::from(param.default)),
                    param.doc.to_owned(),
                ]
            })
            .chain(workload.metrics().iter().map(|metric| {
                vec![
                    format!("    {}", metric.id),
                    metric.unit.symbol().to_owned(),
                    metric.doc.to_owned(),
                ]
            }))
            .collect();
        text.push_str(&output::columns(&rows));
    }
    text
}

fn workloads_json() -> serde_json::Value {
    let describe = |workload: &&dyn workload::Workload| {
        let metrics: Vec<_> = workload
            .metrics()
            .iter()
            .map(|metric| json!({"id": metric.id, "unit": metric.unit, "better": metric.better, "class": metric.class, "doc": metric.doc}))
            .collect();
        let params: Vec<_> = workload
            .params()
            .iter()
            .map(|param| json!({"name": param.name, "default": tare_model::Value::from(param.default), "doc": param.doc}))
            .collect();
        json!({"id": workload.id(), "about": workload.about(), "paths": workload.paths(), "params": params, "metrics": metrics})
    };
    workload::WORKLOADS.iter().map(describe).collect()
}

fn read_studies() -> Result<Vec<tare_model::Study>, Failed> {
    config::builtin::STUDIES
        .iter()
        .map(|builtin| {
            config::parse(builtin.id, builtin.text, &config::Adjustments::default())
                .map_err(Failed::from)
        })
        .collect()
}

fn studies() -> Result<String, Failed> {
    let studies = read_studies()?;
    let rows = studies.iter().map(|study| {
        let arms: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
        vec![
            format!("  {}", study.id),
            format!("about {}", output::lasting(plan::expected_ns(study))),
            format!(
                "{} ({} × {} workloads)",
                study.title,
                arms.join(", "),
                study.workloads.len()
            ),
        ]
    });
    Ok(output::columns(&rows.collect::<Vec<_>>()))
}

fn studies_json() -> Result<serde_json::Value, Failed> {
    let describe = |study: tare_model::Study| {
        let mut value = json!(study);
        value["expected_ns"] = plan::expected_ns(&study).into();
        value
    };
    Ok(read_studies()?.into_iter().map(describe).collect())
}

/// Formats the catalogue: for each cause its identifier, title, typical size and inputs.
fn causes(style: Style) -> String {
    let mut text = String::new();
    for cause in cause::CAUSES {
        let details = [
            ("size: ", cause.size.to_owned()),
            ("reads: ", cause.needs.join(", ")),
        ];
        listed(&mut text, cause.id, cause.title, &details, style);
    }
    text
}

fn causes_json() -> serde_json::Value {
    let describe = |cause: &&cause::Entry| {
        json!({
            "id": cause.id,
            "title": cause.title,
            "mechanism": cause.mechanism,
            "needs": cause.needs,
            "size": cause.size,
            "advice": cause.advice,
            "price": cause.price,
        })
    };
    cause::CAUSES.iter().map(describe).collect()
}
