//! What causes ask of a case: which cells cost, which facts differ, how many processors may be used.
//!
//! Facts that only one side tells are no difference: not known is not unequal. What it cannot see: facts that
//! neither the agent nor a driver records.

use std::path::Path;

use tare_model::dossier::DossierCell;
use tare_model::facts::cpu_list;
pub use tare_model::facts::{cpu_quota as quota, memory_limit};
use tare_model::{Better, Facts};
use tare_model::{counter, fact};

use super::kind::Kind;
use super::triage::{Family, Lead, Usage, triage};
use super::{ArmEvidence, Case};

/// Likelihood left when no counter was read.
const WITHOUT_COUNTERS: f64 = 0.8;
/// The metric that asks about time on processors; a test holds it against the workload's own name.
const CPU: &str = "command.cpu.time";
/// From this share of the command's time on a port proxy has work to do.
const BUSY_PROXY: f64 = 0.05;
/// Bytes of a packet that networks and engines use by default.
const USUAL_MTU: f64 = 1500.0;
/// How many times the arm's packets fit into those of the way out before they count as small.
const SMALL: f64 = 1.5;
/// How much busier it must be than while the command ran outside: others may use it too.
const BUSIER: f64 = 3.0;
/// Likelihood left when the counters speak for other families.
const AGAINST_COUNTERS: f64 = 0.35;

impl<'a> Case<'a> {
    /// Cells of these kinds, or of an unknown one, that cost more.
    pub fn costs(&self, kinds: &[Kind]) -> Vec<usize> {
        self.pick(|cell| is_cost(cell) && matches(cell, kinds))
    }

    /// Cells of exactly these kinds that cost more.
    pub fn costs_only(&self, kinds: &[Kind]) -> Vec<usize> {
        self.pick(|cell| is_cost(cell) && kinds.contains(&Kind::of(cell)))
    }

    /// Cells of these kinds that differ either way.
    pub fn differences(&self, kinds: &[Kind]) -> Vec<usize> {
        self.pick(|cell| (is_cost(cell) || is_gain(cell)) && matches(cell, kinds))
    }

    /// Cells for which `wanted` holds.
    pub fn pick(&self, wanted: impl Fn(&DossierCell) -> bool) -> Vec<usize> {
        (0..self.cells.len())
            .filter(|index| wanted(&self.cells[*index]))
            .collect()
    }

    /// The cell with the largest cost among these.
    pub fn largest(&self, cells: &[usize]) -> Option<&'a DossierCell> {
        let cells = cells.iter().filter_map(|index| self.cells.get(*index));
        cells.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    }

    /// The largest of these costs as a clause: "`command.wall.time` is 2.6× slower".
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

    /// A fact of the arm.
    pub fn fact(&self, name: &str) -> Option<&'a str> {
        self.arm.fact(name)
    }

    /// A number among the arm's facts.
    pub fn number(&self, name: &str) -> Option<f64> {
        number(&self.arm.facts, name)
    }

    /// Whether a fact of the arm contains one of these words.
    pub fn says(&self, name: &str, words: &[&str]) -> bool {
        self.fact(name)
            .is_some_and(|value| words.iter().any(|word| value.contains(word)))
    }

    /// Baseline's and arm's value of a fact that both tell and that differs.
    pub fn differs(&self, name: &str) -> Option<(&'a str, &'a str)> {
        let (there, here) = (self.baseline.fact(name)?, self.fact(name)?);
        (there != here).then_some((there, here))
    }

    /// Names of this family whose facts differ, with both values.
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

    /// Whether both run on one boot of one kernel; `None` where one side does not tell.
    pub fn same_kernel(&self) -> Option<bool> {
        let (there, here) = (
            self.baseline.fact(fact::KERNEL_BOOT_ID)?,
            self.fact(fact::KERNEL_BOOT_ID)?,
        );
        Some(there == here)
    }

    /// Whether system calls go through a filter in the arm, and through none in the baseline.
    pub fn is_filtered(&self) -> bool {
        let mode = |arm: &ArmEvidence| arm.fact(fact::STATUS_SECCOMP).map(|mode| mode == "2");
        mode(self.arm) == Some(true) && mode(self.baseline) == Some(false)
    }

    /// The arm's setting of this name as text.
    pub fn setting(&self, name: &str) -> Option<String> {
        Some(self.arm.settings.value(name)?.to_string())
    }

    /// How busy the engine's port proxies were while the command ran in the baseline and in the arm, as shares of
    /// the time that it took; `None` where there were none or nobody looked.
    pub fn proxy_busy(&self) -> Option<(f64, f64)> {
        let busy = |facts: &Facts| {
            let took = number(facts, fact::COMMAND_WALL).filter(|took| *took > 0.0)?;
            Some(number(facts, fact::COMMAND_PROXY)? / took)
        };
        // Without a proxy on this side nothing was copied there.
        Some((
            busy(&self.baseline.facts).unwrap_or(0.0),
            busy(&self.arm.facts)?,
        ))
    }

    /// The device of the arm's own network, and the kind of its queue, that holds packets back; `None` where
    /// there is none or the arm has no network of its own.
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

    /// The largest packets of the arm and of the machine's way out where the arm's are much smaller: by a third
    /// at least, so that half as many packets more are needed for the same data. What networks use by default is
    /// not small beside the largest frames of a data centre.
    pub fn small_packets(&self) -> Option<(f64, f64)> {
        let here = self.number(fact::NET_DEFAULT_MTU)?;
        let uplink = number(self.host, fact::NET_DEFAULT_MTU)
            .or_else(|| number(&self.baseline.facts, fact::NET_DEFAULT_MTU))?;
        (here * SMALL <= uplink.min(USUAL_MTU)).then_some((here, uplink))
    }

    /// Whether the command inside kept the engine's port proxies busy, and the one outside did not.
    pub fn is_proxied(&self) -> bool {
        self.proxy_busy()
            .is_some_and(|(there, here)| here >= BUSY_PROXY && here >= BUSIER * there)
    }

    /// Those of the cells for whose workloads the counters speak for this.
    pub fn led_by(&self, cells: &[usize], family: Family) -> Vec<usize> {
        let is_led = |cell: &usize| self.leads(&[*cell]).iter().any(|it| it.family == family);
        cells.iter().copied().filter(is_led).collect()
    }

    /// What the counters of the cells' workloads speak for, the strongest of each workload first.
    pub fn leads(&self, cells: &[usize]) -> Vec<Lead> {
        let mut leads: Vec<Lead> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for cell in cells.iter().filter_map(|index| self.cells.get(*index)) {
            if seen.contains(&cell.workload.as_str()) {
                continue;
            }
            seen.push(&cell.workload);
            let of = |arm: &ArmEvidence| {
                let usage = Usage::of(arm.counters.get(&cell.workload)?);
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

    /// How well the counters fit these families, as a factor for a likelihood.
    pub fn fit(&self, cells: &[usize], families: &[Family]) -> f64 {
        let leads = self.leads(cells);
        if leads.is_empty() {
            WITHOUT_COUNTERS
        } else if leads.iter().any(|lead| families.contains(&lead.family)) {
            1.0
        } else {
            AGAINST_COUNTERS
        }
    }

    /// Why the counters fit these families, a line each.
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

    /// The counter per unit of work of the first workload among the cells that has it, baseline's and arm's.
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

/// Where files lie on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place<'a> {
    /// The path, the same on both sides; `None` for the probes' own files, which each side has elsewhere.
    pub path: Option<&'a str>,
    /// What the baseline's facts about it begin with.
    there: String,
    /// What the arm's facts about it begin with.
    here: String,
}

impl Place<'_> {
    /// A fact about both mounts, for example [`fact::MOUNT_FSTYPE`]: the baseline's and the arm's.
    pub fn part<'a>(&self, case: &Case<'a>, part: &str) -> Option<(&'a str, &'a str)> {
        let there = case.baseline.fact(&about(&self.there, part))?;
        Some((there, self.part_here(case, part)?))
    }

    /// A fact about the arm's mount, whether or not the baseline tells.
    pub fn part_here<'a>(&self, case: &Case<'a>, part: &str) -> Option<&'a str> {
        case.fact(&about(&self.here, part))
    }

    /// The place in words: ``under `/data` ``.
    pub fn words(&self) -> String {
        match self.path {
            Some(path) => format!("under `{path}`"),
            None => "under the files".to_owned(),
        }
    }
}

impl<'a> Case<'a> {
    /// Where the files of what was measured lie: the paths that a user's command was seen to use, else the
    /// probes' own folder.
    pub fn places(&self) -> Vec<Place<'a>> {
        if self.baseline.fact(fact::COMMAND_DIRECTORY).is_none() {
            return match (
                work_mount(&self.baseline.facts),
                work_mount(&self.arm.facts),
            ) {
                (there, Some(here)) => vec![Place {
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
                let mount = fact::of(fact::COMMAND_MOUNT, path);
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
        let place = |path: &'a str| Place {
            path: Some(path),
            there: fact::of(fact::COMMAND_MOUNT, path),
            here: fact::of(fact::COMMAND_MOUNT, path),
        };
        paths.into_iter().map(place).collect()
    }
}

/// The name of a fact about this mount, of the pattern of those about any.
fn about(mount: &str, pattern: &str) -> String {
    format!("{mount}{}", fact::ending(pattern))
}

/// Whether a cell's verdict is a cost.
pub fn is_cost(cell: &DossierCell) -> bool {
    cell.verdict.is_cost()
}

/// Whether a cell's verdict is a gain.
pub fn is_gain(cell: &DossierCell) -> bool {
    cell.verdict.is_gain()
}

fn matches(cell: &DossierCell, kinds: &[Kind]) -> bool {
    let kind = Kind::of(cell);
    kind == Kind::Any || kinds.contains(&kind)
}

/// The cell's cost ratio; 1 where it has none.
pub fn ratio(cell: &DossierCell) -> f64 {
    cell.ratio.map_or(1.0, |span| span.point)
}

/// A ratio as a clause: "`command.wall.time` is 2.6× slower".
pub fn clause(cell: &DossierCell) -> String {
    format!("`{}` {}", cell.metric, words(cell))
}

/// A cell's ratio as the end of a clause; of a rate, how much less it gives.
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

/// A number among facts.
pub fn number(facts: &Facts, name: &str) -> Option<f64> {
    facts.get(name)?.trim().parse().ok()
}

/// Major and minor number of the kernel's release.
pub fn kernel(facts: &Facts) -> Option<(u32, u32)> {
    let mut parts = facts.get(fact::KERNEL_RELEASE)?.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// How many processors a list such as `0-3,6` names.
pub fn cpus_in(list: &str) -> Option<usize> {
    cpu_list(list).map(|cpus| cpus.len())
}

/// Processors that may really be used: those of the affinity, as far as a quota pays for them.
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

/// The mount under the probes' files: name of the fact without its last part. That of `/` where only it is known.
pub fn work_mount(facts: &Facts) -> Option<String> {
    let mounts = facts.keys().filter_map(|name| {
        let path = fact::what(fact::MOUNT_FSTYPE, name)?;
        Some((path != "/", fact::of(fact::MOUNT, path)))
    });
    mounts.max().map(|(_, name)| name)
}

/// A fact about the work mount, for example [`fact::MOUNT_FSTYPE`].
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
    fn time_on_processors_is_called_as_the_workload_calls_it() {
        assert_eq!(CPU, crate::workload::user_command::CPU);
    }

    #[test]
    fn usable_processors_are_the_fewer_of_allowed_and_paid_for() {
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
            Composed::of("container")
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
        let probes = Composed::of("docker").fact("mount./work.fstype", "xfs");
        let places = probes.case().places();
        assert_eq!(places[0].path, None);
        assert_eq!(
            places[0].part_here(&probes.case(), fact::MOUNT_FSTYPE),
            Some("xfs")
        );
    }

    #[test]
    fn releases_and_ratios_are_read_and_written_as_people_do() {
        assert_eq!(
            kernel(&facts(&[("kernel.release", "5.15.0-91-generic")])),
            Some((5, 15))
        );
        assert_eq!(
            kernel(&facts(&[("kernel.release", "6.8-rc1")])),
            Some((6, 8))
        );
        let said = |better, ratio| {
            let cell = composed::cell("net.tcp.throughput.rate", ratio);
            words(&DossierCell { better, ..cell })
        };
        assert_eq!(said(Better::Lower, 2.585), "is 2.6× slower");
        assert_eq!(said(Better::Lower, 1.16), "is 16 % slower");
        assert_eq!(said(Better::Lower, 0.8), "is 20 % faster");
        assert_eq!(said(Better::Higher, 1.41), "gives 29 % less");
        assert_eq!(said(Better::Higher, 34.0), "gives 97.1 % less");
        assert_eq!(said(Better::Higher, 0.4), "is 60 % faster");
    }
}
