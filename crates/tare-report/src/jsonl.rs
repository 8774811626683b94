//! Every reading as lines of JSON: one object a block, with the slices where arms took turns.
//!
//! Each line stands for itself, so that a stream of them can be filtered, joined with others' and loaded without knowing
//! the whole. What it cannot see: trials that left nothing.

use serde::Serialize;
use tare_model::{Better, Params};

use super::format::{Format, Made, Material};

#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    arm: &'a str,
    workload: &'a str,
    params: &'a Params,
    path: Option<String>,
    instances: u32,
    metric: &'a str,
    unit: &'a str,
    better: Better,
    block: u32,
    launch: u32,
    position: u32,
    value: f64,
    best: f64,
    #[serde(skip_serializing_if = "<[f32]>::is_empty")]
    slices: &'a [f32],
}

/// The lines.
pub static JSON_LINES: Format = Format {
    needs_readings: true,
    ..Format::new(
        "jsonl",
        "every block of every arm with its slices, one JSON object per line",
        make,
    )
};

fn make(material: &Material<'_>) -> Made {
    let mut out = String::new();
    for series in material.readings {
        for point in &series.points {
            let line = Line {
                run: &material.dossier.run,
                arm: &series.arm,
                workload: &series.workload,
                params: &series.params,
                path: series.path.map(|path| path.to_string()),
                instances: series.instances,
                metric: series.metric,
                unit: series.unit,
                better: series.better,
                block: point.block,
                launch: point.launch,
                position: point.position,
                value: point.typical,
                best: point.best,
                slices: &point.slices,
            };
            let line = serde_json::to_string(&line);
            out.push_str(&line.expect("texts, finite numbers and maps with text keys"));
            out.push('\n');
        }
    }
    Made::Text(out)
}
