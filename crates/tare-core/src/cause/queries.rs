//! Queries on a case: which cells are slower, which facts differ, how many CPUs are usable.
//!
//! A fact that only one side reports is not a difference: unknown does not mean unequal. Limits: sees only facts that
//! the agent or a driver records.

use std::path::Path;

use tare_model::dossier::DossierCell;
use tare_model::facts::cpu_list;
pub use tare_model::facts::{cpu_quota as quota, memory_limit};
use tare_model::{Better, Facts};
use tare_model::{counter, fact};

use super::kind::{Kind, is_own_probe};
use super::triage::{Family, Lead, Usage, triage};
use super::{ArmEvidence, Case};

/// Factor on the likelihood if no counter was read.
const WITHOUT_COUNTERS: f64 = 0.8;
/// The metric for CPU time; a test checks it against the workload's name.
const CPU: &str = "command.cpu.time";
/// From this share of the command's time on a port proxy counts as busy.
const BUSY_PROXY: f64 = 0.05;
/// The default packet size of networks and engines, in bytes.
const USUAL_MTU: f64 = 1500.0;
/// The arm's packets count as small if the uplink's are this many times as large.
const SMALL: f64 = 1.5;
/// How many times busier it must be than while the command ran outside: others may use it too.
const BUSIER: f64 = 3.0;
/// Factor on the likelihood if the counters indicate other families.
const AGAINST_COUNTERS: f64 = 0.35;

impl<'a> Case<'a> {
    /// Returns slower cells of these kinds, or of an unknown one.
    pub fn costs(&self, kinds: &[Kind]) -> Vec<usize> {
        self.pick(|cell| is_cost(cell) && matches(cell, kinds))
    }

    /// Returns slower cells of exactly these kinds.
    pub fn costs_only(&self, kinds: &[Kind]) -> Vec<usize> {
        self.pick(|cell| is_cost(cell) && kinds.contains(&Kind::for_cell(cell)))
    }

    /// Returns cells of these kinds that differ in either direction.
    pub fn differences(&self, kinds: &[Kind]) -> Vec<usize> {
        self.pick(|cell| (is_cost(cell) || cell.verdict.is_gain()) && matches(cell, kinds))
    }

    /// Returns the cells for which `wanted` holds.
    pub fn pick(&self, wanted: impl Fn(&DossierCell) -> bool) -> Vec<usize> {
        (0..self.cells.len())
            .filter(|index| wanted(&self.cells[*index]))
            .collect()
    }

    /// Returns the slowest of these cells.
    pub fn largest(&self, cells: &[usize]) -> Option<&'a DossierCell> {
        let cells = cells.iter().filter_map(|index| self.cells.get(*index));
        cells.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    }

    /// Formats the largest of these slowdowns as a clause: "`command.wall.time` is 2.6× slower".
    pub fn cost_clause(&self, cells: &[usize]) -> String {
        let Some(cell) = self.largest(cells) else {
            return "nothing costs more".to_owned();
        };
        let more = match cells.len() {
            0 | 1 => String::new(),
            2 => " (and one more metric)".to_owned(),
            n => format!(" (and {} more metrics)", n - 1),
        };
        format!("{}{more}", clause(cell))
    }

    /// Returns a fact of the arm.
    pub fn fact(&self, name: &str) -> Option<&'a str> {
        self.arm.fact(name)
    }

    /// Returns a numeric fact of the arm.
    pub fn number(&self, name: &str) -> Option<f64> {
        number(&self.arm.facts, name)
    }

    /// Whether a fact of the arm contains one of these words.
    pub fn says(&self, name: &str, words: &[&str]) -> bool {
        self.fact(name)
            .is_some_and(|value| words.iter().any(|word| value.contains(word)))
    }

    /// Returns the baseline's and the arm's value of a fact that both report and that differs.
    pub fn differs(&self, name: &str) -> Option<(&'a str, &'a str)> {
        let (there, here) = (self.baseline.fact(name)?, self.fact(name)?);
        (there != here).then_some((there, here))
    }

    /// Returns the names of this family whose facts differ, with both values.
    pub fn all_differing(&self, family: &str) -> Vec<(&'a str, &'a str, &'a str)> {
        let prefix = fact::beginning(family);
        let facts = self.arm.facts.range(prefix.to_owned()..);
        facts
            .take_while(|(name, _)| name.starts_with(prefix))
            .filter_map(|(name, _)| {
                let (there, here) = self.differs(name)?;
                Some((name.as_str(), there, here))
            })
            .collect()
    }

    /// Whether both run on one boot of one kernel; `None` if a side does not report it.
    pub fn same_kernel(&self) -> Option<bool> {
        let (there, here) = (
            self.baseline.fact(fact::KERNEL_BOOT_ID)?,
            self.fact(fact::KERNEL_BOOT_ID)?,
        );
        Some(there == here)
    }

    /// Whether syscalls pass a seccomp filter in the arm, and none in the baseline.
    pub fn is_filtered(&self) -> bool {
        let mode = |arm: &ArmEvidence| arm.fact(fact::STATUS_SECCOMP).map(|mode| mode == "2");
        mode(self.arm) == Some(true) && mode(self.baseline) == Some(false)
    }

    /// Returns the arm's setting of this name as text.
    pub fn setting(&self, name: &str) -> Option<String> {
        Some(self.arm.settings.value(name)?.to_string())
    }

    /// Whether the arm's setting of this name is this text.
    pub fn is_set(&self, name: &str, value: &str) -> bool {
        self.setting(name).as_deref() == Some(value)
    }

    /// How busy the engine's port proxies were while the command ran in the baseline and in the arm, as shares of its
    /// run time; `None` if there were none or they were not observed.
    pub fn proxy_busy(&self) -> Option<(f64, f64)> {
        let busy = |facts: &Facts| {
            let took = number(facts, fact::COMMAND_WALL).filter(|took| *took > 0.0)?;
            Some(number(facts, fact::COMMAND_PROXY)? / took)
        };
        // Without a proxy on this side nothing was copied.
        Some((
            busy(&self.baseline.facts).unwrap_or(0.0),
            busy(&self.arm.facts)?,
        ))
    }

    /// The device of the arm's network that holds packets back, and the kind of its queue; `None` if there is none or
    /// the arm shares the baseline's network.
    pub fn link_held_back(&self) -> Option<&'a str> {
        let held = self
            .fact(fact::NET_HELD_BACK)
            .filter(|list| *list != "none")?;
        let shares = matches!(
            (self.baseline.fact(fact::NS_NET), self.fact(fact::NS_NET)),
            (Some(there), Some(here)) if there == here
        );
        (!shares).then_some(held)
    }

    /// The MTU of the arm and of the machine's uplink if the arm's is much smaller: by at least a third, so that the
    /// same data needs half as many packets more. The networks' default is not small compared with the jumbo frames
    /// of a data centre.
    pub fn small_packets(&self) -> Option<(f64, f64)> {
        let here = self.number(fact::NET_DEFAULT_MTU)?;
        let uplink = number(&self.baseline.facts, fact::NET_DEFAULT_MTU)?;
        (here * SMALL <= uplink.min(USUAL_MTU)).then_some((here, uplink))
    }

    /// Whether the command kept the engine's port proxies busy inside, and not outside.
    pub fn is_proxied(&self) -> bool {
        self.proxy_busy()
            .is_some_and(|(there, here)| here >= BUSY_PROXY && here >= BUSIER * there)
    }

    /// Returns those cells for whose workloads the counters indicate one of these families.
    pub fn led_by(&self, cells: &[usize], families: &[Family]) -> Vec<usize> {
        let is_led = |cell: &usize| self.shows(&[*cell], families);
        cells.iter().copied().filter(is_led).collect()
    }

    /// Whether the counters of the cells' workloads indicate one of these families.
    pub fn shows(&self, cells: &[usize], families: &[Family]) -> bool {
        let leads = self.leads(cells);
        leads.iter().any(|lead| families.contains(&lead.family))
    }

    /// Whether the counters indicate other families only.
    pub fn contradicts(&self, cells: &[usize], families: &[Family]) -> bool {
        !self.leads(cells).is_empty() && !self.shows(cells, families)
    }

    /// Returns those cells that are not of Tare's built-in probes.
    pub fn without_probes(&self, mut cells: Vec<usize>) -> Vec<usize> {
        cells.retain(|index| !is_own_probe(&self.cells[*index]));
        cells
    }

    /// Returns the families that the counters of the cells' workloads indicate, the strongest of each workload first.
    pub fn leads(&self, cells: &[usize]) -> Vec<Lead> {
        let mut leads: Vec<Lead> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for cell in cells.iter().filter_map(|index| self.cells.get(*index)) {
            if seen.contains(&cell.workload.as_str()) {
                continue;
            }
            seen.push(&cell.workload);
            let of = |arm: &ArmEvidence| {
                let usage = Usage::per_unit(arm.counters.get(&cell.workload)?);
                Some(if cell.metric == CPU {
                    usage.on_processor_only()
                } else {
                    usage
                })
            };
            if let (Some(base), Some(arm)) = (of(self.baseline), of(self.arm)) {
                leads.extend(triage(&base, &arm));
            }
        }
        leads
    }

    /// How well the counters match these families, as a factor on a likelihood.
    pub fn fit(&self, cells: &[usize], families: &[Family]) -> f64 {
        if self.shows(cells, families) {
            1.0
        } else if self.contradicts(cells, families) {
            AGAINST_COUNTERS
        } else {
            WITHOUT_COUNTERS
        }
    }

    /// Why the counters match these families, one line each.
    pub fn because(&self, cells: &[usize], families: &[Family]) -> Vec<String> {
        let mut lines: Vec<String> = self
            .leads(cells)
            .into_iter()
            .filter(|lead| families.contains(&lead.family))
            .map(|lead| format!("counters: {}", lead.because))
            .collect();
        lines.dedup();
        lines.truncate(2);
        lines
    }

    /// Returns the counter per unit of work of the first workload among the cells that has it, baseline's and arm's.
    pub fn counter(&self, cells: &[usize], name: &str) -> Option<(f64, f64)> {
        cells
            .iter()
            .filter_map(|index| self.cells.get(*index))
            .find_map(|cell| {
                let of = |arm: &ArmEvidence| {
                    let units = arm
                        .counter(&cell.workload, counter::UNITS)
                        .filter(|it| *it > 0.0);
                    Some(arm.counter(&cell.workload, name)? / units.unwrap_or(1.0))
                };
                Some((of(self.baseline)?, of(self.arm)?))
            })
    }
}

/// Location of files on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocation<'a> {
    /// The path, the same on both sides; `None` for the probes' files, which are elsewhere on each side.
    pub path: Option<&'a str>,
    /// Prefix of the baseline's facts about it.
    there: String,
    /// Prefix of the arm's facts about it.
    here: String,
}

impl FileLocation<'_> {
    /// Returns a fact about both mounts, for example [`fact::MOUNT_FSTYPE`]: the baseline's and the arm's.
    pub fn part<'a>(&self, case: &Case<'a>, part: &str) -> Option<(&'a str, &'a str)> {
        let there = case.baseline.fact(&about(&self.there, part))?;
        Some((there, self.part_here(case, part)?))
    }

    /// Returns a fact about the arm's mount, even if the baseline does not report it.
    pub fn part_here<'a>(&self, case: &Case<'a>, part: &str) -> Option<&'a str> {
        case.fact(&about(&self.here, part))
    }

    /// Describes the location: ``under `/data` ``.
    pub fn words(&self) -> String {
        match self.path {
            Some(path) => format!("under `{path}`"),
            None => "under the files".to_owned(),
        }
    }
}

impl<'a> Case<'a> {
    /// Returns the locations of the measured files: the paths that a user's command was observed to use, else the
    /// probes' directory.
    pub fn places(&self) -> Vec<FileLocation<'a>> {
        if self.baseline.fact(fact::COMMAND_DIRECTORY).is_none() {
            return match (
                work_mount(&self.baseline.facts),
                work_mount(&self.arm.facts),
            ) {
                (there, Some(here)) => vec![FileLocation {
                    path: None,
                    there: there.unwrap_or_else(|| fact::beginning(fact::MOUNT).to_owned()),
                    here,
                }],
                _ => Vec::new(),
            };
        }
        let (base, arm) = (self.baseline, self.arm);
        let known: Vec<&'a str> = base
            .facts
            .keys()
            .filter_map(|name| {
                let rest = name.strip_prefix(fact::beginning(fact::COMMAND_MOUNT))?;
                rest.strip_suffix(fact::ending(fact::MOUNT_FSTYPE))
            })
            .filter(|path| {
                let mount = fact::name_for(fact::COMMAND_MOUNT, path);
                arm.facts.contains_key(&about(&mount, fact::MOUNT_FSTYPE))
            })
            .collect();
        let used = [base, arm]
            .into_iter()
            .filter_map(|side| side.fact(fact::COMMAND_OPENED))
            .flat_map(str::lines)
            .chain(base.fact(fact::COMMAND_DIRECTORY));
        let mut paths: Vec<&'a str> = used
            .filter_map(|file| {
                let above = known
                    .iter()
                    .copied()
                    .filter(|path| Path::new(file).starts_with(path));
                above.max_by_key(|path| path.len())
            })
            .collect();
        paths.sort_unstable();
        paths.dedup();
        let place = |path: &'a str| FileLocation {
            path: Some(path),
            there: fact::name_for(fact::COMMAND_MOUNT, path),
            here: fact::name_for(fact::COMMAND_MOUNT, path),
        };
        paths.into_iter().map(place).collect()
    }
}

/// Builds the name of a fact about this mount from the pattern for any mount.
fn about(mount: &str, pattern: &str) -> String {
    format!("{mount}{}", fact::ending(pattern))
}

/// Whether a cell's verdict is a cost.
pub fn is_cost(cell: &DossierCell) -> bool {
    cell.verdict.is_cost()
}

fn matches(cell: &DossierCell, kinds: &[Kind]) -> bool {
    let kind = Kind::for_cell(cell);
    kind == Kind::Any || kinds.contains(&kind)
}

/// The cell's cost ratio; 1 if it has none.
pub fn ratio(cell: &DossierCell) -> f64 {
    cell.ratio.map_or(1.0, |span| span.point)
}

/// Formats a ratio as a clause: "`command.wall.time` is 2.6× slower".
pub fn clause(cell: &DossierCell) -> String {
    format!("`{}` {}", cell.metric, words(cell))
}

/// Formats a cell's ratio as the end of a clause; for a rate, how much lower it is.
pub fn words(cell: &DossierCell) -> String {
    let quotient = ratio(cell);
    let percent = 100.0 * (quotient - 1.0).abs();
    let digits = usize::from(quotient < 10.0);
    match cell.better {
        Better::Higher if quotient >= 1.0 => {
            let less = 100.0 * (1.0 - 1.0 / quotient);
            format!("gives {less:.*} % less", usize::from(less > 90.0))
        }
        _ if quotient >= 2.0 => format!("is {quotient:.digits$}× slower"),
        _ if quotient >= 1.0 => format!("is {percent:.0} % slower"),
        _ => format!("is {percent:.0} % faster"),
    }
}

/// Returns a numeric fact.
pub fn number(facts: &Facts, name: &str) -> Option<f64> {
    facts.get(name)?.trim().parse().ok()
}

/// Major and minor number of the kernel's release.
pub fn kernel(facts: &Facts) -> Option<(u32, u32)> {
    let mut parts = facts.get(fact::KERNEL_RELEASE)?.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// How many CPUs a list such as `0-3,6` names.
pub fn cpus_in(list: &str) -> Option<usize> {
    cpu_list(list).map(|cpus| cpus.len())
}

/// Number of usable CPUs: those of the affinity, up to the quota.
pub fn usable_cpus(facts: &Facts) -> Option<f64> {
    let allowed = facts.get(fact::CPU_AFFINITY).and_then(|list| cpus_in(list));
    let allowed = allowed
        .map(|count| count as f64)
        .or_else(|| number(facts, fact::CPU_COUNT));
    match (allowed, quota(facts)) {
        (Some(allowed), Some(quota)) => Some(allowed.min(quota)),
        (allowed, quota) => allowed.or(quota),
    }
}

/// The mount of the probes' files, as the fact's name without its last part; that of `/` if only it is known.
pub fn work_mount(facts: &Facts) -> Option<String> {
    let mounts = facts.keys().filter_map(|name| {
        let path = fact::what(fact::MOUNT_FSTYPE, name)?;
        Some((path != "/", fact::name_for(fact::MOUNT, path)))
    });
    mounts.max().map(|(_, name)| name)
}

/// Returns a fact about the work mount, for example [`fact::MOUNT_FSTYPE`].
pub fn of_work_mount<'a>(facts: &'a Facts, part: &str) -> Option<&'a str> {
    let mount = work_mount(facts)?;
    facts.get(&about(&mount, part)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::super::tests::composed::{self, Composed};
    use super::*;
    use crate::parity::tests::facts;

    #[test]
    fn cpu_metric_name_matches_user_command_workload() {
        assert_eq!(CPU, crate::workload::user_command::CPU);
    }

    #[test]
    fn usable_cpus_are_minimum_of_affinity_and_quota() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<f64>);
        let cases: [Case<'_>; 5] = tare_model::rows! {
            (&[("cpu.affinity", "0-3,6")], Some(5.0)),
            (&[("cpu.affinity", "0-3"), ("cgroup.cpu.max", "150000 100000")], Some(1.5)),
            (&[("cpu.affinity", "0"), ("cgroup.cpu.max", "max 100000")], Some(1.0)),
            (&[("cgroup.cpu.cfs_quota_us", "-1"), ("cgroup.cpu.cfs_period_us", "100000"), ("cpu.count", "2")], Some(2.0)),
            (&[], None),
        };
        for (pairs, expected) in cases {
            assert_eq!(usable_cpus(&facts(pairs)), expected, "{pairs:?}");
        }
        for wrong in ["", "a", "3-1", "-"] {
            assert_eq!(cpus_in(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_mount_under_the_work_is_not_that_of_the_root() {
        let known = facts(&[
            ("mount./.fstype", "overlay"),
            ("mount./tare-work.fstype", "9p"),
        ]);
        assert_eq!(of_work_mount(&known, fact::MOUNT_FSTYPE), Some("9p"));
        assert_eq!(
            of_work_mount(&facts(&[("mount./.fstype", "ext4")]), fact::MOUNT_FSTYPE),
            Some("ext4")
        );
        assert_eq!(work_mount(&Facts::new()), None);
    }

    #[test]
    fn the_places_of_a_command_are_those_that_it_uses() {
        let of = |opened: &str| {
            Composed::new("container")
                .both("command.directory", "/work")
                .both("command.mount./work.fstype", "ext4")
                .both("command.mount./tmp.fstype", "ext4")
                .both("command.mount./work/data.fstype", "ext4")
                .base("command.mount./only.fstype", "ext4")
                .both("mount./.fstype", "ext4")
                .fact("command.opened", opened)
        };
        for (opened, expected) in [
            ("", vec!["/work"]),
            ("/work/data/x\n/work/database", vec!["/work", "/work/data"]),
            ("/tmp/deep/er\n/only/x\n/srv/y", vec!["/tmp", "/work"]),
        ] {
            let composed = of(opened);
            let case = composed.case();
            let places = case.places();
            let paths: Vec<&str> = places.iter().filter_map(|place| place.path).collect();
            assert_eq!(paths, expected, "{opened}");
            assert_eq!(
                places[0].part(&case, fact::MOUNT_FSTYPE),
                Some(("ext4", "ext4"))
            );
        }
        let probes = Composed::new("docker").fact("mount./work.fstype", "xfs");
        let places = probes.case().places();
        assert_eq!(places[0].path, None);
        assert_eq!(
            places[0].part_here(&probes.case(), fact::MOUNT_FSTYPE),
            Some("xfs")
        );
    }

    #[test]
    fn kernel_release_is_parsed_and_ratio_is_worded() {
        assert_eq!(
            kernel(&facts(&[("kernel.release", "5.15.0-91-generic")])),
            Some((5, 15))
        );
        assert_eq!(
            kernel(&facts(&[("kernel.release", "6.8-rc1")])),
            Some((6, 8))
        );
        let shown = |better, ratio| {
            let cell = composed::cell("net.tcp.throughput.rate", ratio);
            words(&DossierCell { better, ..cell })
        };
        assert_eq!(shown(Better::Lower, 2.585), "is 2.6× slower");
        assert_eq!(shown(Better::Lower, 1.16), "is 16 % slower");
        assert_eq!(shown(Better::Lower, 0.8), "is 20 % faster");
        assert_eq!(shown(Better::Higher, 1.41), "gives 29 % less");
        assert_eq!(shown(Better::Higher, 34.0), "gives 97.1 % less");
        assert_eq!(shown(Better::Higher, 0.4), "is 60 % faster");
    }
}
