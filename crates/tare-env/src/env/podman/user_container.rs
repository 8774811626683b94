//! A user's container as an arm of podman, from the complete command line that created it.
//!
//! Podman keeps the command line with every container, so an existing container is treated like a line. A container
//! with the same words, except for what would be written to, answered for or ended, is created and never started:
//! that shows what it would run, and that podman accepts the line. The user's container is never touched. Secrets
//! stay in the run's file and in podman's arguments, where the user's line put them, and are never shown.
//! Limits: changes in the original since its start are not seen; the copy's files are those of the image.

use crate::env::prelude::*;

use super::super::image::packed;
use super::super::text::not_removed;
use super::super::user_container::{
    self as env_own, ArmRequest, CONFIGURATION, Changed, ChangedLine, ContainerRequest, LIKE,
    Shares, Source, UserContainer, command::Started, like::Like, machine::Machine as _,
    machine::writable, protect, shared::Copy, shared::Policy, shared::notes_on_copy,
};
use super::caller::{Access, Caller};
use super::settings::Settings;
use super::{CreationRecord, Podman, fixed_arm, image, record};

mod copy_flags;
mod difference;
mod machine;
pub(super) mod networks;
mod words;

use copy_flags::for_copy;
pub(super) use machine::writers;
use machine::{can_be_overlaid, inspected};
use words::{Flags, Unit};

/// How a user's container was created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Template {
    /// The OCI runtime, if named.
    runtime: Option<String>,
    /// The owner of this podman, if not Tare's user.
    account: Option<String>,
    units: Vec<Unit>,
    image: String,
    command: Vec<String>,
    /// The image's variables.
    image_env: Vec<String>,
    /// The image's entrypoint and working directory.
    #[serde(default)]
    image_entry: Vec<String>,
    #[serde(default)]
    image_directory: String,
    /// Whether the image exposes ports, which means that its program is a server.
    #[serde(default)]
    is_server: bool,
    /// What may be written to.
    shares: Shares,
    /// The names of the differences that every arm keeps.
    #[serde(default)]
    kept: Vec<String>,
    /// Whether the user's sockets and named pipes stay visible.
    #[serde(default)]
    joins: bool,
}

/// Returns the non-empty texts of a list.
fn texts(list: &Value) -> Vec<String> {
    let words = texts_of(list).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Whether a command is a line that creates a container; podman's global flags may precede the verb.
pub(super) fn is_line(command: &[String]) -> bool {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|name| name == "podman") && words::verb(command).is_some()
}

/// Whether there is a container of this name.
pub(super) fn has(caller: Caller<'_>, name: &str) -> bool {
    caller.exists("container", name).unwrap_or(false)
}

impl Template {
    /// Reads the template of an arm from the run's file, or from the container or line that the settings name.
    pub(super) fn of_arm(
        caller: Caller<'_>,
        arm: &ArmId,
        settings: &Settings,
    ) -> Result<Option<Self>> {
        let like = match &settings.like {
            None => return Ok(None),
            Some(Like::Container(file)) if file.starts_with('/') => {
                return env_own::kept(file, CONFIGURATION).map(Some);
            }
            Some(like) => like,
        };
        let source = like.sources().swap_remove(0);
        let mut template = Self::resolve(caller, source, Shares::ReadOnly)?;
        template.joins = settings.join_networks;
        if !template.joins {
            networks::isolate(caller, &mut template.units, Some(arm))?;
        }
        Ok(Some(template))
    }

    fn resolve(caller: Caller<'_>, source: Source<'_>, shares: Shares) -> Result<Self> {
        let (words, original) = match source {
            Source::Line(words) => (words.to_vec(), None),
            Source::Container(name) => {
                let found = inspected(caller, name)?;
                (made_by(&found, name)?, Some(found))
            }
            Source::Inside(_) => {
                return Err(EnvError::absent(
                    "only Docker's running containers are measured in themselves",
                    "`--like CONTAINER` makes a copy of one of podman's",
                ));
            }
            Source::Service { .. } => {
                return Err(EnvError::absent(
                    "compose files are read by Docker's plugin, for Docker's engine",
                    "start the service and take its container: `--env podman --like CONTAINER`",
                ));
            }
        };
        let help = ["run", "--help"];
        let help = caller.call("tell its flags", &help)?;
        let refused = |answer: String| EnvError::refused("podman does not take this line", answer);
        let line = words::line(&words, &Flags::of_help(&help.stdout)).map_err(refused)?;
        if let Some(unit) = line.units.iter().find(|unit| is_of_another(&unit.flag)) {
            return Err(EnvError::absent(
                format!(
                    "`--{}` makes it a part of something that no other container gets",
                    printable(&unit.flag)
                ),
                "ask about the same image with `tare why -- podman run …`, without it",
            ));
        }
        let text = |found: &Value, name: &str| found[name].as_str().map(str::to_owned);
        // The image that it was created from, even if the name now means another.
        let of_original = |name| original.as_ref().and_then(|found| text(found, name));
        let name = of_original("Image").unwrap_or(line.image);
        let found = image::inspect(caller, &name)?;
        if let Some(architecture) = found["Architecture"].as_str() {
            packed::check_processor(caller.cx.agents, &name, architecture)?;
        }
        let config = &found["Config"];
        Ok(Self {
            runtime: line.runtime,
            account: caller.access.user(),
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

    /// Returns the image's name or id.
    pub(super) fn image(&self) -> &str {
        &self.image
    }

    /// Returns the flags of an arm without these differences, which can run next to the original.
    pub(super) fn flags_of_copy(
        &self,
        caller: Caller<'_>,
        without: &[String],
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let without = protect::removable(without, &self.kept)?;
        let mut units = difference::without(&self.units, &self.image_env, &without)
            .map_err(EnvError::unavailable)?;
        let is_limited = |units: &[Unit]| units.iter().any(|unit| unit.flag == "memory");
        if is_limited(&self.units)
            && !is_limited(&units)
            && let Some(free) = caller.free_memory(0)
        {
            units.push(Unit::new("memory", format!("{free}m")));
        }
        let policy = Policy {
            shares: self.shares,
            joins: self.joins,
            machine: &caller,
            copy: &|share| can_be_overlaid(share).then_some(Copy::Overlay),
        };
        let units = for_copy(&units, policy, notes);
        Ok(units.iter().map(Unit::word).collect())
    }

    /// Returns its command and working directory, from a container that is created and never started.
    fn command(&self, caller: Caller<'_>, flags: &[String]) -> Result<Started> {
        let run = caller.cx.run;
        let name = format!("tare-{run}-own");
        let (own_name, label) = (format!("--name={name}"), format!("--label=tare.run={run}"));
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
        let made = caller.call("take this line", &arguments);
        let found = made.and_then(|_| inspected(caller, &name));
        let removed = super::instance::remove_containers(caller, &[&name]);
        let found = match (found, removed) {
            (Ok(found), Ok(())) => found,
            (Ok(_), Err(error)) => return Err(not_removed(&name, error)),
            (Err(error), removed) => return Err(and_cleanup(error, removed)),
        };
        let path = found["Path"].as_str().filter(|path| !path.is_empty());
        let mut entry: Vec<String> = path.map(str::to_owned).into_iter().collect();
        entry.extend(texts(&found["Args"]));
        // Podman reports the entrypoint as a text in some versions and as a list in others.
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

    /// Writes it to a file that only this user may read.
    fn keep(&self, folder: &Path) -> Result<PathBuf> {
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

/// Returns the line that created a container, from podman's record.
fn made_by(found: &Value, name: &str) -> Result<Vec<String>> {
    if found["Pod"].as_str().is_some_and(|pod| !pod.is_empty()) {
        return Err(EnvError::absent(
            format!(
                "`{}` is a part of a pod, whose namespaces no other container gets",
                printable(name)
            ),
            "ask about the same image with `tare why -- podman run …`",
        ));
    }
    let words = texts_of(&found["Config"]["CreateCommand"]);
    let words: Vec<String> = words.map(str::to_owned).collect();
    if words::verb(&words).is_none() {
        return Err(EnvError::absent(
            format!(
                "podman does not keep the line that made `{}`: it was not made by its command",
                printable(name)
            ),
            "ask with the line itself: `tare why -- podman run …`",
        ));
    }
    Ok(words)
}

/// Whether a flag makes the container a part of another object of the user's.
fn is_of_another(flag: &str) -> bool {
    matches!(flag, "pod" | "pod-id-file" | "rootfs")
}

impl Podman {
    /// Returns how to call podman for a request.
    fn access_for(&self, cx: &Context<'_>, wish: &ContainerRequest<'_>) -> Result<Access> {
        let settings = Settings {
            account: wish.context.map(str::to_owned),
            ..Settings::default()
        };
        self.access(cx, &settings)
    }

    /// Implements [`crate::env::Driver::take`].
    pub(super) fn taken(
        &self,
        cx: &Context<'_>,
        wish: &ContainerRequest<'_>,
    ) -> Result<UserContainer> {
        let access = self.access_for(cx, wish)?;
        let (caller, place) = (access.caller(cx), CreationRecord::new(&access));
        let own_arm = fixed_arm("own");
        record::add(cx, "podman", &own_arm, &place)?;
        let mut template = Template::resolve(caller, wish.source, wish.shares)?;
        let mut notes = Vec::new();
        template.joins = wish.consent.join_networks;
        let mut networks = Vec::new();
        if !template.joins {
            let arm = fixed_arm("network");
            record::add(cx, "podman", &arm, &place)?;
            networks = networks::isolate(caller, &mut template.units, None)?;
            if networks.is_empty() {
                record::forget(cx, "podman", &arm, &place)?;
            }
            notes.extend(networks.iter().map(|it| env_own::not_joined(it)));
        }
        let flags = template.flags_of_copy(caller, &[], &mut notes)?;
        let started = template.command(caller, &flags)?;
        let own = started.own("podman");
        record::forget(cx, "podman", &own_arm, &place)?;
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
        let body = copy_flags::body_of(&template.units);
        let mut taken = UserContainer {
            networks,
            writable: writable(&body, &caller),
            is_written: wish.shares == Shares::Shared,
            reads_input: template.units.iter().any(|unit| unit.flag == "interactive"),
            name: match wish.source {
                Source::Container(name) => printable(name),
                _ => format!("podman run … {}", printable(template.image())),
            },
            differences,
            notes,
            answers: match wish.source {
                Source::Line(_) => None,
                _ => copy_flags::would_answer(&template.units, template.is_server),
            },
            ..own
        };
        template.kept = protect::guard(&mut taken, &body, wish.consent, &caller)?;
        if !taken.networks.is_empty() {
            let network = ["network", protect::ENGINES_NETWORK].map(str::to_owned);
            template.kept.extend(network);
        }
        let file = template.keep(wish.folder)?;
        taken.settings = template.settings(&file);
        Ok(taken)
    }

    /// Implements [`crate::env::Driver::take_copies`]: every arm writes to an overlay over its writable shares.
    pub(super) fn taken_with_copies(
        &self,
        cx: &Context<'_>,
        taken: &ArmRequest<'_>,
    ) -> Result<Option<Vec<ChangedLine>>> {
        let wish = &taken.wish;
        let access = self.access_for(cx, wish)?;
        let caller = access.caller(cx);
        let like = taken.settings.text(LIKE).unwrap_or_default();
        let mut template: Template = env_own::kept(like, CONFIGURATION)?;
        let mut copied = copy_flags::writable(&template.units);
        copied.retain(|share| can_be_overlaid(share) && caller.has(share));
        if copied.is_empty() {
            return Ok(None);
        }
        template.shares = Shares::Copied;
        template.keep(wish.folder)?;
        let lines = copied
            .iter()
            .flat_map(|share| notes_on_copy(share, &caller));
        Ok(Some(lines.collect()))
    }

    /// Implements [`crate::env::Driver::take_changed`]: the flags are removed from the line, so the arm without them
    /// is the changed line itself.
    pub(super) fn taken_changed(
        &self,
        cx: &Context<'_>,
        taken: &ArmRequest<'_>,
        without: &[String],
    ) -> Result<Changed> {
        let wish = &taken.wish;
        let access = self.access_for(cx, wish)?;
        let template = Template::resolve(access.caller(cx), wish.source, wish.shares)?;
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
                env_own::BY_ITS_SWITCH.to_owned()
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn podman_create_command_is_read_or_explained() {
        let of = |found: Value| made_by(&found, "web");
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
