//! Triage: selects the family of causes from cheap counters, before any counterfactual.
//!
//! Two arms did the same work. The time of one unit is split into user space, kernel and off-CPU, and the extra time
//! is attributed. A counter explains the extra time if its growth is at least [`SHARE`] of it: shares and not ratios,
//! because the double of nothing is nothing.
//! Sources of the counters: getrusage(2), `/proc/self/schedstat`, `/proc/self/io`, the cgroup's `cpu.stat`,
//! `/proc/stat`, and what the host charges to the arm from outside. Limits: does not split between causes of one
//! family, and misses a constant per start, which is in the cells of `start-up` and not in counters.

use std::collections::BTreeMap;

use tare_model::counter;
use tare_model::unit::TICK_NS;

/// Counters by name, as in [`super::ArmEvidence::counters`] for one workload.
pub type Counters = BTreeMap<String, f64>;

/// Extra time below this share of the baseline is ignored: counters of single trials are no more precise.
pub const LEAST: f64 = 0.03;
/// Minimal growth of a counter, as a share of the extra time that it explains.
pub const SHARE: f64 = 0.3;
/// The same for counters that see only part of what they count: steal and throttling also delay threads that are not
/// observed.
pub const LOW_SHARE: f64 = 0.15;
/// From this factor on a count (faults, switches, calls) has grown.
pub const GREW: f64 = 1.5;
/// From this number of involuntary switches per second on, threads compete with each other.
pub const SWITCHES_PER_S: f64 = 50.0;
/// Page faults per unit below this are ignored.
const FEWEST_FAULTS: f64 = 1.0;
/// Charged time below this is ignored, in nanoseconds: that of a process is counted in ticks of 10 ms.
const LEAST_CHARGED_NS: f64 = 30e6;
/// Fewer steal ticks per trial are ignored: one may have begun before it.
const FEWEST_TICKS: f64 = 2.0;
/// A family of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// A CPU quota throttles the whole group.
    Quota,
    /// Others run on the same kernel.
    Contention,
    /// The hypervisor gives the CPU to others.
    Steal,
    /// Threads spin for each other.
    Spin,
    /// More time in user space for the same work: another program, or the same instructions at another speed.
    OtherCode,
    /// More time in the kernel for as many calls: each call costs more.
    CostlierCalls,
    /// More calls for the same work: another code path.
    MoreCalls,
    /// Page faults: pages must be allocated first.
    Faults,
    /// Waiting for a device: the data is not in the cache.
    Device,
    /// Waiting for another process: a peer, a server, a reader of the output.
    Waiting,
    /// The environment works on the program's behalf: a user-space kernel, emulated devices.
    OnBehalf,
    /// The arm is faster: order, another program, another clock.
    Faster,
}

/// A family with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Lead {
    /// The family.
    pub family: Family,
    /// The evidence, in words and numbers.
    pub because: String,
}

/// Usage of one unit of work, in nanoseconds and counts; unknown values are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Wall time.
    pub wall_ns: Option<f64>,
    /// In user space, children included.
    pub user_ns: Option<f64>,
    /// In the kernel, children included.
    pub sys_ns: Option<f64>,
    /// Page faults without a device.
    pub minflt: Option<f64>,
    /// Page faults with a device.
    pub majflt: Option<f64>,
    /// Involuntary switches.
    pub nivcsw: Option<f64>,
    /// Time runnable but not running.
    pub run_delay_ns: Option<f64>,
    /// Time throttled by a quota.
    pub throttled_ns: Option<f64>,
    /// Periods in which the quota throttled it.
    pub nr_throttled: Option<f64>,
    /// Time taken by the hypervisor.
    pub steal_ns: Option<f64>,
    /// Bytes that actually came from a device.
    pub read_bytes: Option<f64>,
    /// Read and write calls; all calls if `syscalls` is counted.
    pub calls: Option<f64>,
    /// CPU time that the host's kernel charged to the arm, for all of its processes.
    pub charged_ns: Option<f64>,
}

impl Usage {
    /// Builds it from counters per trial, divided by the counter `units` if the trials are sized by time.
    pub fn per_unit(counters: &Counters) -> Self {
        let units = counters
            .get(counter::UNITS)
            .copied()
            .filter(|units| *units > 0.0)
            .unwrap_or(1.0);
        let get = |name: &str| counters.get(name).map(|value| value / units);
        let with_children = |name: &str| {
            let children = get(&format!("{}{name}", counter::CHILDREN)).unwrap_or(0.0);
            get(name).map(|own| own + children)
        };
        let both = get(counter::SYSCR)
            .zip(get(counter::SYSCW))
            .map(|(read, write)| read + write);
        Self {
            wall_ns: get(counter::WALL),
            user_ns: with_children(counter::USER),
            sys_ns: with_children(counter::SYS),
            minflt: get(counter::MINFLT),
            majflt: get(counter::MAJFLT),
            nivcsw: get(counter::NIVCSW),
            run_delay_ns: get(counter::RUN_DELAY),
            // A cgroup hidden from inside is still visible to the host.
            throttled_ns: get(counter::THROTTLED).or_else(|| get(counter::CHARGED_THROTTLED)),
            nr_throttled: get(counter::NR_THROTTLED).or_else(|| get(counter::CHARGED_NR_THROTTLED)),
            steal_ns: counters.get(counter::STEAL).map(|ticks| {
                if *ticks < FEWEST_TICKS {
                    0.0
                } else {
                    ticks * TICK_NS / units
                }
            }),
            read_bytes: get(counter::READ_BYTES),
            calls: both,
            charged_ns: get(counter::CHARGED_CPU),
        }
    }

    /// CPU time in user space and in the kernel.
    fn on_processor_ns(&self) -> Option<f64> {
        Some(self.user_ns? + self.sys_ns?)
    }

    /// The same for metrics of CPU time instead of wall time: no waiting counts.
    #[must_use]
    pub fn on_processor_only(self) -> Self {
        Self {
            wall_ns: self.on_processor_ns(),
            run_delay_ns: None,
            throttled_ns: None,
            nr_throttled: None,
            steal_ns: None,
            charged_ns: None,
            ..self
        }
    }
}

/// Returns the families that the counters indicate, the strongest first; none if wall times are unknown or hardly
/// differ.
pub fn triage(base: &Usage, arm: &Usage) -> Vec<Lead> {
    let (Some(base_wall), Some(wall)) = (base.wall_ns, arm.wall_ns) else {
        return Vec::new();
    };
    let extra = wall - base_wall;
    if base_wall <= 0.0 || extra.abs() < LEAST * base_wall {
        return Vec::new();
    }
    if extra < 0.0 {
        let percent = -extra / base_wall * 100.0;
        return vec![Lead {
            family: Family::Faster,
            because: format!("the arm took {percent:.0} % less wall time per unit of work"),
        }];
    }
    // More work on a busy machine also waits longer for CPU: that part of the waiting belongs to the work.
    let delay = grown(base.run_delay_ns, arm.run_delay_ns);
    let by_work = base
        .on_processor_ns()
        .filter(|before| *before > 0.0)
        .zip(arm.on_processor_ns())
        .zip(base.run_delay_ns)
        .map_or(0.0, |((before, now), waited)| {
            waited * (now / before - 1.0).max(0.0)
        })
        .min(delay.unwrap_or(0.0).max(0.0));
    let delay = delay.map(|delay| delay - by_work);
    let extra = extra - by_work;
    if extra <= 0.0 {
        return Vec::new();
    }
    let mut found = Extra {
        extra,
        leads: Vec::new(),
    };
    let user = grown(base.user_ns, arm.user_ns);
    let sys = grown(base.sys_ns, arm.sys_ns);
    let throttled = grown(base.throttled_ns, arm.throttled_ns);
    let is_throttled = found.share(throttled) >= LOW_SHARE
        || (throttled.is_none() && grown(base.nr_throttled, arm.nr_throttled) > Some(0.0));
    if is_throttled {
        let because = "a processor quota stopped it for {} of the extra time";
        found.add(Family::Quota, throttled, f64::NEG_INFINITY, because);
    }
    let steal = grown(base.steal_ns, arm.steal_ns);
    let because = "the hypervisor took the processor away for {} of the extra time";
    found.add(Family::Steal, steal, LOW_SHARE, because);
    if !is_throttled {
        let because = "it was runnable and had no processor for {} of the extra time";
        found.add(Family::Contention, delay, SHARE, because);
    }
    found.in_user_space(base, arm, wall, user);
    found.in_the_kernel(base, arm, sys);
    found.on_behalf(base, arm);
    // With several threads CPU time may grow by more than the wall time; then nothing waits.
    let on_cpu = user.unwrap_or(0.0) + sys.unwrap_or(0.0);
    // Time taken by others is not waiting for a peer; a quota throttles every thread, and is not distinguished.
    let taken = delay.unwrap_or(0.0).max(0.0) + steal.unwrap_or(0.0).max(0.0);
    let off_cpu = (user.is_some() && sys.is_some()).then_some(extra - on_cpu.max(0.0) - taken);
    if !is_throttled {
        let from_device = grew(base.read_bytes, arm.read_bytes, 4096.0)
            || grew(base.majflt, arm.majflt, FEWEST_FAULTS);
        let (family, because) = if from_device {
            let because =
                "it was off the processor for {} of the extra time, and more came from a device";
            (Family::Device, because)
        } else {
            let because = "it was off the processor for {} of the extra time, waiting for others";
            (Family::Waiting, because)
        };
        found.add(family, off_cpu, SHARE, because);
    }
    let mut leads = found.leads;
    leads.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    leads.into_iter().map(|(_, lead)| lead).collect()
}

/// Leads under construction, each with its share of the extra time.
struct Extra {
    extra: f64,
    leads: Vec<(f64, Lead)>,
}

impl Extra {
    fn share(&self, growth: Option<f64>) -> f64 {
        growth.map_or(0.0, |growth| growth / self.extra)
    }

    /// Adds a lead whose counter grew by at least `least` of the extra time; the share is written into the evidence.
    fn add(&mut self, family: Family, growth: Option<f64>, least: f64, because: &str) {
        let share = self.share(growth);
        if share >= least {
            let percent = format!("{:.0} %", (share * 100.0).clamp(0.0, 100.0));
            let because = because.replace("{}", &percent);
            self.leads.push((share, Lead { family, because }));
        }
    }

    fn in_user_space(&mut self, base: &Usage, arm: &Usage, wall_ns: f64, user: Option<f64>) {
        let per_second = arm.nivcsw.unwrap_or(0.0) / wall_ns * 1e9;
        let because = "user time for the same work grew by {} of the extra time";
        if grew(base.nivcsw, arm.nivcsw, 0.0) && per_second >= SWITCHES_PER_S {
            let because = format!("{because}, with {per_second:.0} involuntary switches a second");
            self.add(Family::Spin, user, SHARE, &because);
        } else {
            self.add(Family::OtherCode, user, SHARE, because);
        }
    }

    /// CPU time that is charged from outside but not seen inside: in both arms the surroundings of the timed work are
    /// alike.
    fn on_behalf(&mut self, base: &Usage, arm: &Usage) {
        let unseen = |usage: &Usage| Some(usage.charged_ns? - usage.on_processor_ns()?);
        let growth = grown(unseen(base), unseen(arm)).filter(|ns| *ns >= LEAST_CHARGED_NS);
        let because =
            "the host charged it with processor time that is not seen inside, {} of the extra time";
        self.add(Family::OnBehalf, growth, SHARE, because);
    }

    fn in_the_kernel(&mut self, base: &Usage, arm: &Usage, sys: Option<f64>) {
        let (family, why) = if grew(base.minflt, arm.minflt, FEWEST_FAULTS) {
            (Family::Faults, "with more page faults")
        } else if grew(base.calls, arm.calls, 1.0) {
            (Family::MoreCalls, "with more calls")
        } else {
            (Family::CostlierCalls, "for as many calls")
        };
        let because = format!("time in the kernel grew by {{}} of the extra time, {why}");
        self.add(family, sys, SHARE, &because);
    }
}

fn grown(base: Option<f64>, arm: Option<f64>) -> Option<f64> {
    Some(arm? - base?)
}

/// Whether a count is at least [`GREW`] times the baseline's, and more than `least` above it.
fn grew(base: Option<f64>, arm: Option<f64>, least: f64) -> bool {
    match (base, arm) {
        (Some(base), Some(arm)) => arm - base > least && arm > base * GREW,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(wall: f64, user: f64, sys: f64) -> Usage {
        Usage {
            wall_ns: Some(wall * 1e9),
            user_ns: Some(user * 1e9),
            sys_ns: Some(sys * 1e9),
            minflt: Some(100.0),
            majflt: Some(0.0),
            nivcsw: Some(1.0),
            run_delay_ns: Some(0.0),
            throttled_ns: Some(0.0),
            nr_throttled: Some(0.0),
            steal_ns: Some(0.0),
            read_bytes: Some(0.0),
            calls: Some(1000.0),
            charged_ns: None,
        }
    }

    fn delayed(run_delay_ns: f64, usage: Usage) -> Usage {
        Usage {
            run_delay_ns: Some(run_delay_ns),
            ..usage
        }
    }

    fn charged(charged_ns: f64, usage: Usage) -> Usage {
        Usage {
            charged_ns: Some(charged_ns),
            ..usage
        }
    }

    fn interrupted(nivcsw: f64, usage: Usage) -> Usage {
        Usage {
            nivcsw: Some(nivcsw),
            ..usage
        }
    }

    fn has(leads: &[Lead], family: Family) -> bool {
        leads.iter().any(|lead| lead.family == family)
    }

    #[test]
    fn each_row_of_the_table_leads_to_its_family() {
        let base = usage(1.0, 0.8, 0.1);
        let slow = |user, sys, change: fn(&mut Usage)| {
            let mut arm = usage(2.0, user, sys);
            change(&mut arm);
            arm
        };
        let spin = |it: &mut Usage| it.nivcsw = Some(200.0);
        let rows = tare_model::rows! {
            (Family::Quota, slow(0.8, 0.1, |it| it.throttled_ns = Some(1e9))),
            (Family::Contention, slow(0.8, 0.1, |it| it.run_delay_ns = Some(0.9e9))),
            (Family::Steal, slow(0.8, 0.1, |it| it.steal_ns = Some(0.9e9))),
            (Family::Spin, slow(1.9, 0.1, spin)),
            (Family::OtherCode, usage(2.0, 1.8, 0.1)),
            (Family::CostlierCalls, usage(2.0, 0.8, 1.0)),
            (Family::MoreCalls, slow(0.8, 1.0, |it| it.calls = Some(9000.0))),
            (Family::Faults, slow(0.8, 1.0, |it| it.minflt = Some(90_000.0))),
            (Family::Device, slow(0.7, 0.1, |it| it.read_bytes = Some(1e8))),
            (Family::Waiting, usage(2.0, 0.8, 0.1)),
            (Family::Faster, usage(0.7, 0.5, 0.1)),
        };
        for (family, arm) in rows {
            let leads = triage(&base, &arm);
            assert_eq!(
                leads.first().map(|lead| lead.family),
                Some(family),
                "{leads:?}"
            );
            assert!(leads[0].because.contains('%'), "{leads:?}");
        }
    }

    #[test]
    fn triage_separates_spin_from_quota_by_cpu_time() {
        // Two instances with one thread each, then with two: measured on two processors.
        let quiet = interrupted(36.0, usage(0.19, 0.12, 0.0));
        let spinning = interrupted(190.0, usage(1.3, 0.7, 0.0));
        assert_eq!(triage(&quiet, &spinning)[0].family, Family::Spin);
        // One thread under half a CPU: as much CPU time, more wall time, ten periods throttled.
        let quota = Usage {
            throttled_ns: Some(0.1e9),
            nr_throttled: Some(10.0),
            ..usage(0.21, 0.1, 0.0)
        };
        let free = usage(0.1, 0.1, 0.0);
        assert_eq!(triage(&free, &quota)[0].family, Family::Quota);
    }

    #[test]
    fn triage_host_charge_beyond_inside_is_on_behalf() {
        let base = charged(0.93e9, usage(1.0, 0.8, 0.1));
        let arm = charged(1.9e9, usage(2.0, 0.8, 0.1));
        let leads = triage(&base, &arm);
        assert!(has(&leads, Family::OnBehalf), "{leads:?}");
        // As much as inside, or no count, is no evidence.
        for charged_ns in [Some(0.95e9), None] {
            let leads = triage(&base, &Usage { charged_ns, ..arm });
            assert!(!has(&leads, Family::OnBehalf));
        }
    }

    #[test]
    fn one_tick_in_a_short_trial_is_no_theft() {
        let usage = |wall: f64, ticks: f64| {
            Usage::per_unit(&Counters::from([
                ("wall_ns".to_owned(), wall),
                ("user_ns".to_owned(), 90e6),
                ("sys_ns".to_owned(), 0.0),
                ("steal_ticks".to_owned(), ticks),
            ]))
        };
        let steals = |ticks: f64| {
            let leads = triage(&usage(100e6, 0.0), &usage(110e6, ticks));
            has(&leads, Family::Steal)
        };
        assert!(steals(2.0));
        assert!(!steals(1.0));
    }

    #[test]
    fn triage_quota_is_counted_by_host_if_hidden_inside() {
        let counters = |throttled: f64| {
            Counters::from([
                ("wall_ns".to_owned(), 1e9 + throttled),
                ("charged_throttled_ns".to_owned(), throttled),
            ])
        };
        let usage = |throttled: f64| Usage::per_unit(&counters(throttled));
        let leads = triage(&usage(0.0), &usage(0.9e9));
        assert_eq!(leads[0].family, Family::Quota, "{leads:?}");
    }

    #[test]
    fn triage_wait_proportional_to_work_is_not_contention() {
        // On a crowded machine: two and a half times the work in the kernel, and as much more waiting.
        let base = delayed(0.172e9, usage(0.317, 0.015, 0.048));
        let arm = delayed(0.387e9, usage(0.574, 0.036, 0.114));
        let leads = triage(&base, &arm);
        assert!(has(&leads, Family::CostlierCalls), "{leads:?}");
        assert!(!has(&leads, Family::Contention), "{leads:?}");
        // As much work and more waiting is due to other processes.
        let crowded = delayed(0.387e9, usage(0.532, 0.015, 0.048));
        assert_eq!(triage(&base, &crowded)[0].family, Family::Contention);
    }

    #[test]
    fn triage_peer_wait_on_busy_host_has_both_families() {
        let base = delayed(0.09e9, usage(0.11, 0.012, 0.004));
        let arm = delayed(0.257e9, usage(0.48, 0.012, 0.005));
        let families: Vec<Family> = triage(&base, &arm).iter().map(|lead| lead.family).collect();
        assert_eq!(families, [Family::Waiting, Family::Contention]);
    }

    #[test]
    fn of_time_on_processors_waiting_is_no_part() {
        let base = usage(1.0, 0.8, 0.1).on_processor_only();
        let delayed = delayed(3e9, usage(4.0, 0.8, 0.1));
        assert!(triage(&base, &delayed.on_processor_only()).is_empty());
        let costlier = usage(4.0, 0.8, 0.5).on_processor_only();
        assert_eq!(triage(&base, &costlier)[0].family, Family::CostlierCalls);
    }

    #[test]
    fn triage_of_no_or_unknown_difference_has_no_leads() {
        let base = usage(1.0, 0.8, 0.1);
        assert!(triage(&base, &usage(1.01, 0.8, 0.1)).is_empty());
        assert!(triage(&base, &Usage::default()).is_empty());
        let walls_only = |wall| Usage {
            wall_ns: Some(wall),
            ..Usage::default()
        };
        assert!(triage(&walls_only(1.0), &walls_only(3.0)).is_empty());
    }

    #[test]
    fn trials_sized_by_time_are_compared_per_unit_of_work() {
        let counters = |units: f64| {
            Counters::from([
                ("wall_ns".to_owned(), 1e9),
                ("user_ns".to_owned(), 0.5e9),
                ("children_user_ns".to_owned(), 0.5e9),
                ("sys_ns".to_owned(), 0.0),
                ("units".to_owned(), units),
            ])
        };
        let (fast, slow) = (
            Usage::per_unit(&counters(1000.0)),
            Usage::per_unit(&counters(500.0)),
        );
        assert_eq!(slow.wall_ns, Some(2e6));
        let leads = triage(&fast, &slow);
        assert_eq!(leads[0].family, Family::OtherCode, "{leads:?}");
    }
}
