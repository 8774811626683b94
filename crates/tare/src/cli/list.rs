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
        let wanted = |what: ListedKind| self.what.is_none_or(|only| only == what);
        if self.json {
            let mut all = serde_json::Map::new();
            if wanted(ListedKind::Environments) {
                all.insert("environments".into(), environments_json());
            }
            if wanted(ListedKind::Workloads) {
                all.insert("workloads".into(), workloads_json());
            }
            if wanted(ListedKind::Studies) {
                all.insert("studies".into(), studies_json()?);
            }
            if wanted(ListedKind::Causes) {
                all.insert("causes".into(), causes_json());
            }
            output::data(&format!("{:#}\n", serde_json::Value::Object(all)))?;
            return Ok(Exit::Done);
        }
        let mut parts = Vec::new();
        if wanted(ListedKind::Environments) {
            parts.push(format!(
                "Environments (`tare doctor` says which of them work here)\n{}",
                environments()
            ));
        }
        if wanted(ListedKind::Workloads) {
            parts.push(format!("Workloads\n{}", workloads()));
        }
        if wanted(ListedKind::Studies) {
            parts.push(format!("Studies\n{}", studies()?));
        }
        if wanted(ListedKind::Causes) {
            parts.push(format!(
                "Causes (what each reads, and how large it was seen to be)\n{}",
                causes(output::style())
            ));
        }
        output::text(&parts.join("\n"))?;
        Ok(Exit::Done)
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
    let settings = |driver: &dyn env::Driver| -> Vec<serde_json::Value> {
        driver
            .settings()
            .iter()
            .map(|setting| {
                json!({
                    "name": setting.name,
                    "doc": setting.doc,
                    "takes": setting.takes.to_string(),
                    "default": setting.default,
                    "was": setting.was,
                })
            })
            .collect()
    };
    let mechanisms = |driver: &dyn env::Driver| -> Vec<serde_json::Value> {
        let all = driver.mechanisms().all.iter();
        all.map(|mechanism| {
            let off = mechanism.off.iter();
            let off: Params = Params(
                off.map(|(name, set)| ((*name).to_owned(), (*set).into()))
                    .collect(),
            );
            json!({"title": mechanism.title, "off": off, "price": mechanism.price})
        })
        .collect()
    };
    env::DRIVERS.iter().map(|driver| json!({"id": driver.id(), "about": driver.about(), "settings": settings(*driver), "mechanisms": mechanisms(*driver)})).collect()
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
        let metrics: Vec<serde_json::Value> = workload
            .metrics()
            .iter()
            .map(|metric| json!({"id": metric.id, "unit": metric.unit, "better": metric.better, "class": metric.class, "doc": metric.doc}))
            .collect();
        let params: Vec<serde_json::Value> = workload
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
    let rows: Vec<Vec<String>> = read_studies()?
        .iter()
        .map(|study| {
            let arms: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
            vec![
                format!("  {}", study.id),
                about(plan::expected_ns(study)),
                format!(
                    "{} ({} × {} workloads)",
                    study.title,
                    arms.join(", "),
                    study.workloads.len()
                ),
            ]
        })
        .collect();
    Ok(output::columns(&rows))
}

/// `about 90 s`, `about 9 min`.
fn about(ns: u64) -> String {
    format!("about {}", output::lasting(ns))
}

fn studies_json() -> Result<serde_json::Value, Failed> {
    let studies = read_studies()?;
    let mut list = Vec::with_capacity(studies.len());
    for study in &studies {
        let mut value =
            serde_json::to_value(study).map_err(|error| Failed::new(Exit::Failure, error))?;
        value["expected_ns"] = plan::expected_ns(study).into();
        list.push(value);
    }
    Ok(list.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn study_duration_prints_seconds_or_minutes() {
        assert_eq!(about(90_000_000_000), "about 90 s");
        assert_eq!(about(539_500_000_000), "about 9 min");
        assert_eq!(about(1), "about 1 s");
    }
}
