//! Every reading as JSON Lines: one object per block, with slices if arms are interleaved.
//!
//! Each line is self-contained, so a stream can be filtered, joined with others and loaded line by line.
//!
//! Limits: trials without a reading are missing.

use serde::Serialize;
use tare_model::{Better, Params};

use super::format::{Format, Material, ReportOutput};

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

/// The JSON Lines format.
pub static JSON_LINES: Format = Format {
    needs_readings: true,
    ..Format::new(
        "jsonl",
        "every block of every arm with its slices, one JSON object per line",
        make,
    )
};

fn make(material: &Material<'_>) -> ReportOutput {
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
    ReportOutput::Text(out)
}
