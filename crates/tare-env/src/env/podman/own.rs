//! A container of the user's own as an arm of podman: the line that made it, whole.
//!
//! Podman keeps with every container the line that made it, so that one that is there is asked about like a line. A
//! container of the same words, but for what would be written to, answered for or ended, is made and never started:
//! that says what it would run, and that podman takes the line at all. The user's own is never touched. What is
//! secret stays in the run's own file and in podman's arguments, where the user's own line put it, and is never told.
//! What it cannot see: what an original has become since it was started; its files are those of the image.

use crate::env::prelude::*;

use serde_json::Value as Json;

use super::super::image::packed;
use super::super::own::command::Started;
use super::super::own::like::Like;
use super::super::own::machine::{Machine as _, writable};
use super::super::own::protect;
use super::super::own::shared::{Copy, Policy, retold};
use super::super::own::{
    self as env_own, CONFIGURATION, Changed, LIKE, Own, Retold, Shares, Source, Taken, Wish,
};
use super::super::text::{and_cleanup, not_removed};
use super::caller::Caller;
use super::settings::Settings;
use super::{Place, Podman, image};

mod beside;
mod difference;
mod machine;
pub(super) mod networks;
mod words;

use beside::beside;
pub(super) use machine::writers;
use machine::{PodmansMachine, can_be_overlaid, inspected};
use words::{Flags, Unit};

/// What a container of the user's was made with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Template {
    /// The OCI runtime, where one was named.
    runtime: Option<String>,
    /// Whose podman it is, if not Tare's own user's.
    account: Option<String>,
    units: Vec<Unit>,
    image: String,
    command: Vec<String>,
    /// The image's own variables.
    image_env: Vec<String>,
    /// The image's own entry, and where it would have its command started.
    #[serde(default)]
    image_entry: Vec<String>,
    #[serde(default)]
    image_directory: String,
    /// Whether the image says that what it runs serves.
    #[serde(default)]
    is_server: bool,
    /// What may be written to.
    shares: Shares,
    /// The differences that every arm keeps, by name.
    #[serde(default)]
    kept: Vec<String>,
    /// Whether sockets and named pipes of the user's are shown.
    #[serde(default)]
    joins: bool,
}

/// The words of a list, without empty ones.
fn texts(list: &Json) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    let list = list.filter_map(Json::as_str).map(str::to_owned);
    list.filter(|word| !word.is_empty()).collect()
}

/// Whether a command is a line that makes a container, with flags of podman's own before the verb.
pub(super) fn is_line(command: &[String]) -> bool {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|name| name == "podman") && words::verb(command).is_some()
}

/// Whether there is a container of this name.
pub(super) fn has(cx: &Context<'_>, caller: &Caller, name: &str) -> bool {
    caller.exists(cx, "container", name).unwrap_or(false)
}

impl Template {
    /// Reads one from the run's own file, or takes what the settings name.
    pub(super) fn of_arm(
        cx: &Context<'_>,
        caller: &Caller,
        arm: &tare_model::ArmId,
        settings: &Settings,
    ) -> Result<Option<Self>, EnvError> {
        let like = match &settings.like {
            None => return Ok(None),
            Some(Like::Container(file)) if file.starts_with('/') => {
                return env_own::kept(file, CONFIGURATION).map(Some);
            }
            Some(like) => like,
        };
        let mut template = Self::of(cx, caller, like.source(), Shares::ReadOnly)?;
        template.joins = settings.join_networks;
        if !template.joins {
            networks::isolate(cx, caller, &mut template.units, Some(arm))?;
        }
        Ok(Some(template))
    }

    fn of(
        cx: &Context<'_>,
        caller: &Caller,
        source: Source<'_>,
        shares: Shares,
    ) -> Result<Self, EnvError> {
        let absent = |why: &str, fix: &str| EnvError::Absent {
            why: why.into(),
            fix: Some(fix.into()),
        };
        let (words, original) = match source {
            Source::Line(words) => (words.to_vec(), None),
            Source::Container(name) => {
                let found = inspected(cx, caller, name)?;
                (made_by(&found, name)?, Some(found))
            }
            Source::Inside(_) => {
                return Err(absent(
                    "only Docker's running containers are measured in themselves",
                    "`--like CONTAINER` makes a copy of one of podman's",
                ));
            }
            Source::Service { .. } => {
                return Err(absent(
                    "compose files are read by Docker's plugin, for Docker's engine",
                    "start the service and take its container: `--env podman --like CONTAINER`",
                ));
            }
        };
        let help = ["run", "--help"];
        let help = caller.call(cx, "tell its flags", &help, &[], CONTROL_LIMIT)?;
        let refused = |answer: String| EnvError::Refused {
            what: "podman does not take this line".into(),
            answer,
        };
        let line = words::line(&words, &Flags::of_help(&help.stdout)).map_err(refused)?;
        if let Some(unit) = line.units.iter().find(|unit| is_of_another(&unit.flag)) {
            return Err(absent(
                &format!(
                    "`--{}` makes it a part of something that no other container gets",
                    printable(&unit.flag)
                ),
                "ask about the same image with `tare why -- podman run …`, without it",
            ));
        }
        let text = |found: &Json, name: &str| found[name].as_str().map(str::to_owned);
        // The very image that it was made of, whatever bears the name now.
        let of_original = |name| original.as_ref().and_then(|found| text(found, name));
        let name = of_original("Image").unwrap_or(line.image);
        let found = image::inspect(cx, caller, &name, CONTROL_LIMIT)?;
        if let Some(architecture) = found["Architecture"].as_str() {
            packed::check_processor(cx.agents, &name, architecture)?;
        }
        let config = &found["Config"];
        let account = caller.account.as_ref();
        Ok(Self {
            runtime: line.runtime,
            account: account.map(|account| account.name.clone()),
            units: line.units,
            image: name,
            command: line.command,
            image_env: texts(&config["Env"]),
            image_entry: texts(&config["Entrypoint"]),
            image_directory: text(config, "WorkingDir")
                .filter(|path| !path.is_empty())
                .unwrap_or_else(|| "/".to_owned()),
            is_server: config["ExposedPorts"]
                .as_object()
                .is_some_and(|ports| !ports.is_empty()),
            shares,
            kept: Vec::new(),
            joins: false,
        })
    }

    /// The image's name or id.
    pub(super) fn image(&self) -> &str {
        &self.image
    }

    /// The flags of an arm that does without these differences, as it may stand beside the original, each one word.
    pub(super) fn beside(
        &self,
        cx: &Context<'_>,
        caller: &Caller,
        without: &[String],
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>, EnvError> {
        let without = protect::removable(without, &self.kept)?;
        let mut units = difference::without(&self.units, &self.image_env, &without)
            .map_err(|why| EnvError::Absent { why, fix: None })?;
        let machine = PodmansMachine { cx, caller };
        let is_limited = |units: &[Unit]| units.iter().any(|unit| unit.flag == "memory");
        if is_limited(&self.units)
            && !is_limited(&units)
            && let Some(free) = machine.free_memory(0)
        {
            units.push(Unit::new("memory", format!("{free}m")));
        }
        let policy = Policy {
            shares: self.shares,
            joins: self.joins,
            machine: &machine,
            copy: &|share| can_be_overlaid(share).then_some(Copy::Overlay),
        };
        let units = beside(&units, policy, notes);
        Ok(units.iter().map(Unit::word).collect())
    }

    /// What it would run, and where: asked of a container that is made and never started.
    fn command(
        &self,
        cx: &Context<'_>,
        caller: &Caller,
        flags: &[String],
    ) -> Result<Started, EnvError> {
        let name = format!("tare-{}-own", cx.run);
        let (own_name, label) = (
            format!("--name={name}"),
            format!("--label=tare.run={}", cx.run),
        );
        let begin = [
            "create",
            "--pull=never",
            "--label=tare=1",
            &own_name,
            &label,
        ];
        let mut arguments: Vec<&str> = begin.to_vec();
        arguments.extend(flags.iter().map(String::as_str));
        arguments.push(&self.image);
        arguments.extend(self.command.iter().map(String::as_str));
        let made = caller.call(cx, "take this line", &arguments, &[], CONTROL_LIMIT);
        let found = made.and_then(|_| inspected(cx, caller, &name));
        // The name is the run's own, and one that was given up may be made all the same.
        let removed = super::instance::remove_containers(cx, caller, &[&name]);
        let found = match (found, removed) {
            (Ok(found), Ok(())) => found,
            (Ok(_), Err(error)) => return Err(not_removed(&name, error)),
            (Err(error), removed) => return Err(and_cleanup(error, removed)),
        };
        let path = found["Path"].as_str().filter(|path| !path.is_empty());
        let mut entry: Vec<String> = path.map(str::to_owned).into_iter().collect();
        entry.extend(texts(&found["Args"]));
        // What podman tells of the entry is a text in some versions and a list in others.
        let command = texts(&found["Config"]["Cmd"]);
        let command = entry.split_off(entry.len().saturating_sub(command.len()));
        let directory = found["Config"]["WorkingDir"].as_str();
        let directory = directory.filter(|path| !path.is_empty()).unwrap_or("/");
        Ok(Started {
            has_images_entry: entry == self.image_entry,
            entry,
            command,
            directory: directory.to_owned(),
            image_directory: self.image_directory.clone(),
        })
    }

    /// Keeps it where nobody else reads it.
    fn keep(&self, folder: &Path) -> Result<PathBuf, EnvError> {
        let file = folder.join("own-container.json");
        env_own::keep(&file, self)?;
        Ok(file)
    }

    fn settings(&self, file: &Path) -> Params {
        let settings = Params::new().with(LIKE, file.display().to_string());
        let settings = match &self.account {
            Some(name) => settings.with("as", name.as_str()),
            None => settings,
        };
        match &self.runtime {
            Some(name) => settings.with("runtime", name.as_str()),
            None => settings,
        }
    }
}

/// The line that made a container, as podman keeps it.
fn made_by(found: &Json, name: &str) -> Result<Vec<String>, EnvError> {
    if found["Pod"].as_str().is_some_and(|pod| !pod.is_empty()) {
        return Err(EnvError::Absent {
            why: format!(
                "`{}` is a part of a pod, whose namespaces no other container gets",
                printable(name)
            ),
            fix: Some("ask about the same image with `tare why -- podman run …`".into()),
        });
    }
    let words = found["Config"]["CreateCommand"].as_array();
    let words = words.into_iter().flatten().filter_map(Json::as_str);
    let words: Vec<String> = words.map(str::to_owned).collect();
    if words::verb(&words).is_none() {
        return Err(EnvError::Absent {
            why: format!(
                "podman does not keep the line that made `{}`: it was not made by its command",
                printable(name)
            ),
            fix: Some("ask with the line itself: `tare why -- podman run …`".into()),
        });
    }
    Ok(words)
}

/// Flags that make a container a part of something else of the user's.
fn is_of_another(flag: &str) -> bool {
    matches!(flag, "pod" | "pod-id-file" | "rootfs")
}

impl Podman {
    /// How podman is called for what is asked about.
    fn caller_for(&self, cx: &Context<'_>, wish: &Wish<'_>) -> Result<Caller, EnvError> {
        let settings = Settings {
            account: wish.context.map(str::to_owned),
            ..Settings::default()
        };
        self.caller(cx, &settings)
    }

    /// Takes something of the user's: [`crate::env::Driver::take`].
    pub(super) fn taken(&self, cx: &Context<'_>, wish: &Wish<'_>) -> Result<Own, EnvError> {
        let caller = self.caller_for(cx, wish)?;
        super::record::add(cx, "podman", &own_arm(), &Place::of(&caller))?;
        let mut template = Template::of(cx, &caller, wish.source, wish.shares)?;
        let mut notes = Vec::new();
        template.joins = wish.consent.join_networks;
        let mut networks = Vec::new();
        if !template.joins {
            let arm = network_arm();
            super::record::add(cx, "podman", &arm, &Place::of(&caller))?;
            networks = networks::isolate(cx, &caller, &mut template.units, None)?;
            if networks.is_empty() {
                super::record::forget(cx, "podman", &arm, &Place::of(&caller))?;
            }
            notes.extend(networks.iter().map(|it| env_own::not_joined(it)));
        }
        let flags = template.beside(cx, &caller, &[], &mut notes)?;
        let started = template.command(cx, &caller, &flags)?;
        let own = started.own("podman");
        super::record::forget(cx, "podman", &own_arm(), &Place::of(&caller))?;
        let mut differences =
            difference::differences(&template.units, &template.image_env, &started.argv());
        differences.extend(own.differences);
        if !networks.is_empty() {
            differences.retain(|it| !matches!(it.id.as_str(), "network" | "engine.network"));
        }
        if matches!(wish.source, Source::Container(_)) {
            for difference in &mut differences {
                difference.advice = difference
                    .advice
                    .replace(" from the `podman run` line", " from what it is made with");
            }
        }
        let machine = PodmansMachine {
            cx,
            caller: &caller,
        };
        let body = beside::body_of(&template.units);
        let mut taken = Own {
            networks,
            writable: writable(&body, &machine),
            is_written: wish.shares == Shares::Shared,
            reads_input: template.units.iter().any(|unit| unit.flag == "interactive"),
            name: match wish.source {
                Source::Container(name) => printable(name),
                _ => format!("podman run … {}", printable(template.image())),
            },
            differences,
            notes,
            answers: match wish.source {
                // A line is what its user would start.
                Source::Line(_) => None,
                _ => beside::would_answer(&template.units, template.is_server),
            },
            ..own
        };
        protect::guard(&mut taken, &body, wish.consent, &machine)?;
        let ids = taken.kept.iter().map(|it| it.id.clone());
        template.kept = ids.chain(taken.untried.iter().cloned()).collect();
        if !taken.networks.is_empty() {
            let network = ["network", protect::ENGINES_NETWORK].map(str::to_owned);
            template.kept.extend(network);
        }
        let file = template.keep(wish.folder)?;
        taken.settings = template.settings(&file);
        Ok(taken)
    }

    /// Has every arm write to a layer over what it could write to: [`crate::env::Driver::take_copies`].
    pub(super) fn taken_with_copies(
        &self,
        cx: &Context<'_>,
        taken: &Taken<'_>,
    ) -> Result<Option<Vec<Retold>>, EnvError> {
        let wish = &taken.wish;
        let caller = self.caller_for(cx, wish)?;
        let like = taken.settings.text(LIKE).unwrap_or_default();
        let mut template: Template = env_own::kept(like, CONFIGURATION)?;
        let mut copied = beside::writable(&template.units);
        let machine = PodmansMachine {
            cx,
            caller: &caller,
        };
        copied.retain(|share| can_be_overlaid(share) && machine.has(share));
        if copied.is_empty() {
            return Ok(None);
        }
        template.shares = Shares::Copied;
        template.keep(wish.folder)?;
        let lines = copied.iter().flat_map(|share| retold(share, &machine));
        Ok(Some(lines.collect()))
    }

    /// Takes it once more without these differences: [`crate::env::Driver::take_changed`]. The flags go out of the
    /// line, so that the arm without them is the changed line itself.
    pub(super) fn taken_changed(
        &self,
        cx: &Context<'_>,
        taken: &Taken<'_>,
        without: &[String],
    ) -> Result<Changed, EnvError> {
        let wish = &taken.wish;
        let template = Template::of(cx, &self.caller_for(cx, wish)?, wish.source, wish.shares)?;
        let differences =
            difference::differences(&template.units, &template.image_env, &template.command);
        let changes: Vec<String> = differences
            .iter()
            .filter(|difference| without.contains(&difference.id))
            .map(|difference| {
                if difference.id.starts_with("engine.") {
                    format!("with {}", difference.advice)
                } else {
                    format!("without {}", difference.what)
                }
            })
            .collect();
        Ok(Changed {
            settings: env_own::without(taken.settings, without),
            change: if changes.len() == without.len() {
                format!("your line {}", changes.join(" and "))
            } else {
                // A part of the command is no flag.
                env_own::BY_ITS_SWITCH.to_owned()
            },
        })
    }
}

/// The name under which it is on record that a network is made.
fn network_arm() -> tare_model::ArmId {
    tare_model::ArmId::new("network").expect("the constant is a name")
}

/// The name under which it is on record that something is made to find out what a line means.
fn own_arm() -> tare_model::ArmId {
    tare_model::ArmId::new("own").expect("the constant is a name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_line_that_made_a_container_is_told_by_podman_or_it_is_said_why_not() {
        let of = |found: Json| made_by(&found, "web");
        let line = json!({"Config": {"CreateCommand": ["podman", "run", "-d", "img"]}});
        assert_eq!(of(line).unwrap()[1..], ["run", "-d", "img"]);
        let error = of(json!({"Pod": "1f", "Config": {}})).unwrap_err();
        assert!(
            error.to_string().contains("pod") && error.hint().is_some(),
            "{error}"
        );
        let error = of(json!({"Config": {"CreateCommand": ["podman", "play", "kube", "x"]}}));
        assert!(error.unwrap_err().to_string().contains("does not keep"),);
        assert!(of(json!({"Config": {}})).is_err());
    }

    #[test]
    fn a_line_is_podmans_also_behind_flags_of_its_own() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(is_line(&words("podman --runtime runc run img")));
        assert!(is_line(&words("/usr/bin/podman run img")));
        assert!(!is_line(&words("docker run img")) && !is_line(&words("podman ps")));
    }
}
