//! `why`: finds which mechanism makes a user's command slower in an environment, and proves it by switching it off.
//!
//! The steps: carry the command into the environment, observe it on both sides (both in the crate `tare`), compare
//! host, A/A control and environment in a few blocks, and ask the causes. Then, as far as the budget allows, run
//! studies whose arms are the host, the environment, suspects switched off ([`counterfactual`]) and the steps between
//! ([`ladder`]), all in the same randomised blocks ([`studies`]). After the run of any other study, [`proof`] tries
//! its suspects.
//! The conclusion ([`conclude`](mod@conclude)) is a pure function of the stored runs, which count as one (`joined`):
//! the arms of the studies carry all that is needed ([`tare_model::arm`]).
//! Limits: finds only causes that have a rule; all other overhead is reported as unexplained.

use std::collections::BTreeMap;

use tare_model::arm::WhyQuestion;
use tare_model::command::Stdout;
use tare_model::dossier::{DossierCell, Span};
use tare_model::{
    ArmId, ArmSpec, Better, CommandCall, CommandChange, Margins, Params, RunId, Study, Summary,
    Verdict, WorkloadId, WorkloadSpec,
};
use tare_model::{counter, fact};

use crate::cause::Case;
use crate::driver::mechanism::Kind;
use crate::driver::user_container::{WITHOUT, leave_out};
use crate::driver::{Files, container};
use crate::workload::{Workload, user_command};

mod answer;
pub mod conclude;
pub mod counterfactual;
pub mod cut_off;
pub mod engine;
pub mod fresh;
mod joined;
pub mod ladder;
pub mod more_blocks;
pub mod observed;
pub mod pace;
pub mod proof;
pub mod readings;
pub mod search;
mod settled;
pub mod studies;
mod total;
pub mod user_container;

pub use conclude::conclude;
use counterfactual::TriedArm;
pub use joined::joined;
pub use observed::First;
use observed::Observed;
use settled::is_settled;

/// The id of every study of `why`.
pub const STUDY: &str = "why";

/// The fewest blocks that give an interval.
pub const FEWEST: u32 = 6;
/// The maximum number of suspects in one study.
const SUSPECTS_MOST: usize = 6;
/// The shortest time limit for a run of the command.
const LEAST_LIMIT_NS: u64 = 60_000_000_000;
/// The facts that are kept about the mounts under the command's files.
const PARTS_OF_MOUNT: [&str; 4] = [
    fact::MOUNT_FSTYPE,
    fact::MOUNT_DEVICE,
    fact::MOUNT_POINT,
    fact::MOUNT_SUPER_OPTIONS,
];

/// The host's name, both as driver and as arm.
pub const HOST: &str = "host";

/// The question: a command, an environment and a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The command as it was typed.
    pub command: Vec<String>,
    /// The environment's driver.
    pub driver: String,
    /// The driver's settings, including the mounts that the command needs.
    pub settings: Params,
    /// The program to pack into an environment without bind mounts, if any.
    pub program: Option<String>,
    /// The metric to explain.
    pub metric: String,
    /// Time limit for the whole answer, nanoseconds.
    pub budget_ns: u64,
    /// Seed of the trial order.
    pub seed: u64,
    /// The call that a trial runs.
    pub call: CommandCall,
    /// How the command was carried into the environment, one line each.
    pub carried: Vec<String>,
    /// The mounts that would make the host's program visible inside, if an image brings another.
    pub instead: Vec<String>,
    /// For a user's container: its differences from the baseline.
    pub own: Option<user_container::ContainerQuestion>,
}

/// The baseline that the environment is compared with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Base {
    /// The arm's name.
    pub id: &'static str,
    /// Its driver.
    pub driver: String,
    /// Its settings.
    pub settings: Params,
    /// Its changes to the command, which may include some of the differences.
    pub change: CommandChange,
}

impl Ask {
    /// The baseline: the host, or the one below the user's container.
    pub fn base(&self) -> Base {
        match &self.own {
            Some(own) => own.base.clone(),
            None if self.call.client.is_some() => {
                let network = Params::new().with("network", "veth");
                let files = container::host_files(Vec::new(), &network);
                Base {
                    id: HOST,
                    driver: files.driver,
                    settings: files.settings,
                    ..Base::default()
                }
            }
            None => Base {
                id: HOST,
                driver: HOST.to_owned(),
                ..Base::default()
            },
        }
    }

    /// The environment's arm.
    fn env_arm(&self, first: &First) -> ArmSpec {
        let arm = self.tried(self.settings.clone());
        let mut arm = arm.named(arm_id(&self.driver)).required();
        arm.role.seen = seen_facts(&first.env);
        let asks = self.own.as_ref();
        arm.role.suspects =
            asks.map_or_else(Vec::new, |asks| user_container::noted(asks, &self.metric));
        arm.role.asked = Some(WhyQuestion {
            argv: self.command.clone(),
            carried: self.carried.clone(),
            metric: self.metric.clone(),
            host_files: self.instead.clone(),
            in_one_go: first.in_slices.as_ref().err().cloned(),
            life_ns: Some(first.life_ns),
            first_run: asks
                .and_then(|own| own.fresh.as_ref())
                .and_then(|fresh| fresh.first_run.clone()),
        });
        arm
    }

    /// The changes to the command in the environment and at every step towards it. Containers of an engine write to
    /// its log driver.
    pub fn change(&self) -> CommandChange {
        let head = self.own.as_ref().map(|own| own.head.clone());
        let head = head.unwrap_or_default();
        CommandChange {
            argv: head.argv,
            variables: head.variables,
            ..self.change_in(&self.driver)
        }
    }

    /// An arm like the environment with other settings.
    fn tried(&self, settings: Params) -> TriedArm {
        TriedArm {
            driver: self.driver.clone(),
            settings,
            change: self.change(),
        }
    }

    /// The same for the baseline.
    fn change_of(&self, base: &Base) -> CommandChange {
        let in_driver = self.change_in(&base.driver);
        CommandChange {
            argv: base.change.argv.clone(),
            variables: base.change.variables.clone(),
            left_out: base.change.left_out,
            directory: base.change.directory.clone(),
            stdout: base.change.stdout.or(in_driver.stdout),
            ..in_driver
        }
    }

    /// The same for an arm of another driver.
    fn change_in(&self, driver: &str) -> CommandChange {
        let has_log = crate::driver::mechanisms(driver)
            .find(Kind::Output)
            .is_some();
        // The working directory does not exist where only packed files are inside.
        let has_directory =
            crate::driver::find(driver).is_none_or(|found| found.files != Files::Packed);
        let is_server = self.call.client.is_some();
        CommandChange {
            directory: (!has_directory).then(|| "/".to_owned()),
            stdout: match (has_log, is_server) {
                (true, _) if is_server || self.call.pick.is_none() => Some(Stdout::Console),
                // The log of a bare server is discarded.
                (false, true) => Some(Stdout::Discarded),
                _ => None,
            },
            program: self.program.clone(),
            ..CommandChange::default()
        }
    }

    /// Whether each run is in a new container, on both sides.
    pub fn is_fresh(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.fresh.is_some())
    }

    fn workload(&self, first: &First) -> WorkloadSpec {
        let call = CommandCall {
            in_slices: first.in_slices.as_ref().ok().copied(),
            cut_off: first.cut_ns.is_some(),
            runs: Some(pace::runs(first)).filter(|runs| runs.get() > 1),
            ..self.call.clone()
        };
        let call = serde_json::to_string(&call).expect("texts and numbers are always JSON");
        WorkloadSpec::new(
            id(user_command::UserCommand.id()),
            Params::new().with(user_command::CALL, call),
        )
    }

    fn study(&self, title: &str, mut arms: Vec<ArmSpec>, first: &First) -> Study {
        if let Some(own) = &self.own {
            for arm in &mut arms {
                let without = arm.settings.words(WITHOUT);
                leave_out(&own.of_command, &without, &mut arm.change);
            }
        }
        let longest =
            first.host.wall_ns.max(first.env.wall_ns) * u64::from(pace::runs(first).get());
        let longest = first.cut_ns.map_or(longest, |cut_ns| longest.min(cut_ns));
        let baseline = arm_id(self.base().id);
        Study {
            alternate: first.in_slices.is_ok(),
            title: title.to_owned(),
            seed: self.seed,
            blocks_min: FEWEST,
            blocks_max: FEWEST,
            blocks_per_launch: if first.is_fresh { 1 } else { u32::MAX },
            trial_ns: longest,
            limit_ns: first
                .cut_ns
                .unwrap_or_else(|| longest.saturating_mul(20).max(LEAST_LIMIT_NS)),
            ..Study::new(STUDY, baseline, arms, vec![self.workload(first)])
        }
    }
}

fn id(text: &str) -> WorkloadId {
    WorkloadId::new(text).expect("the names of workloads are checked by a test")
}

fn arm_id(text: &str) -> ArmId {
    ArmId::new(text).expect("a plain word is a name")
}

/// Observations of the command as facts; its process status replaces the agent's.
fn seen_facts(look: &Observed) -> BTreeMap<String, String> {
    let lines = look.report.stdout.0.iter().filter(|byte| **byte == b'\n');
    let lines = lines.count();
    let mut facts = BTreeMap::from([
        (
            fact::COMMAND_PROGRAM.to_owned(),
            look.report.program.clone(),
        ),
        (
            fact::COMMAND_STDOUT_BYTES.to_owned(),
            look.report.stdout.0.len().to_string(),
        ),
        (fact::COMMAND_STDOUT_LINES.to_owned(), lines.to_string()),
        (fact::COMMAND_WALL.to_owned(), look.wall_ns.to_string()),
    ]);
    if let Some(time) = look.counters.get(counter::ENGINE_PROXY) {
        facts.insert(fact::COMMAND_PROXY.to_owned(), time.to_string());
    }
    let mounts = look.facts.iter();
    facts.extend(
        mounts
            .filter(|(name, _)| {
                let is_wanted = |part: &&str| name.ends_with(fact::ending(part));
                fact::what(fact::COMMAND_MOUNT, name).is_some()
                    && PARTS_OF_MOUNT.iter().any(is_wanted)
            })
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    let is_program = |name: &str| {
        let mut families = [fact::TOOL, fact::UNREADABLE_TOOL].into_iter();
        families.any(|family| fact::what(family, name).is_some())
    };
    let programs = look.facts.iter().filter(|(name, _)| is_program(name));
    facts.extend(programs.map(|(name, value)| (name.clone(), value.clone())));
    if let Some(seen) = &look.report.seen {
        let mapped: Vec<&str> = seen.mapped.iter().map(String::as_str).collect();
        let opened: Vec<&str> = seen.opened.iter().map(String::as_str).collect();
        facts.insert(fact::COMMAND_OPENED.to_owned(), opened.join("\n"));
        facts.insert(fact::COMMAND_THREADS.to_owned(), seen.threads.to_string());
        let shared = seen.shared_memory_bytes.to_string();
        facts.insert(fact::COMMAND_SHARED_MEMORY.to_owned(), shared);
        facts.insert(
            fact::COMMAND_PROCESSES.to_owned(),
            seen.processes.to_string(),
        );
        facts.insert(fact::COMMAND_MAPPED.to_owned(), mapped.join("\n"));
        for (name, value) in &seen.status {
            facts.insert(fact::name_for(fact::STATUS, name), value.clone());
        }
        facts.extend(bytes_of(seen));
    }
    facts
}

/// Checksums of the program and its libraries, and the C library's name.
fn bytes_of(seen: &tare_model::command::ProcessSamples) -> BTreeMap<String, String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut facts: BTreeMap<String, String> = seen
        .sha256
        .iter()
        .filter(|(path, _)| Some(*path) != seen.executed.as_ref())
        .map(|(path, digits)| {
            (
                fact::name_for(fact::LIBRARY_SHA256, &name(path)),
                digits.clone(),
            )
        })
        .collect();
    let Some(program) = &seen.executed else {
        return facts;
    };
    if let Some(digits) = seen.sha256.get(program) {
        facts.insert(
            fact::name_for(fact::PROGRAM_SHA256, "command"),
            digits.clone(),
        );
    }
    let mut names = seen.mapped.iter().map(|path| name(path));
    let library = names.find_map(|name| {
        let is_musl = name.starts_with("ld-musl-");
        let is_glibc = name.starts_with("libc.so.") || name.starts_with("ld-linux");
        (is_musl || is_glibc).then_some(if is_musl { "musl" } else { "glibc" })
    });
    let library = library.unwrap_or("none, or a static one");
    facts.insert(fact::COMMAND_LIBC.to_owned(), library.to_owned());
    facts
}

/// The suspects after one run on each side, for commands that take too long for more.
pub fn suspects_of_one(ask: &Ask, first: &First) -> Vec<counterfactual::SuspectTrial> {
    let arms = studies::base_arms(ask, first, false);
    let [host, env] = arms.as_slice() else {
        return Vec::new();
    };
    let evidence = |spec: &ArmSpec, look: &Observed| {
        let mut facts = look.facts.clone();
        facts.extend(seen_facts(look));
        let counters = BTreeMap::from([(readings::user_command_id(), look.counters.clone())]);
        readings::put_together(spec, facts, &ask.call, counters)
    };
    let (baseline, inside) = (evidence(host, &first.host), evidence(env, &first.env));
    let cells = [cell_of_one(ask, first)];
    let case = Case {
        baseline: &baseline,
        arm: &inside,
        cells: &cells,
    };
    counterfactual::suspects(&case, &ask.metric, env)
}

/// The two runs as a cell with a slowdown, so that the causes have something to explain; never displayed.
fn cell_of_one(ask: &Ask, first: &First) -> DossierCell {
    let level = |look: &Observed| {
        let point = look.wall_ns as f64;
        Span::new(point, point, point)
    };
    let (base, env) = (level(&first.host), level(&first.env));
    let ratio = env.point / base.point.max(1.0);
    DossierCell {
        spread: None,
        arm: ask.driver.clone(),
        baseline: ask.base().id.to_owned(),
        workload: readings::user_command_id(),
        params: Params::new(),
        instances: 1,
        path: None,
        metric: ask.metric.clone(),
        revision: 1,
        unit: "ns".to_owned(),
        better: Better::Lower,
        summary: Summary::Typical,
        n_blocks: 1,
        in_turn: false,
        base: Some(base),
        env: Some(env),
        ratio: Some(Span::new(ratio, ratio, ratio)),
        difference: None,
        ratio90: None,
        floor: None,
        p: None,
        q: None,
        margin: Margins::default().compute,
        verdict: Verdict::MaterialCost,
        mde: None,
        further_blocks: None,
        flags: Vec::new(),
        blocks: Vec::new(),
    }
}

/// Notes in the study which run came before it, because only that one measured the start-up.
#[must_use]
pub fn after(mut study: Study, before: &RunId) -> Study {
    let baseline = study.baseline.clone();
    let env = study
        .arms
        .iter_mut()
        .find(|arm| conclude::is_asked_about(arm, &baseline));
    if let Some(env) = env {
        env.role.before = Some(before.to_string());
    }
    study
}

/// Whether `why` made the study, rather than a user.
pub fn is_own_study(study: &Study) -> bool {
    is_an_answer(&study.id)
}

/// The same by the study's id.
pub fn is_an_answer(study: &str) -> bool {
    matches!(study, STUDY | proof::STUDY)
}

/// The id of the run before a stored one, if noted.
pub fn before(study: &Study) -> Option<&str> {
    let mut arms = study.arms.iter();
    arms.find_map(|arm| arm.role.before.as_deref())
}

/// The file that holds the command's standard input, if it has one.
pub fn input_of(study: &Study) -> Option<String> {
    let call = study.workloads.first().filter(|_| study.id == STUDY)?;
    CommandCall::from_args(&call.params).ok()?.stdin_file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packed_environment_starts_at_its_root() {
        let started = |driver: &str| {
            let ask = studies::tests::ask(driver, Params::new());
            ask.change().directory
        };
        assert_eq!(started("vm").as_deref(), Some("/"));
        for driver in ["docker", "container", "ssh", "oci"] {
            assert_eq!(started(driver), None, "{driver}");
        }
    }
}
