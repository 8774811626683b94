//! Turns a workload's remarks on single trials into flags of a cell.
//!
//! One flag for each kind of remark, with the number of trials affected on either side and the text of the first: a
//! doubt about every trial of one arm weighs more than one about a single trial. It labels and changes nothing:
//! whether a doubtful reading is wrong is not known here.
//! Limits: ignores unpaired trials, which are in no cell.

use tare_model::MetricSpec;
use tare_model::dossier::Flag;

use super::flag::flag;
use super::pairs::{Pairs, Side};
use crate::workload::Remark;

/// Returns the flags of the trials' remarks, in the order of their first appearance.
pub(crate) fn flags(pairs: &Pairs<'_>, metric: &MetricSpec) -> Vec<Flag> {
    let mut ids: Vec<&'static str> = Vec::new();
    let (env, base) = (pairs.env(), pairs.base());
    for remark in remarks_on(env, metric).chain(remarks_on(base, metric)) {
        if !ids.contains(&remark.id) {
            ids.push(remark.id);
        }
    }
    ids.into_iter()
        .map(|id| {
            let sides = [
                remark("", env, metric, id),
                remark("baseline, ", base, metric, id),
            ];
            let detail: Vec<String> = sides.into_iter().flatten().collect();
            flag(id, detail.join("; "))
        })
        .collect()
}

/// Returns the remarks of one side's trials on the metric.
fn remarks_on<'a>(
    side: &'a [Side<'a>],
    metric: &'a MetricSpec,
) -> impl Iterator<Item = &'a Remark> {
    side.iter()
        .flat_map(|(kept, _)| &kept.remarks)
        .filter(|remark| remark.concerns(metric.id))
}

/// `in 3 of 10 trials: …`.
fn remark(side: &str, trials: &[Side<'_>], metric: &MetricSpec, id: &str) -> Option<String> {
    let first = remarks_on(trials, metric).find(|remark| remark.id == id)?;
    let concerned = trials
        .iter()
        .filter(|(kept, _)| {
            let mut remarks = kept.remarks.iter();
            remarks.any(|remark| remark.id == id && remark.concerns(metric.id))
        })
        .count();
    Some(format!(
        "{side}in {concerned} of {} trials: {}",
        trials.len(),
        first.detail
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::kept_trial::KeptTrial;
    use crate::analyze::pairs::{Level, Pair, Reference};
    use crate::analyze::reading::Reading;

    tare_model::metrics! { METRIC = "disk.fio-read.rate", BytePerSecond, Higher, Disk: "Bytes."; }

    fn kept(remarks: Vec<Remark>) -> KeptTrial {
        KeptTrial {
            remarks: remarks.into_boxed_slice(),
            ..KeptTrial::default()
        }
    }

    #[test]
    fn remark_flag_counts_trials_per_side() {
        let doubt = |detail: &str| Remark::new("page-cache", detail);
        let elsewhere = doubt("of a neighbour").about("disk.fio-write.rate");
        let reading = Reading {
            typical: 1.0,
            floor: 1.0,
            total: 1.0,
            unsteady: false,
        };
        let env = [
            kept(vec![doubt("first")]),
            kept(vec![elsewhere]),
            kept(vec![doubt("second"), doubt("again")]),
        ];
        let base = [kept(vec![]), kept(vec![]), kept(vec![doubt("there")])];
        let pairs = Pairs::with(
            (0..)
                .zip(base.iter().zip(&env))
                .map(|(block, (base, env))| {
                    let base = Level {
                        first: (base, reading),
                        twin: None,
                    };
                    Pair::new(block, base, (env, reading), 0, Reference::arm(0))
                })
                .collect(),
            0,
        );
        let flags = flags(&pairs, &METRIC);
        assert_eq!(flags.len(), 1);
        assert_eq!(flags[0].id, "page-cache");
        assert_eq!(
            flags[0].detail,
            "in 2 of 3 trials: first; baseline, in 1 of 3 trials: there"
        );
    }
}
