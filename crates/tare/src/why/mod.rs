//! `why`: which mechanism makes a command of the user's cost more in an environment, proved by switching it off.
//!
//! In order: carry the command there ([`carry`]), look at it on both sides ([`calibrate`]), compare host, A′ and
//! environment in a few blocks ([`first_study`]), ask the causes, and then run one study whose arms are the host,
//! the environment, every suspect switched off ([`counterfactual`]) and every step between ([`ladder`]), all in
//! the same randomised blocks ([`proof_study`]). After the run of any other study, [`proof`] tries its suspects. What is concluded ([`conclude`](mod@conclude)) is a pure function of a stored
//! run: the studies carry all that is needed as notes in their arms' settings ([`arm`]).
//! What it cannot see: causes that none of the rules knows; their cost stays unexplained, and is said to.

use std::collections::BTreeMap;

use tare_model::dossier::{DossierCell, Span};
use tare_model::study::A_PRIME;
use tare_model::{
    ArmId, ArmSpec, CommandCall, Lifecycle, Margins, Params, RunId, Study, Value, WorkloadId,
    WorkloadSpec,
};

use crate::cause::Case;
use crate::workload::{self, Workload, user_command};

pub mod arm;
pub mod calibrate;
pub mod carry;
pub mod conclude;
pub mod counterfactual;
pub mod ladder;
pub mod proof;
pub mod proxied;
pub mod readings;
pub mod trouble;

pub use calibrate::First;
pub use conclude::conclude;
pub use trouble::Trouble;

/// The id of every study made here.
pub const STUDY: &str = "why";

/// Blocks without which there is no interval.
pub const FEWEST: u32 = 6;
/// Blocks of the first comparison at most.
const FIRST_MOST: u32 = 12;
/// Blocks of the proof at most.
const PROOF_MOST: u32 = 30;
/// The part of the budget that the first comparison may take.
const FIRST_SHARE: f64 = 0.2;
/// What a trial takes beside the command: canary, counters, dispatch.
const AROUND_NS: u64 = 25_000_000;
/// How much longer than planned the proof may take, where the machine is slower than at the first look.
const OVERDRAFT: f64 = 1.3;
/// Suspects that are tried at most.
const SUSPECTS_MOST: usize = 6;
/// Commands shorter than this have their environment's start-up measured beside them.
const START_UP_BELOW_NS: u64 = 3_000_000_000;
/// The least time that a run of the command may take before it is given up.
const LEAST_LIMIT_NS: u64 = 60_000_000_000;
/// Output from which on a command is taken for one that prints much.
const CHATTY_BYTES: usize = 64 << 10;

/// What is kept of the mounts under the command's files.
const PARTS_OF_MOUNT: [&str; 4] = [".fstype", ".device", ".point", ".super_options"];

const HOST: &str = "host";

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The command as it was typed.
    pub command: Vec<String>,
    /// The environment's driver.
    pub driver: String,
    /// Its settings, with what must be shown inside.
    pub settings: Params,
    /// The metric.
    pub metric: String,
    /// How long everything may take, nanoseconds.
    pub budget_ns: u64,
    /// Seed of the order.
    pub seed: u64,
    /// What is run in a trial.
    pub call: CommandCall,
    /// How it was carried, a line each.
    pub carried: Vec<String>,
    /// What would have to be shown inside for the host's own program, where an image brings another.
    pub instead: Vec<String>,
}

impl Ask {
    /// The settings of the environment's arm, with notes for those who read the stored study.
    fn env_settings(&self, first: &First) -> Params {
        let mut settings = self
            .settings
            .clone()
            .with("command.argv", arm::list(self.command.clone()))
            .with("command.carried", arm::list(self.carried.clone()))
            .with("command.metric", self.metric.as_str())
            .with(arm::SEEN, seen(&first.env));
        if !self.instead.is_empty() {
            settings = settings.with(arm::HOST_FILES, arm::list(self.instead.clone()));
        }
        if let Some(value) = self.stdout() {
            settings = settings.with(arm::STDOUT, value);
        }
        settings
    }

    /// Where the command writes inside: an engine's containers write into its log.
    fn stdout(&self) -> Option<Value> {
        let has_log = matches!(self.driver.as_str(), "docker" | "podman");
        (has_log && self.call.pick.is_none()).then(|| Value::Text("console".to_owned()))
    }

    fn workload(&self) -> WorkloadSpec {
        let call = serde_json::to_string(&self.call).expect("texts and numbers are always JSON");
        WorkloadSpec {
            instances: 1,
            spread: None,
            id: id(user_command::ENTRY.id()),
            params: Params::new().with(user_command::CALL, call),
            path: None,
        }
    }

    fn study(&self, title: &str, arms: Vec<ArmSpec>, first: &First) -> Study {
        let longest = first.host.wall_ns.max(first.env.wall_ns);
        Study {
            allow_different_tools: false,
            publication: None,
            id: STUDY.to_owned(),
            title: title.to_owned(),
            seed: self.seed,
            baseline: arm_id(HOST),
            arms,
            workloads: vec![self.workload()],
            margins: Margins::default(),
            blocks_min: FEWEST,
            blocks_max: FEWEST,
            blocks_per_launch: u32::MAX,
            precision: None,
            budget_ns: None,
            trial_ns: longest,
            limit_ns: longest.saturating_mul(20).max(LEAST_LIMIT_NS),
            settle_ns: 0,
            lifecycle: Lifecycle::Warm,
        }
    }
}

fn id(text: &str) -> WorkloadId {
    WorkloadId::new(text).expect("the names of workloads are checked by a test")
}

fn arm_id(text: &str) -> ArmId {
    ArmId::new(text).expect("a plain word is a name")
}

fn host_arm(id: &str, settings: Params) -> ArmSpec {
    ArmSpec {
        id: arm_id(id),
        driver: HOST.to_owned(),
        settings,
        required: false,
    }
}

/// What was seen of the command, as facts: its own state in place of that of the agent.
fn seen_facts(look: &calibrate::Look) -> BTreeMap<String, String> {
    let lines = look.report.stdout.0.iter().filter(|byte| **byte == b'\n');
    let lines = lines.count();
    let mut facts = BTreeMap::from([
        ("command.program".to_owned(), look.report.program.clone()),
        (
            "command.stdout_bytes".to_owned(),
            look.report.stdout.0.len().to_string(),
        ),
        ("command.stdout_lines".to_owned(), lines.to_string()),
        ("command.wall_ns".to_owned(), look.wall_ns.to_string()),
    ]);
    if let Some(time) = look.counters.get(calibrate::PROXIED) {
        facts.insert("command.engine_proxy_ns".to_owned(), time.to_string());
    }
    let mounts = look.facts.iter();
    facts.extend(
        mounts
            .filter(|(name, _)| {
                let is_wanted = |part: &&str| name.ends_with(*part);
                name.starts_with("command.mount.") && PARTS_OF_MOUNT.iter().any(is_wanted)
            })
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    let is_program = |name: &str| name.starts_with("tool.") || name.starts_with("unreadable.tool.");
    let programs = look.facts.iter().filter(|(name, _)| is_program(name));
    facts.extend(programs.map(|(name, value)| (name.clone(), value.clone())));
    if let Some(seen) = &look.report.seen {
        let mapped: Vec<&str> = seen.mapped.iter().map(String::as_str).collect();
        let opened: Vec<&str> = seen.opened.iter().map(String::as_str).collect();
        facts.insert("command.opened".to_owned(), opened.join("\n"));
        facts.insert("command.threads".to_owned(), seen.threads.to_string());
        let shared = seen.shared_memory_bytes.to_string();
        facts.insert("command.shared_memory_bytes".to_owned(), shared);
        facts.insert("command.processes".to_owned(), seen.processes.to_string());
        facts.insert("command.mapped".to_owned(), mapped.join("\n"));
        for (name, value) in &seen.status {
            facts.insert(format!("status.{name}"), value.clone());
        }
        facts.extend(bytes_of(seen));
    }
    facts
}

/// Which bytes ran: the program's, its libraries', and whose C library is among them.
fn bytes_of(seen: &tare_model::command::Seen) -> BTreeMap<String, String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut facts: BTreeMap<String, String> = seen
        .sha256
        .iter()
        .filter(|(path, _)| Some(*path) != seen.executed.as_ref())
        .map(|(path, digits)| (format!("library.{}.sha256", name(path)), digits.clone()))
        .collect();
    let Some(program) = &seen.executed else {
        return facts;
    };
    if let Some(digits) = seen.sha256.get(program) {
        facts.insert("program.command.sha256".to_owned(), digits.clone());
    }
    let mut names = seen.mapped.iter().map(|path| name(path));
    let library = names.find_map(|name| {
        let is_musl = name.starts_with("ld-musl-");
        let is_glibc = name.starts_with("libc.so.") || name.starts_with("ld-linux");
        (is_musl || is_glibc).then_some(if is_musl { "musl" } else { "glibc" })
    });
    let library = library.unwrap_or("none, or a static one");
    facts.insert("command.libc".to_owned(), library.to_owned());
    facts
}

/// The same as a text that a study keeps.
fn seen(look: &calibrate::Look) -> String {
    serde_json::to_string(&seen_facts(look)).expect("texts are always JSON")
}

/// What the causes suspect after one run on each side, for commands that take too long for more.
pub fn suspects_of_one(ask: &Ask, first: &First) -> Vec<counterfactual::Trial> {
    let arms = base_arms(ask, first, false);
    let [host, env] = arms.as_slice() else {
        return Vec::new();
    };
    let evidence = |spec: &ArmSpec, look: &calibrate::Look| {
        let mut facts = look.facts.clone();
        facts.extend(seen_facts(look));
        let counters = BTreeMap::from([(readings::user_command_id(), look.counters.clone())]);
        readings::put_together(spec, facts, &ask.call, counters)
    };
    let (baseline, inside) = (evidence(host, &first.host), evidence(env, &first.env));
    let cells = [cell_of_one(ask, first)];
    let case = Case {
        host: &baseline.facts,
        baseline: &baseline,
        arm: &inside,
        cells: &cells,
    };
    counterfactual::suspects(&case, &ask.metric, env)
}

/// The two runs as a cell that costs, so that the causes have something to explain; it is never shown.
fn cell_of_one(ask: &Ask, first: &First) -> DossierCell {
    let level = |look: &calibrate::Look| {
        let point = look.wall_ns as f64;
        Span {
            point,
            low: point,
            high: point,
            level: None,
        }
    };
    let (base, env) = (level(&first.host), level(&first.env));
    let ratio = env.point / base.point.max(1.0);
    DossierCell {
        spread: None,
        arm: ask.driver.clone(),
        baseline: HOST.to_owned(),
        workload: readings::user_command_id(),
        params: Params::new(),
        instances: 1,
        path: None,
        metric: ask.metric.clone(),
        revision: 1,
        unit: "ns".to_owned(),
        better: "lower".to_owned(),
        summary: "typical".to_owned(),
        n_blocks: 1,
        base: Some(base),
        env: Some(env),
        ratio: Some(Span {
            point: ratio,
            low: ratio,
            high: ratio,
            level: None,
        }),
        difference: None,
        ratio90: None,
        floor: None,
        p: None,
        q: None,
        margin: Margins::default().compute,
        verdict: tare_stats::Verdict::MaterialCost.name().to_owned(),
        mde: None,
        further_blocks: None,
        flags: Vec::new(),
    }
}

/// How many trials of this length fit.
fn trials_in(budget_ns: u64, wall_ns: u64) -> u64 {
    budget_ns / wall_ns.saturating_add(AROUND_NS).max(1)
}

/// Host, A′ and environment in a few blocks: whether there is a cost at all, and counters for the causes. `None`
/// where the command takes too long for it; then the first look has to serve.
pub fn first_study(ask: &Ask, first: &First, spent_ns: u64) -> Option<Study> {
    let budget_ns = (ask.budget_ns as f64 * FIRST_SHARE) as u64;
    let has_start_up = first.host.wall_ns < START_UP_BELOW_NS;
    let command_ns = (2 * first.host.wall_ns + first.env.wall_ns) / 3;
    let fit = |trial_ns: u64| trials_in(budget_ns, trial_ns) / 3;
    // The start-up may take the first comparison beyond its share, and not below six blocks.
    let life_ns = if has_start_up { first.life_ns / 3 } else { 0 };
    let blocks = fit(command_ns + life_ns)
        .max(u64::from(FEWEST))
        .min(fit(command_ns))
        .min(u64::from(FIRST_MOST)) as u32;
    if blocks < FEWEST {
        return None;
    }
    let mut study = ask.study(
        "the command on the host and inside",
        base_arms(ask, first, true),
        first,
    );
    study.blocks_min = blocks;
    study.blocks_max = blocks;
    if has_start_up {
        study.workloads.push(start_up());
    }
    // The first look is over after half a minute, whatever the machine does; what is there then serves.
    let left_ns = ask.budget_ns.saturating_sub(spent_ns);
    study.budget_ns = Some((budget_ns * 2).min(left_ns / 2).max(5_000_000_000));
    Some(study)
}

fn start_up() -> WorkloadSpec {
    WorkloadSpec {
        instances: 1,
        spread: None,
        id: id(workload::start_up::WORKLOAD.id()),
        params: Params::new(),
        path: None,
    }
}

/// Host, A′ if wanted, environment.
fn base_arms(ask: &Ask, first: &First, with_a_prime: bool) -> Vec<ArmSpec> {
    let notes = || Params::new().with(arm::SEEN, seen(&first.host));
    let mut arms = vec![ArmSpec {
        required: true,
        ..host_arm(HOST, notes())
    }];
    if with_a_prime {
        arms.push(host_arm(A_PRIME, notes()));
    }
    arms.push(ArmSpec {
        id: env_id(&ask.driver),
        driver: ask.driver.clone(),
        settings: ask.env_settings(first),
        required: true,
    });
    arms
}

fn env_id(driver: &str) -> ArmId {
    arm_id(driver)
}

/// More blocks of host, A′ and environment, where the first ones decided nothing.
pub fn closer_study(ask: &Ask, first: &First, left_ns: u64) -> Option<Study> {
    let mean_ns = (2 * first.host.wall_ns + first.env.wall_ns) / 3;
    let blocks = (trials_in(left_ns * 9 / 10, mean_ns) / 3).min(u64::from(PROOF_MOST)) as u32;
    if blocks < FEWEST {
        return None;
    }
    let mut study = ask.study(
        "a closer look at host and environment",
        base_arms(ask, first, true),
        first,
    );
    study.blocks_max = blocks;
    study.budget_ns = Some(left_ns);
    Some(study)
}

/// Host and environment with every suspect switched off and every step between, as far as they fit. `None` where
/// not even the two fit.
pub fn proof_study(
    ask: &Ask,
    first: &First,
    trials: &[counterfactual::Trial],
    left_ns: u64,
) -> Option<Study> {
    let (host_ns, env_ns) = (
        first.host.wall_ns,
        first.env.wall_ns.max(first.host.wall_ns),
    );
    let with_start_up = trials
        .iter()
        .take(SUSPECTS_MOST)
        .any(|trial| trial.suspect.metric.starts_with("start-up"));
    let arm_ns = first.life_ns;
    let life_ns = if with_start_up { arm_ns } else { 0 };
    // Every arm beside the two is taken for as slow as the environment.
    let per_arm_ns = arm_ns + u64::from(FEWEST) * (env_ns + AROUND_NS + life_ns);
    let base_ns = 2 * arm_ns + u64::from(FEWEST) * (host_ns + env_ns + 2 * AROUND_NS + life_ns);
    let room = left_ns.checked_sub(base_ns)? / per_arm_ns.max(1);
    let mut arms = Arms(base_arms(ask, first, room > 6));
    let env = arms.0.len() - 1;
    let mut room = room as usize;
    // A third of the arms is left for the ladder, which also tells of causes that no rule knows.
    let n_most = SUSPECTS_MOST.min((room * 2).div_ceil(3));
    let mut n_tried = 0;
    let mut left_over = Vec::new();
    for trial in trials {
        let mut suspect = trial.suspect.clone();
        match &trial.arm {
            Some((driver, settings)) if room > 0 && n_tried < n_most => {
                let is_new = arms.put("off", driver, settings, |settings| {
                    let mut noted = arm::texts(&settings, arm::CAUSES);
                    noted.push(counterfactual::note(&suspect));
                    settings.with(arm::CAUSES, arm::list(noted))
                });
                n_tried += 1;
                room -= usize::from(is_new);
            }
            Some(_) => {
                suspect.tried = format!("{}: no time for it within the budget", suspect.tried);
                left_over.push(counterfactual::note(&suspect));
            }
            None => left_over.push(counterfactual::note(&suspect)),
        }
    }
    let stdout = ask.stdout();
    let has_log = first.host.report.stdout.0.len() > CHATTY_BYTES;
    let mut steps = ladder::steps(&ask.driver, &ask.settings, &first.env.facts);
    if !has_log {
        // Without output the log driver is no step.
        for step in &mut steps {
            if step.title.contains("the engine's log") {
                step.weight = 0;
            }
        }
    }
    for (place, step) in (1..).zip(ladder::fitted(steps, room)) {
        let settings = ladder::settings_of(&step, place, stdout.as_ref());
        if step.settings == ask.settings {
            let own = arms.0[env].settings.clone();
            arms.0[env].settings = own
                .with(arm::RUNG, i64::from(place as u32))
                .with(arm::TITLE, step.title.as_str());
            continue;
        }
        arms.put("rung", &step.driver, &settings, |noted| {
            noted
                .with(arm::RUNG, i64::from(place as u32))
                .with(arm::TITLE, step.title.as_str())
        });
    }
    if !left_over.is_empty() {
        let own = arms.0[env].settings.clone();
        arms.0[env].settings = own.with(arm::CAUSES, arm::list(left_over));
    }
    let n_arms = arms.0.len() as u64;
    let mut study = ask.study("the command with each mechanism in turn", arms.0, first);
    if with_start_up {
        study.workloads.push(start_up());
    }
    let per_block_ns = n_arms * (env_ns + AROUND_NS + life_ns);
    let fitting = left_ns.saturating_sub(n_arms * arm_ns) / per_block_ns.max(1);
    study.blocks_max = (fitting as u32).clamp(FEWEST, PROOF_MOST);
    study.blocks_min = study.blocks_max;
    // Six blocks are worth more than the last seconds of a budget: without them there is no interval at all.
    study.budget_ns = Some((left_ns as f64 * OVERDRAFT) as u64);
    Some(study)
}

/// The study with a note of the run that came before it, so that whoever reads the stored run finds the start-up
/// that only that one measured.
#[must_use]
pub fn after(mut study: Study, before: &RunId) -> Study {
    let baseline = study.baseline.clone();
    let env = study
        .arms
        .iter_mut()
        .find(|arm| conclude::is_asked_about(arm, &baseline));
    if let Some(env) = env {
        env.settings = env.settings.clone().with(arm::BEFORE, before.to_string());
    }
    study
}

/// Whether a study's arms change the commands of its workloads, which only the drivers of [`arm`] know to do.
pub fn changes_commands(study: &Study) -> bool {
    matches!(study.id.as_str(), STUDY | proof::STUDY)
}

/// The run that came before a stored one, as it is noted there.
pub fn before(study: &Study) -> Option<&str> {
    let mut arms = study.arms.iter();
    arms.find_map(|arm| arm.settings.text(arm::BEFORE))
}

/// The file that holds the command's standard input, if it has one.
pub fn input_of(study: &Study) -> Option<String> {
    let call = study.workloads.first().filter(|_| study.id == STUDY)?;
    CommandCall::from_args(&call.params).ok()?.stdin_file
}

/// Arms under construction: those that would be the same are one.
struct Arms(Vec<ArmSpec>);

impl Arms {
    /// Adds an arm, or finds the one that does the same, and lets `note` write into its settings. Whether it is
    /// new.
    fn put(
        &mut self,
        prefix: &str,
        driver: &str,
        settings: &Params,
        note: impl FnOnce(Params) -> Params,
    ) -> bool {
        let does = |settings: &Params| {
            let mut does = arm::own(settings);
            for name in [arm::PREFIX, arm::VARIABLES, arm::STDOUT, arm::COLD] {
                if let Some(value) = settings.value(name) {
                    does = does.with(name, value.clone());
                }
            }
            does
        };
        let wanted = does(settings);
        let same = self.0.iter_mut().find(|arm| {
            arm.driver == driver
                && arm.id.as_str() != HOST
                && arm.id.as_str() != A_PRIME
                && does(&arm.settings) == wanted
        });
        if let Some(arm) = same {
            arm.settings = note(arm.settings.clone());
            return false;
        }
        let number = self.0.len();
        self.0.push(ArmSpec {
            id: arm_id(&format!("{prefix}-{number}")),
            driver: driver.to_owned(),
            settings: note(settings.clone()),
            required: false,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::command_output::{report, tests::raw};
    use counterfactual::{Suspect, Trial};

    pub(super) fn first(wall_ns: u64) -> First {
        let look = calibrate::Look {
            report: report(&raw(0, b"out", b"")).unwrap(),
            wall_ns,
            counters: BTreeMap::new(),
            facts: tare_model::Facts::new(),
        };
        First {
            host: look.clone(),
            env: look,
            life_ns: SECOND,
            remarks: Vec::new(),
        }
    }

    pub(super) fn ask(driver: &str, settings: Params) -> Ask {
        Ask {
            command: vec!["work".into()],
            driver: driver.into(),
            settings,
            metric: user_command::WALL.into(),
            budget_ns: 120_000_000_000,
            seed: 1,
            call: CommandCall::new("/bin/work", [""; 0]),
            carried: vec!["carried".into()],
            instead: Vec::new(),
        }
    }

    fn suspect(cause: &str, settings: Params) -> Trial {
        Trial {
            suspect: Suspect {
                cause: cause.into(),
                claim: String::new(),
                evidence: Vec::new(),
                likelihood: 0.9,
                advice: String::new(),
                price: String::new(),
                metric: user_command::WALL.into(),
                tried: "tried".into(),
                is_outside: false,
            },
            arm: Some(("docker".into(), settings)),
        }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_command_of_a_second_is_first_compared_within_half_a_minute() {
        let ask = ask("docker", Params::new());
        let study = first_study(&ask, &first(SECOND), 5 * SECOND).unwrap();
        assert!(study.blocks_max >= FEWEST);
        let trials = study.arms.len() as u64 * u64::from(study.blocks_max);
        assert!(trials * SECOND <= 25 * SECOND, "{trials} trials");
        assert_eq!(study.workloads.len(), 2, "start-up beside it");
    }

    #[test]
    fn a_command_of_five_minutes_is_not_compared_before_there_is_time_for_six_blocks() {
        let mut ask = ask("docker", Params::new());
        let long = first(300 * SECOND);
        assert_eq!(first_study(&ask, &long, 0), None);
        assert_eq!(proof_study(&ask, &long, &[], 60 * SECOND), None);
        assert_eq!(closer_study(&ask, &long, 60 * SECOND), None);
        ask.budget_ns = 36_000 * SECOND;
        let study = proof_study(&ask, &long, &[], 35_000 * SECOND).unwrap();
        assert!(study.blocks_max >= FEWEST && study.arms.len() >= 2);
    }

    #[test]
    fn what_several_suspects_and_steps_would_do_alike_is_one_arm() {
        let settings = Params::new().with("cpus", 0.5);
        let ask = ask("docker", settings);
        let without = Params::new().with(arm::STDOUT, "console");
        let trials = [
            suspect("cpu.one", without.clone()),
            suspect("cpu.two", without),
        ];
        let study = proof_study(&ask, &first(SECOND), &trials, 90 * SECOND).unwrap();
        let off: Vec<&ArmSpec> = study
            .arms
            .iter()
            .filter(|arm| arm.id.as_str().starts_with("off"))
            .collect();
        assert_eq!(off.len(), 1);
        assert_eq!(counterfactual::noted(&off[0].settings).len(), 2);
        // The step below the quota is the same environment too.
        assert!(off[0].settings.int(arm::RUNG).is_some(), "{:?}", off[0]);
    }

    #[test]
    fn most_of_a_little_time_goes_to_suspects_and_a_step_is_left() {
        let ask = ask("docker", Params::new().with("cpus", 0.5));
        let trials: Vec<Trial> = (0..4)
            .map(|number| {
                let settings = Params::new().with("shm", 4096 + number);
                suspect("a.cause", settings)
            })
            .collect();
        let study = proof_study(&ask, &first(SECOND), &trials, 42 * SECOND).unwrap();
        let count = |prefix: &str| {
            let arms = study.arms.iter();
            arms.filter(|arm| arm.id.as_str().starts_with(prefix))
                .count()
        };
        assert!(count("off") >= 2, "{:?}", study.arms);
        assert!(count("rung") < count("off"), "{:?}", study.arms);
        let env = study
            .arms
            .iter()
            .find(|arm| arm.id.as_str() == "docker")
            .unwrap();
        let left = counterfactual::noted(&env.settings);
        assert_eq!(left.len() + count("off"), 4);
        assert!(left[0].tried.contains("no time"));
    }
}
