//! One arm of a study: an environment with its settings, its changes to the command, and its role.
//!
//! All arms of a block run the same workload; otherwise they could not be paired. A variable or a prefix that
//! switches a suspect off is therefore part of the arm. Stores and dossiers keep change and role among the settings,
//! under names that begin with [`COMMAND`]; everywhere else they are fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::command::{COMMAND_PROBE, CommandCall, Stdout};
use crate::id::ArmId;
use crate::params::{Params, Value};
use crate::recipe::{End, Path, ProbeCall, Recipe};

pub use crate::suspect::Suspect;

/// Prefix of the setting names under which change and role are stored.
pub const COMMAND: &str = "command.";

/// An arm as defined in the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct ArmSpec {
    /// Name of the arm in the study.
    pub id: ArmId,
    /// The driver that creates it.
    pub driver: String,
    /// The driver's settings.
    pub settings: Params,
    /// Whether the user named the arm explicitly; it is then an error if it cannot be started.
    pub required: bool,
    /// How the command is changed in this arm.
    pub change: CommandChange,
    /// The arm's purpose.
    pub role: Role,
}

/// Changes that an arm makes to the commands run in it. Other probes are unaffected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandChange {
    /// Arguments that replace the command; empty if the command itself runs.
    pub argv: Vec<String>,
    /// Words put before the command.
    pub prefix: Vec<String>,
    /// Additional environment variables of the command.
    pub variables: BTreeMap<String, String>,
    /// Where stdout goes, if not into the report.
    pub stdout: Option<Stdout>,
    /// Files dropped from the page cache before each run of the command.
    pub cold: Vec<String>,
    /// A program to pack where it cannot be bind-mounted.
    pub program: Option<String>,
    /// Number of words removed from the beginning of the command; at least one word always stays.
    pub left_out: usize,
    /// Working directory of the command, if changed.
    pub directory: Option<String>,
}

/// An arm's purpose in a study of `tare why` or one that switches suspects off; empty in all others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Role {
    /// The question, in the arm that it is about.
    pub asked: Option<WhyQuestion>,
    /// Facts observed about the command here during the first look.
    pub seen: BTreeMap<String, String>,
    /// Causes that are switched off, or on, in this arm; in the arm in question, the causes that no arm tests.
    pub suspects: Vec<Suspect>,
    /// The arm's step of the ladder, if any.
    pub rung: Option<Rung>,
    /// Name of the run that led to this one; noted in one of the arms.
    pub before: Option<String>,
    /// The arm that this one is a changed copy of; if the baseline is the changed one, the arm that this one stands
    /// for.
    pub of: Option<String>,
    /// If two sides are compared and this arm is the second side with something of the first: the names of those
    /// differences.
    pub without: Vec<String>,
}

/// A question asked with `tare why`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhyQuestion {
    /// The command as typed.
    pub argv: Vec<String>,
    /// How the command was carried into the environment, one line each.
    pub carried: Vec<String>,
    /// The metric in question.
    pub metric: String,
    /// Host files that must be mounted inside so that the host's program runs there, if the image has a different
    /// one.
    pub host_files: Vec<String>,
    /// Why the command runs uninterrupted, if it does; a clause that follows "because it".
    pub in_one_go: Option<String>,
    /// Time that starting and removing the environment took once, nanoseconds.
    pub life_ns: Option<u64>,
    /// What every new environment does once more, if its next run is shorter than its first.
    pub first_run: Option<FirstRun>,
}

/// The first run of a command in a new environment, which is longer than the next one there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstRun {
    /// Its time, nanoseconds.
    pub first_ns: u64,
    /// That of the next, nanoseconds.
    pub next_ns: u64,
    /// Where it writes, each with the number of files; empty if unknown.
    pub written: Vec<(String, usize)>,
}

/// A step of the ladder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rung {
    /// Position, from 1.
    pub place: i64,
    /// The mechanism that it adds, in words.
    pub title: String,
}

impl ArmSpec {
    /// Creates an arm without a role that leaves the command unchanged.
    pub fn new(id: ArmId, driver: impl Into<String>, settings: Params) -> Self {
        Self {
            id,
            driver: driver.into(),
            settings,
            required: false,
            change: CommandChange::default(),
            role: Role::default(),
        }
    }

    /// Marks the arm as explicitly requested.
    #[must_use]
    pub fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// Returns the settings including change and role, as stores and dossiers have them.
    pub fn stored_settings(&self) -> Params {
        let mut settings = self.settings.clone();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                settings.0.insert(format!("{COMMAND}{name}"), value);
            }
        };
        let CommandChange {
            argv: instead,
            prefix,
            variables,
            stdout,
            cold,
            program,
            left_out,
            directory,
        } = &self.change;
        let json = |suspect| serde_json::to_string(suspect).expect("texts and numbers are JSON");
        let assigned = |(name, text): (&String, &String)| format!("{name}={text}");
        put("instead", listed(instead.iter().cloned()));
        put("prefix", listed(prefix.iter().cloned()));
        put("variables", listed(variables.iter().map(assigned)));
        put(
            "stdout",
            (*stdout == Some(Stdout::Console)).then(|| "console".into()),
        );
        put("cold", listed(cold.iter().cloned()));
        put("program", program.as_deref().map(Value::from));
        let left_out = i64::try_from(*left_out).unwrap_or(i64::MAX);
        put("left_out", (left_out > 0).then(|| left_out.into()));
        put("directory", directory.as_deref().map(Value::from));
        let role = &self.role;
        if let Some(asked) = &role.asked {
            put("argv", Some(list(asked.argv.iter().cloned())));
            put("carried", Some(list(asked.carried.iter().cloned())));
            put("metric", Some(asked.metric.as_str().into()));
            put("host_files", listed(asked.host_files.iter().cloned()));
            put("in_one_go", asked.in_one_go.as_deref().map(Value::from));
            let life_ns = asked.life_ns.and_then(|ns| i64::try_from(ns).ok());
            put("life_ns", life_ns.map(Value::from));
            let json = |it| serde_json::to_string(it).expect("texts and numbers are JSON");
            put(
                "first_run",
                asked.first_run.as_ref().map(json).map(Value::from),
            );
        }
        if !role.seen.is_empty() {
            let seen = serde_json::to_string(&role.seen).expect("texts are always JSON");
            put("seen", Some(seen.into()));
        }
        put("causes", listed(role.suspects.iter().map(json)));
        if let Some(rung) = &role.rung {
            put("rung", Some(rung.place.into()));
            put("title", Some(rung.title.as_str().into()));
        }
        put("before", role.before.as_deref().map(Value::from));
        put("of", role.of.as_deref().map(Value::from));
        put("without", listed(role.without.iter().cloned()));
        settings
    }
}

fn list(texts: impl Iterator<Item = String>) -> Value {
    Value::List(texts.map(Value::Text).collect())
}

/// Returns the list, if it is not empty.
fn listed(texts: impl Iterator<Item = String>) -> Option<Value> {
    match list(texts) {
        Value::List(texts) if texts.is_empty() => None,
        list => Some(list),
    }
}

/// Stored form of an arm.
#[derive(Serialize, Deserialize)]
struct Stored {
    id: ArmId,
    driver: String,
    settings: Params,
    required: bool,
}

impl From<ArmSpec> for Stored {
    fn from(spec: ArmSpec) -> Self {
        Self {
            settings: spec.stored_settings(),
            id: spec.id,
            driver: spec.driver,
            required: spec.required,
        }
    }
}

impl TryFrom<Stored> for ArmSpec {
    type Error = serde_json::Error;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let Stored {
            id,
            driver,
            mut settings,
            required,
        } = stored;
        let mut taken = |name: &str| settings.0.remove(&format!("{COMMAND}{name}"));
        let change = CommandChange {
            argv: texts(taken("instead")),
            prefix: texts(taken("prefix")),
            variables: texts(taken("variables"))
                .iter()
                .filter_map(|text| text.split_once('='))
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .collect(),
            stdout: taken("stdout")
                .filter(|value| value.to_string() == "console")
                .map(|_| Stdout::Console),
            cold: texts(taken("cold")),
            program: taken("program").map(|value| value.to_string()),
            left_out: match taken("left_out") {
                Some(Value::Int(words)) => usize::try_from(words).unwrap_or(0),
                _ => 0,
            },
            directory: taken("directory").map(|value| value.to_string()),
        };
        let (argv, carried) = (taken("argv"), texts(taken("carried")));
        let (metric, host_files) = (taken("metric"), texts(taken("host_files")));
        let in_one_go = taken("in_one_go").map(|value| value.to_string());
        let life_ns = match taken("life_ns") {
            Some(Value::Int(ns)) => u64::try_from(ns).ok(),
            _ => None,
        };
        let first_run = taken("first_run").map(|it| serde_json::from_str(&it.to_string()));
        let first_run = first_run.transpose()?;
        let (place, title) = (taken("rung"), taken("title"));
        let role = Role {
            asked: metric.map(|metric| WhyQuestion {
                argv: texts(argv),
                carried,
                metric: metric.to_string(),
                host_files,
                in_one_go,
                life_ns,
                first_run,
            }),
            seen: match taken("seen") {
                Some(seen) => serde_json::from_str(&seen.to_string())?,
                None => BTreeMap::new(),
            },
            suspects: texts(taken("causes"))
                .iter()
                .map(|text| serde_json::from_str(text))
                .collect::<Result<_, _>>()?,
            rung: match place {
                Some(Value::Int(place)) => Some(Rung {
                    place,
                    title: title.map_or_else(|| id.to_string(), |title| title.to_string()),
                }),
                _ => None,
            },
            before: taken("before").map(|value| value.to_string()),
            of: taken("of").map(|value| value.to_string()),
            without: texts(taken("without")),
        };
        Ok(Self {
            id,
            driver,
            settings,
            required,
            change,
            role,
        })
    }
}

fn texts(value: Option<Value>) -> Vec<String> {
    match value {
        Some(Value::List(values)) => values.iter().map(Value::to_string).collect(),
        Some(value) => vec![value.to_string()],
        None => Vec::new(),
    }
}

impl CommandChange {
    /// Returns `recipe` with the arm's changes applied. Parts that run on the host stay as they are.
    #[must_use]
    pub fn laid_into(&self, recipe: &Recipe, path: Option<Path>) -> Recipe {
        let mut recipe = recipe.clone();
        if *self == Self::default() {
            return recipe;
        }
        match &mut recipe {
            Recipe::Probe(call) => self.change(call),
            Recipe::Pair { server, client } => {
                let path = path.unwrap_or(Path::Loopback);
                for (end, call) in [(path.server(), server), (path.client(), client)] {
                    if end != End::Host {
                        self.change(call);
                    }
                }
            }
            Recipe::Cluster {
                service, client, ..
            } => {
                self.change(service);
                self.change(client);
            }
            Recipe::Lifecycle { .. } => {}
        }
        recipe
    }

    fn change(&self, call: &mut ProbeCall) {
        if call.name != COMMAND_PROBE {
            return;
        }
        let Ok(command) = CommandCall::from_args(&call.args) else {
            return;
        };
        call.args.0.extend(self.changed(command).to_probe().args.0);
    }

    /// Returns the command as run in the arm.
    #[must_use]
    pub fn changed(&self, mut command: CommandCall) -> CommandCall {
        if !self.argv.is_empty() {
            command.argv.clone_from(&self.argv);
        }
        let left_out = self.left_out.min(command.argv.len().saturating_sub(1));
        command.argv.splice(..left_out, self.prefix.iter().cloned());
        command.variables.extend(self.variables.clone());
        command.cold.extend(self.cold.iter().cloned());
        if let Some(directory) = &self.directory {
            command.directory = Some(directory.clone());
        }
        // If there is a client, its output is read and not the server's.
        let is_read = command.pick.is_some() && command.client.is_none();
        let is_free = !is_read && !command.observe;
        if let Some(stdout) = self.stdout.filter(|_| is_free) {
            command.stdout = stdout;
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm() -> ArmSpec {
        let mut spec = ArmSpec::new(
            ArmId::new("off-1").unwrap(),
            "docker",
            Params::new().with("cpus", 0.5),
        );
        spec.change = CommandChange {
            argv: Vec::new(),
            prefix: ["nice", "-n", "5"].map(str::to_owned).to_vec(),
            variables: BTreeMap::from([("B".to_owned(), "x=y".to_owned())]),
            stdout: Some(Stdout::Console),
            cold: vec!["/data".to_owned()],
            program: Some("/bin/work".to_owned()),
            left_out: 1,
            directory: Some("/srv".to_owned()),
        };
        spec
    }

    #[test]
    fn change_and_role_roundtrip_through_settings() {
        let stored = r#"{"id":"docker","driver":"docker","settings":{"command.argv":["work"],"command.before":"run-1","command.carried":["all of it"],"command.causes":["{\"cause\":\"a.b\",\"claim\":\"c\",\"evidence\":[],\"likelihood\":0.9,\"advice\":\"\",\"price\":\"\",\"metric\":\"m\",\"tried\":\"t\",\"is_outside\":false}"],"command.cold":["/data"],"command.directory":"/srv","command.host_files":["/bin:/bin:ro"],"command.left_out":1,"command.metric":"command.wall.time","command.of":"box","command.prefix":["nice"],"command.program":"/bin/work","command.rung":2,"command.seen":"{\"command.threads\":\"2\"}","command.stdout":"console","command.title":"a filter","command.variables":["A=1"],"cpus":0.5},"required":true}"#;
        let spec: ArmSpec = serde_json::from_str(stored).unwrap();
        assert_eq!(spec.settings, Params::new().with("cpus", 0.5));
        assert_eq!(spec.role.suspects[0].cause, "a.b");
        assert_eq!(spec.role.seen["command.threads"], "2");
        assert_eq!(spec.role.rung.as_ref().unwrap().place, 2);
        assert_eq!(serde_json::to_string(&spec).unwrap(), stored);
        let plain = r#"{"id":"box","driver":"container","settings":{},"required":false}"#;
        let spec: ArmSpec = serde_json::from_str(plain).unwrap();
        assert_eq!(
            (&spec.change, &spec.role),
            (&CommandChange::default(), &Role::default())
        );
        assert_eq!(serde_json::to_string(&spec).unwrap(), plain);
        assert!(serde_json::from_str::<ArmSpec>(&stored.replace("a.b", "\\\\")).is_err());
    }

    #[test]
    fn other_command_is_stored_and_replaces_the_whole_one() {
        let mut spec = ArmSpec::new(ArmId::new("b").unwrap(), "host", Params::new());
        spec.change.argv = ["zstd", "-3"].map(str::to_owned).to_vec();
        let stored = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<ArmSpec>(&stored).unwrap(), spec);
        let call = spec.change.changed(CommandCall::new("gzip", ["-6", "big"]));
        assert_eq!(call.argv, ["zstd", "-3"]);
    }

    #[test]
    fn change_applies_only_to_command_in_the_arm() {
        let change = arm().change;
        let command = || CommandCall::new("entry", ["sleep", "1"]).to_probe();
        let argv = |call: &ProbeCall| CommandCall::from_args(&call.args).unwrap().argv;
        let Recipe::Probe(call) = change.laid_into(&Recipe::Probe(command()), None) else {
            panic!("another recipe");
        };
        assert_eq!(argv(&call), ["nice", "-n", "5", "sleep", "1"]);
        let call = CommandCall::from_args(&call.args).unwrap();
        assert_eq!(
            (call.variables["B"].as_str(), call.stdout),
            ("x=y", Stdout::Console)
        );
        assert_eq!(call.cold, ["/data"]);
        assert_eq!(call.directory.as_deref(), Some("/srv"));
        let short = change.changed(CommandCall::new("sleep", [""; 0]));
        assert_eq!(short.argv.last().unwrap(), "sleep", "one word stays");
        let pair = Recipe::Pair {
            server: command(),
            client: command(),
        };
        let Recipe::Pair { server, client } = change.laid_into(&pair, Some(Path::HostToArm)) else {
            panic!("another recipe");
        };
        assert_eq!((argv(&server).len(), argv(&client).len()), (5, 3));
        let other = Recipe::Probe(ProbeCall {
            name: "getppid".into(),
            args: Params::new(),
        });
        assert_eq!(change.laid_into(&other, None), other);
        let life = Recipe::Lifecycle { held: 3 };
        assert_eq!(change.laid_into(&life, None), life);
    }
}
