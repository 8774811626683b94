//! Exports every reading of a run in long form: one series per arm and metric, one point per block, with the slices
//! of interleaved arms.
//!
//! Void trials are excluded, so that computations on these numbers start where the report started. Limits: has no
//! trials that left nothing; those are in the dossier's failures.

use tare_model::{Better, Params, Path, Spread, Study};

use super::collect::Collector;

/// The readings of one metric of one workload in one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The arm; A′ is a separate one.
    pub arm: String,
    /// The workload.
    pub workload: String,
    /// Its parameters.
    pub params: Params,
    /// Path of a two-ended workload.
    pub path: Option<Path>,
    /// Instances at once.
    pub instances: u32,
    /// Where the instances ran.
    pub spread: Option<Spread>,
    /// The metric.
    pub metric: &'static str,
    /// Whether lower or higher is better.
    pub unit: &'static str,
    /// Which direction is the better one.
    pub better: Better,
    /// In the order of blocks.
    pub points: Vec<Point>,
}

/// One trial's reading of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The block.
    pub block: u32,
    /// The launch of the arms that it belongs to.
    pub launch: u32,
    /// The arm's position in the order of the block.
    pub position: u32,
    /// The median of its observations.
    pub typical: f64,
    /// The best of them.
    pub best: f64,
    /// The slices in the order of their cycles; empty if the trial ran whole.
    pub slices: Vec<f32>,
}

/// All series of a run, in the order of the study.
pub(crate) fn all(study: &Study, collected: &Collector<'_>) -> Vec<Series> {
    let mut all = Vec::new();
    for (key, group) in &collected.groups {
        let Some(workload) = group.workload else {
            continue;
        };
        for (place, metric) in workload.metrics().iter().enumerate() {
            for (arm, kept) in study.arms.iter().zip(&group.arms) {
                let points: Vec<Point> = kept
                    .iter()
                    .filter_map(|(block, kept)| {
                        let reading = kept.readings[place]?;
                        let slices = kept.turns.slices(place);
                        Some(Point {
                            block,
                            launch: kept.launch,
                            position: kept.position,
                            typical: reading.typical,
                            best: reading.floor,
                            slices: slices.map_or_else(Vec::new, <[f32]>::to_vec),
                        })
                    })
                    .collect();
                if !points.is_empty() {
                    all.push(Series {
                        arm: arm.id.to_string(),
                        workload: group.name.clone(),
                        params: group.params.clone(),
                        path: group.path,
                        instances: key.instances,
                        spread: group.spread,
                        metric: metric.id,
                        unit: metric.unit.symbol(),
                        better: metric.better,
                        points,
                    });
                }
            }
        }
    }
    all
}
