//! A container of the user's own in place of an environment of ours: what it is compared with, and which of its
//! differences carry the cost.
//!
//! It is compared with the same image as a plain container, without any of the differences: what somebody wrote for
//! a container is not run on the host unasked, and the program often lives only in the image. Every difference is a
//! switch, so the search ([`search`](super::search)) leaves them away part by part in studies whose arms stand in
//! the blocks of both sides. What it finds is proved once more in blocks of its own, because something is always
//! found among many.
//! What it cannot see: in what the image's program differs from another build of it.

use tare_model::arm::{Rung, Suspect};
use tare_model::dossier::DossierFinding;
use tare_model::{CommandCall, Params, Status, Study, Value};
use tare_stats::median;

use super::counterfactual::{Trial, Tried};
use super::ladder::Step;
use super::readings::{Readings, in_common, interval, share};
use super::search::{Item, Probe, Search, Shown};
use super::studies::{Arms, Pace, base_arms};
use super::{Ask, FEWEST, First};
use crate::analyze::RunData;
use crate::env::own::{self, Difference, OWN, Own, WITHOUT};

/// The baseline's name: the image without the differences.
pub const PLAIN: &str = "plain";
/// What the name of a suspect begins with that is several differences.
const SEVERAL: &str = "own.several";
/// How the claim about a single difference ends, or about several that only go together.
pub(super) const CLAIM: &str = " makes it slower";
/// How one begins about a set that was not taken apart.
const ONE_OF: &str = "one or several of: ";
/// What the arms are called that search, and those that prove what was found.
const TRY: &str = "try";
const PROOF: &str = "proof";
/// Arms of one round of the search at most.
const ARMS_MOST: usize = 6;
/// Suspects of the catalogue that stand in the first round of the search.
const CATALOGUE_MOST: usize = 2;
/// Arms for which time is left in a round of the search, for the next one.
const NEXT_ARMS: u64 = 3;
/// How likely those must be.
const LIKELY: f64 = 0.5;
/// Blocks of a round where the cost is plain to see, and the fewest of them that say something.
const PLAIN_BLOCKS: u32 = 4;
const PLAIN_LEAST: usize = 3;
/// Blocks of a proof at most.
const PROOF_BLOCKS: u32 = 24;
/// The part of the time that is planned with.
const SAFE: f64 = 0.85;

/// What a question about something of the user's has beside others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asks {
    /// In what it differs from the baseline.
    pub differences: Vec<Difference>,
    /// The baseline's settings.
    pub base: Params,
}

/// What it may be compared with, the barest first: without every difference, and without those that the program
/// cannot need.
pub fn bases(own: &Own) -> Vec<Asks> {
    let asks = |differences: Vec<Difference>| {
        let ids: Vec<String> = differences.iter().map(|it| it.id.clone()).collect();
        Asks {
            base: own::without(&own.settings, &ids),
            differences,
        }
    };
    let surely: Vec<Difference> = own
        .differences
        .iter()
        .filter(|difference| !difference.may_be_needed)
        .cloned()
        .collect();
    let mut bases = vec![asks(own.differences.clone())];
    if surely.len() < own.differences.len() {
        bases.push(asks(surely));
    }
    bases
}

/// What the baseline is, in a line.
pub fn told(asks: &Asks) -> String {
    let what: Vec<&str> = asks
        .differences
        .iter()
        .map(|difference| difference.what.as_str())
        .collect();
    format!(
        "compared with: the same image and command in a plain container, without {}",
        what.join(", ")
    )
}

/// The command as it is run in both.
pub fn call(own: &Own, command: &[String]) -> CommandCall {
    CommandCall {
        argv: if command.is_empty() {
            own.argv.clone()
        } else {
            command.to_vec()
        },
        directory: Some(own.directory.clone()),
        ..CommandCall::default()
    }
}

/// The steps from the baseline up: what the engine does to every container, and what this one has of its own.
pub(super) fn steps(ask: &Ask, asks: &Asks) -> Vec<Step> {
    let is_engines = |difference: &&Difference| difference.id.starts_with("engine.");
    let (engines, own): (Vec<&Difference>, Vec<&Difference>) =
        asks.differences.iter().partition(|it| is_engines(it));
    let step = |title: String, settings: Params| Step {
        title,
        driver: ask.driver.clone(),
        settings,
        weight: 5,
        needs_output: false,
    };
    let whole = step(
        "what the container has of its own".to_owned(),
        ask.settings.clone(),
    );
    if engines.is_empty() || own.is_empty() {
        return vec![whole];
    }
    let ids: Vec<String> = own.iter().map(|it| it.id.clone()).collect();
    vec![
        step(
            "what the engine does to every container: network, filter, log".to_owned(),
            own::without(&ask.settings, &ids),
        ),
        whole,
    ]
}

/// The suspects of the catalogue that can be tried here: those whose switch is a difference of the container. The
/// others are told without a trial.
pub fn resolved(trials: Vec<Trial>, asks: &Asks) -> Vec<Trial> {
    trials
        .into_iter()
        .map(|mut trial| {
            let Some(tried) = &mut trial.arm else {
                return trial;
            };
            let words = tried.settings.words(WITHOUT);
            let is_known = |id: &str| asks.differences.iter().any(|it| it.id == id);
            let kept: Vec<String> = words
                .iter()
                .map(|word| word.trim_end_matches('?').to_owned())
                .filter(|id| is_known(id))
                .collect();
            if kept.is_empty() && !words.is_empty() {
                trial.suspect.tried = format!(
                    "not possible here: the container differs in nothing that could be switched for it ({})",
                    trial.suspect.tried
                );
                trial.arm = None;
            } else if !words.is_empty() {
                let list = kept.into_iter().map(Value::Text).collect();
                tried.settings = tried.settings.clone().with(WITHOUT, Value::List(list));
            }
            trial
        })
        .collect()
}

/// A search that is going on, with what surrounds it.
#[derive(Debug)]
pub struct Hunt {
    search: Search,
    /// Suspects of the catalogue, until they were tried.
    catalogue: Vec<Trial>,
    is_begun: bool,
    is_proved: bool,
    /// How many differences there are.
    n_all: usize,
    /// Blocks of a round: few where the cost is plain to see, since what is found is proved in more.
    blocks: u32,
}

/// What is measured next.
#[derive(Debug)]
pub struct Next {
    /// The study.
    pub study: Study,
    /// The probes with the names of their arms; none in a proof.
    probes: Vec<(Probe, String)>,
    is_proof: bool,
}

impl Next {
    /// What is being done, for people.
    pub fn told(&self) -> String {
        if self.is_proof {
            return "proving what was found in blocks of its own".to_owned();
        }
        let alone = self
            .probes
            .iter()
            .filter(|(probe, _)| probe.part.len() == 1);
        format!(
            "leaving away {} part{} of the differences, {} of them alone",
            self.probes.len(),
            if self.probes.len() == 1 { "" } else { "s" },
            alone.count()
        )
    }
}

impl Hunt {
    /// For the differences of the question, with the catalogue's suspects. `is_plain` says that the cost is plain to
    /// see without an interval.
    pub fn new(asks: &Asks, first: &First, catalogue: Vec<Trial>, is_plain: bool) -> Self {
        let trace = Trace::of(first);
        let items = asks.differences.iter().map(|difference| Item {
            id: difference.id.clone(),
            likelihood: trace.weighed(&difference.id, difference.likelihood),
        });
        let mut catalogue = resolved(catalogue, asks);
        catalogue.retain(|trial| trial.arm.is_some() && trial.suspect.likelihood >= LIKELY);
        catalogue.truncate(CATALOGUE_MOST);
        Self {
            search: Search::new(items.collect()),
            catalogue,
            is_begun: false,
            is_proved: false,
            n_all: asks.differences.len(),
            // The fewest that make an interval, and one that may be void.
            blocks: if is_plain { PLAIN_BLOCKS } else { FEWEST + 1 },
        }
    }

    /// The next study, as far as the time goes; `n_arms` were used before.
    pub fn next(
        &mut self,
        ask: &Ask,
        first: &First,
        pace: Pace,
        n_arms: usize,
        left_ns: u64,
    ) -> Option<Next> {
        let asks = ask.own.as_ref()?;
        let of_arm = |blocks: u32| pace.life_ns + u64::from(blocks) * pace.env_ns.max(pace.host_ns);
        let of_base =
            |blocks: u32| 2 * pace.life_ns + u64::from(blocks) * (pace.host_ns + pace.env_ns);
        let room_of = |ns: u64, blocks: u32| {
            let rest = ns.checked_sub(of_base(blocks));
            rest.map_or(0, |ns| ns / of_arm(blocks).max(1)) as usize
        };
        let safe_ns = (left_ns as f64 * SAFE) as u64;
        let (base_ns, arm_ns) = (of_base(self.blocks), of_arm(self.blocks));
        // What is found is proved: that has its time in any case.
        let proof_ns = of_base(FEWEST) + of_arm(FEWEST);
        let room = room_of(safe_ns.saturating_sub(proof_ns), self.blocks);
        // And as much again for a further round, as far as two arms are left for this one.
        let next_ns = base_ns + NEXT_ARMS * arm_ns;
        let frugal = room_of(safe_ns.saturating_sub(proof_ns + next_ns), self.blocks);
        let most = frugal.clamp(2.min(room), ARMS_MOST);
        let probes = self.search.probes(most);
        let mut arms = Arms::new(base_arms(ask, first, false), n_arms);
        if probes.is_empty() {
            let room = room_of(safe_ns, FEWEST);
            if self.is_proved || self.to_prove().is_empty() || room == 0 {
                return None;
            }
            self.is_proved = true;
            self.prove(ask, asks, &mut arms, room);
            let mut study = ask.study("what was found, once more", arms.into_specs(), first);
            study.blocks_max = PROOF_BLOCKS;
            study.budget_ns = Some(left_ns);
            return Some(Next {
                study,
                probes: Vec::new(),
                is_proof: true,
            });
        }
        let mut named = Vec::new();
        for probe in probes {
            let suspect = suspect_of(asks, &probe.part, &ask.metric);
            let id = arms.put(TRY, &tried(ask, &probe.without), |role| {
                role.suspects.push(suspect);
            });
            named.push((probe, id.1));
        }
        // What else is worth knowing, where the search itself leaves time.
        if !std::mem::replace(&mut self.is_begun, true) {
            let spare = frugal.saturating_sub(named.len());
            for trial in self.catalogue.clone().into_iter().take(spare) {
                if let Some(tried) = &trial.arm {
                    arms.put("off", tried, |role| role.suspects.push(trial.suspect));
                }
            }
            if spare > CATALOGUE_MOST {
                climb(ask, asks, &mut arms);
            }
        }
        let mut study = ask.study(
            "the command without parts of the differences",
            arms.into_specs(),
            first,
        );
        study.blocks_max = self.blocks;
        study.blocks_min = self.blocks;
        study.budget_ns = Some(left_ns);
        Some(Next {
            study,
            probes: named,
            is_proof: false,
        })
    }

    /// What was found; where the time was too short for that, what is known to hold it.
    fn to_prove(&self) -> Vec<Vec<String>> {
        match self.search.found() {
            // All of them together are the baseline, which proves nothing.
            [] if self.is_begun => {
                let mut open = self.search.open();
                open.retain(|set| set.len() < self.n_all);
                open
            }
            found => narrowest(found),
        }
    }

    /// Arms for what was found, with what the catalogue knows about the same switch.
    fn prove(&self, ask: &Ask, asks: &Asks, arms: &mut Arms, room: usize) {
        for set in self.to_prove().iter().take(room) {
            let arm = tried(ask, set);
            let mut suspect = suspect_of(asks, set, &ask.metric);
            let of_catalogue = self.catalogue.iter().filter(|trial| {
                let same = trial.arm.as_ref();
                same.is_some_and(|it| it.settings == arm.settings && it.change == arm.change)
            });
            for Trial { suspect: known, .. } in of_catalogue {
                suspect
                    .evidence
                    .push(format!("{}: {}", known.cause, known.claim));
                suspect.evidence.extend(known.evidence.iter().cloned());
            }
            arms.put(PROOF, &arm, |role| role.suspects.push(suspect));
        }
    }

    /// Takes in what a study showed.
    pub fn learn(&mut self, next: &Next, run: &RunData, ask: &Ask) {
        if next.is_proof {
            return;
        }
        let readings = Readings::of(run);
        let results: Vec<(Probe, Option<Shown>)> = next
            .probes
            .iter()
            .map(|(probe, arm)| (probe.clone(), shown(&readings, ask, arm)))
            .collect();
        self.search.learn(&results);
    }
}

/// What was found without the switch that takes others with it: a container on the host's network has neither a
/// network, nor published ports, nor sysctls of its own. What the engine does to every container comes last.
fn narrowest(found: &[Vec<String>]) -> Vec<Vec<String>> {
    let is_wide = |set: &[String]| set == ["engine.network"];
    let is_within =
        |id: &String| id.starts_with("sysctl.net.") || matches!(id.as_str(), "network" | "publish");
    let has_narrower = found.iter().flatten().any(is_within);
    let mut sets: Vec<Vec<String>> = found
        .iter()
        .filter(|set| !(has_narrower && is_wide(set)))
        .cloned()
        .collect();
    sets.sort_by_key(|set| set.iter().any(|id| id.starts_with("engine.")));
    sets
}

/// Where the first look saw the time go, as far as counters tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Trace {
    /// What it took longer, nanoseconds.
    longer: f64,
    on_processor: f64,
    throttled: f64,
    run_delay: f64,
    /// Whether more was read from devices, or faulted in from there.
    reads: bool,
}

impl Trace {
    fn of(first: &First) -> Self {
        let more = |name: &str| {
            let of =
                |look: &super::calibrate::Look| look.counters.get(name).copied().unwrap_or(0.0);
            of(&first.env) - of(&first.host)
        };
        Self {
            longer: first.env.wall_ns as f64 - first.host.wall_ns as f64,
            on_processor: more("children_user_ns") + more("children_sys_ns"),
            throttled: more("throttled_ns"),
            run_delay: more("run_delay_ns"),
            reads: more("majflt") > 10.0 || more("read_bytes") > f64::from(1 << 20),
        }
    }

    /// How likely a difference is with this in view: one whose kind explains what was seen goes first. Nothing is
    /// ever ruled out by it.
    fn weighed(self, id: &str, likelihood: f64) -> f64 {
        const PROCESSOR: [&str; 7] = [
            "cpus",
            "cpu-quota",
            "cgroup-parent",
            "cpu-shares",
            "cpuset-cpus",
            "cpu-rt-runtime",
            "cpuset-mems",
        ];
        const STORAGE: [&str; 6] = [
            "memory",
            "device-",
            "blkio",
            "shm-size",
            "tmpfs.",
            "storage-opt",
        ];
        const PEERS: [&str; 8] = [
            "dns",
            "network",
            "add-host",
            "sysctl.net.",
            "publish",
            "engine.network",
            "log",
            "device-",
        ];
        const SAME_WORK: [&str; 6] = [
            "env.",
            "security-opt",
            "engine.seccomp",
            "runtime",
            "ulimit",
            "sysctl.",
        ];
        let is = |kind: &[&str]| kind.iter().any(|it| id.starts_with(it));
        let part = |time: f64| time > 0.3 * self.longer;
        if self.longer <= 0.0 {
            return likelihood;
        }
        let fits = if part(self.throttled) || part(self.run_delay) {
            is(&PROCESSOR)
        } else if self.reads {
            is(&STORAGE)
        } else if part(self.on_processor) {
            is(&SAME_WORK)
        } else {
            // It waited, and not for a processor.
            is(&PEERS) || is(&PROCESSOR) || is(&STORAGE)
        };
        if fits {
            (2.0 * likelihood).min(0.95)
        } else {
            likelihood / 2.0
        }
    }
}

/// What of the cost went in an arm.
fn shown(readings: &Readings, ask: &Ask, arm: &str) -> Option<Shown> {
    let total = readings.differences(PLAIN, &ask.driver, &ask.metric);
    let removed = readings.differences(arm, &ask.driver, &ask.metric);
    let (removed, total) = in_common(&removed, &total);
    if removed.len() < FEWEST as usize && removed.len() >= PLAIN_LEAST {
        // Too few for an interval: what went in every one of them.
        return Some(Shown {
            low: removed.iter().copied().fold(f64::INFINITY, f64::min),
            share: median(&removed)? / median(&total).filter(|total| *total > 0.0)?,
        });
    }
    Some(Shown {
        low: interval(&removed)?.low,
        share: share(&removed, &total)?.point,
    })
}

fn tried(ask: &Ask, without: &[String]) -> Tried {
    Tried {
        driver: ask.driver.clone(),
        settings: own::without(&ask.settings, without),
        change: ask.change(),
    }
}

fn climb(ask: &Ask, asks: &Asks, arms: &mut Arms) {
    for (place, step) in (1..).zip(steps(ask, asks)) {
        let rung = Rung {
            place,
            title: step.title,
        };
        let tried = Tried {
            driver: step.driver,
            settings: step.settings,
            change: ask.change(),
        };
        arms.put("rung", &tried, |role| role.rung = Some(rung));
    }
}

/// A difference, or several, as a suspect.
fn suspect_of(asks: &Asks, ids: &[String], metric: &str) -> Suspect {
    let of = |id: &String| asks.differences.iter().find(|it| it.id == *id);
    let all: Vec<&Difference> = ids.iter().filter_map(of).collect();
    let join = |part: fn(&Difference) -> &str, between: &str| {
        let mut parts: Vec<&str> = all.iter().map(|it| part(it)).collect();
        parts.dedup();
        parts.join(between)
    };
    let what = join(|it| &it.what, if all.len() == 2 { " and " } else { ", " });
    let cause = match all.as_slice() {
        [one] => format!("{OWN}{}", one.id),
        [one, two] => format!("{OWN}{}+{}", one.id, two.id),
        _ => SEVERAL.to_owned(),
    };
    Suspect {
        cause,
        claim: match all.as_slice() {
            [_, _, _, ..] => format!("{ONE_OF}{what}"),
            _ => format!("{what}{CLAIM}"),
        },
        evidence: Vec::new(),
        likelihood: all.iter().map(|it| it.likelihood).fold(0.0, f64::max),
        advice: if all.len() > 2 {
            "give it more time, so that they are tried one by one".to_owned()
        } else {
            join(|it| &it.advice, "; ")
        },
        price: if all.len() > 2 {
            "none is known of a set".to_owned()
        } else {
            join(|it| &it.price, "; ")
        },
        metric: metric.to_owned(),
        tried: format!("a container like it without {what}"),
        is_outside: false,
    }
}

/// What is told of the differences: what was proved in blocks of its own counts before what was tried on the way
/// there and before what the catalogue calls the same switch; what was found on the way only supports; and a set is
/// told only where nothing alone was found, or where it has no effect. `without` says what an arm does without.
pub(super) fn sifted(
    findings: &mut Vec<DossierFinding>,
    without: impl Fn(&str) -> Option<Vec<String>>,
) {
    let in_arm = |finding: &DossierFinding, prefix: &str| {
        let arm = finding.arm.as_deref().unwrap_or_default();
        arm.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with('-'))
    };
    let away = |finding: &DossierFinding| without_of(finding, &without);
    let proved: Vec<Option<Vec<String>>> = findings
        .iter()
        .filter(|finding| in_arm(finding, PROOF))
        .map(away)
        .collect();
    findings.retain(|finding| {
        let same = away(finding);
        in_arm(finding, PROOF) || same.is_none() || !proved.contains(&same)
    });
    let has_effect =
        |it: &DossierFinding| matches!(it.status, Status::Confirmed | Status::Supported);
    let is_set = |it: &DossierFinding| it.cause == SEVERAL || is_pair(&it.cause);
    let has_better = findings
        .iter()
        .any(|it| has_effect(it) && it.arm.is_some() && (in_arm(it, PROOF) || !is_set(it)));
    let is_proved = |it: &DossierFinding| in_arm(it, PROOF) && it.status == Status::Confirmed;
    let has_proof = findings.iter().any(is_proved);
    for finding in findings.iter_mut() {
        let is_own = finding.cause.starts_with(OWN);
        let is_other = !in_arm(finding, PROOF) && without_of(finding, &without).is_some();
        // One cost is not given twice: another switch that takes it too is no second cause.
        if (is_own || has_proof) && is_other && finding.status == Status::Confirmed {
            finding.status = Status::Supported;
            if !is_own {
                finding.evidence.push(
                    "what was proved above takes the same cost away: this is another way to the same end"
                        .to_owned(),
                );
            }
        }
    }
    // In the few blocks of a search there is no interval.
    findings.retain(|it| !(in_arm(it, TRY) && it.status == Status::Untested));
    findings.retain(|finding| {
        !is_set(finding)
            || in_arm(finding, PROOF)
            || finding.status == Status::Refuted
            || (has_effect(finding) && !has_better)
    });
    merge_refuted(findings);
    findings.sort_by_key(|finding| finding.status);
}

/// What the arm of a finding does without.
fn without_of(
    finding: &DossierFinding,
    without: &impl Fn(&str) -> Option<Vec<String>>,
) -> Option<Vec<String>> {
    finding.arm.as_deref().and_then(without)
}

/// Sets that had no effect are told as one.
fn merge_refuted(findings: &mut Vec<DossierFinding>) {
    let is_one = |it: &DossierFinding| it.cause == SEVERAL && it.status == Status::Refuted;
    let sets: Vec<DossierFinding> = findings.iter().filter(|it| is_one(it)).cloned().collect();
    let Some(mut all) = sets.first().cloned() else {
        return;
    };
    findings.retain(|it| !is_one(it));
    let claims = sets.iter().map(|it| it.claim.trim_start_matches(ONE_OF));
    all.claim = format!(
        "left away in {} set{}, without an effect: {}",
        sets.len(),
        if sets.len() == 1 { "" } else { "s" },
        claims.collect::<Vec<_>>().join(", ")
    );
    (all.share, all.effect, all.tried) = (None, None, None);
    findings.push(all);
}

fn is_pair(cause: &str) -> bool {
    cause.starts_with(OWN) && cause.contains('+')
}

#[cfg(test)]
mod tests;
