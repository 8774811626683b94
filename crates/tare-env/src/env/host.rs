//! `host`: a plain process, started like any program of the user's.
//!
//! The baseline of most studies: no isolation, only the agent that every arm has. It can be restricted to CPUs, as a
//! fair counterpart to a container with a cpuset.
//! Limits: limits on Tare itself, such as a cgroup of the user's session, are not seen here; the agent's facts report
//! them.

use crate::env::prelude::*;

use super::channel::ProcessChannel;
use super::error::succeed;
use super::grammar::is_cpu_range;
use super::reader::Reader;
use super::setting::{Between, Form, settings};
use super::siblings::{Number, Numbers};
use super::{Published, PublishedAt};
use crate::cx::pinned::Pinned;
use crate::cx::turn_page;

/// How long an agent may take to end after it was asked to.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// Time limit of the probe in [`Driver::detect`].
const DETECT_LIMIT: Duration = Duration::from_secs(5);

/// The `host` driver.
#[derive(Debug, Clone, Copy)]
pub struct Host;

impl Driver for Host {
    fn declared(&self) -> &Declared {
        &tare_core::driver::host::DECLARED
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn detect(&self, cx: &Context<'_>) -> Availability {
        let command = cx.agent.command(["version"]);
        let absent =
            |why| EnvError::absent(why, "name an agent that runs here with `--agent`").into();
        match cx.exec.run(&command, &[], DETECT_LIMIT) {
            Ok(finished) if finished.succeeded() => Availability::Ready(Facts::from([(
                fact::AGENT_VERSION.to_owned(),
                finished.stdout_text().trim().to_owned(),
            )])),
            Ok(finished) => absent(format!(
                "the agent does not run here: {}",
                escaped(&finished.stderr)
            )),
            Err(error) => absent(error.to_string()),
        }
    }

    fn configure(&self, arm: ArmId, settings: &Params) -> Configured {
        let read = Reader::new(self.id(), SETTINGS, settings)?;
        let cpus = cpu_list(&read)?;
        let variables = read.list(&VARIABLES).iter();
        Ok(Box::new(HostEnvironment {
            arm,
            cpus,
            variables: variables.filter_map(|text| variable(text)).collect(),
            numbers: Numbers::default(),
            nodes: 1,
            agent: None,
        }))
    }

    /// On other systems a process's environment cannot be read; an agent ends by itself when its host is gone,
    /// because its input ends.
    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>> {
        let what = "ending the processes of dead runs";
        lines_of(cx, &["end-runs", run], what)
    }
}

settings! {
    SETTINGS;

    PROCESSORS("cpuset", List(Form::new("a list such as `0-1,3`", is_cpu_range), Between::Commas),
        "all that Tare may use", "the processors that may be used (Linux and Windows)", was "cpus");
    VARIABLES("env", List(Form::new("variables such as [\"LANG=C\", \"PATH=/opt/x/bin:/usr/bin\"]; `TARE_RUN` is Tare's own",
        |text| variable(text).is_some()), Between::Nothing), "those of Tare", "environment variables of every process");
}

/// The CPUs in the format of the agent's option.
fn cpu_list(read: &Reader<'_>) -> Result<Option<String>, SettingsError> {
    let mut cpus = Vec::new();
    for part in read.list(&PROCESSORS) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().unwrap_or(u32::MAX)..=last.parse().unwrap_or(u32::MAX));
    }
    let elsewhere = (
        "choosing processors is not available on this system",
        "leave it out",
    );
    let beyond = (
        "there is no processor above 1023",
        "write the processors as a list, for example \"0,2\"",
    );
    let is_here = cfg!(any(target_os = "linux", windows));
    read.consistent(&[
        (
            !is_here && read.is_given(&PROCESSORS),
            PROCESSORS,
            elsewhere,
        ),
        // The limit of the kernel's CPU set.
        (cpus.iter().any(|cpu| *cpu >= 1024), PROCESSORS, beyond),
    ])?;
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    Ok((!cpus.is_empty()).then(|| cpus.join(",")))
}

/// Parses `NAME=value`; rejects Tare's own label of its processes.
fn variable(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let is_fine = !name.is_empty() && name != "TARE_RUN" && !text.contains('\0');
    is_fine.then(|| (name.to_owned(), value.to_owned()))
}

/// A configured `host`.
struct HostEnvironment {
    arm: ArmId,
    cpus: Option<String>,
    variables: Vec<(String, String)>,
    numbers: Numbers,
    nodes: u32,
    /// The agent's file, once it is written.
    agent: Option<Pinned>,
}

impl HostEnvironment {
    fn folder(&self, cx: &Context<'_>) -> PathBuf {
        cx.scratch.join(self.arm.as_str())
    }

    /// Path of the agent: on a file system, as in other arms, because a program in memory takes an eighth longer to
    /// execute. Only the user may access the run's folder.
    fn program(&self, cx: &Context<'_>) -> PathBuf {
        let ending = std::env::consts::EXE_SUFFIX;
        cx.scratch
            .join(format!("{}.agent{ending}", self.arm.as_str()))
    }

    /// Writes the agent's file if necessary, and returns the path to start it from.
    fn lay_out_the_agent(&mut self, cx: &Context<'_>) -> Result<PathBuf> {
        if self.agent.is_none() {
            self.agent = Some(Pinned::write(&self.program(cx), &cx.agent.bytes()?)?);
        }
        let agent = self.agent.as_ref().expect("it was just written");
        agent
            .program()
            .map_err(|error| EnvError::refused("start the agent", error.to_string()))
    }

    /// The folder that the instances share, if several are wanted; all of them see it anyway.
    fn shared(&self, cx: &Context<'_>) -> Option<PathBuf> {
        (self.nodes > 1).then(|| self.folder(cx).join("shared"))
    }
}

impl Environment for HostEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<()> {
        files::create_folder(&self.folder(cx))?;
        if let Some(shared) = self.shared(cx) {
            files::create_folder(&shared)?;
        }
        self.lay_out_the_agent(cx).map(drop)
    }

    fn gather(&mut self, nodes: u32) {
        self.nodes = nodes;
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>> {
        let workdir = self.folder(cx);
        files::create_folder(&workdir)?;
        // The placement of a file's pages is fixed for the life of the file, so every launch gets a new file, as in a
        // built-in container. That takes milliseconds, too long for an instance that is started for one trial. On
        // other systems a running program's file cannot be replaced.
        if mode == StartMode::Resident && cfg!(unix) {
            self.agent = None;
        }
        let program = self.lay_out_the_agent(cx)?;
        let mut arguments = mode.arguments().to_vec();
        if mode == StartMode::Resident {
            // Moving to its own cgroup takes milliseconds, too long for one trial.
            arguments.push("--own-group");
        }
        if let Some(cpus) = &self.cpus {
            arguments.extend(["--cpus", cpus]);
        }
        let mut command = cx
            .agent
            .command(arguments)
            .that_leads_a_session()
            .variable("TARE_RUN", cx.run.as_str());
        command.program = program.display().to_string();
        for (name, value) in &self.variables {
            command = command.variable(name.as_str(), value.as_str());
        }
        Ok(Box::new(HostInstance {
            channel: ProcessChannel::new(cx.exec.spawn(&command)?, cx.cancel)?,
            workdir: workdir.display().to_string(),
            program: self.program(cx),
            shared: self.shared(cx).map(|path| path.display().to_string()),
            turn_page: turn_page::path(cx.scratch).display().to_string(),
            number: self.numbers.take(),
        }))
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        let cpus = self.cpus.iter();
        let cpus = cpus.map(|cpus| (fact::HOST_CPUS.to_owned(), cpus.clone()));
        let variables = self.variables.iter();
        let variables =
            variables.map(|(name, value)| (fact::name_for(fact::HOST_ENV, name), value.clone()));
        cpus.chain(variables).collect()
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<()> {
        self.agent = None;
        files::remove(&self.program(cx))?;
        Ok(files::remove_folder(&self.folder(cx))?)
    }
}

/// A started `host`.
struct HostInstance {
    channel: ProcessChannel,
    workdir: String,
    /// The agent's file.
    program: PathBuf,
    shared: Option<String>,
    turn_page: String,
    number: Number,
}

impl Instance for HostInstance {
    /// On systems other than Linux, workers get their turns from the host.
    fn turn_page(&self) -> Option<String> {
        cfg!(target_os = "linux").then(|| self.turn_page.clone())
    }

    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        Ok(Ipv4Addr::LOCALHOST.into())
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        Ok(Ipv4Addr::LOCALHOST.into())
    }

    fn charged(&self) -> Charged {
        Charged::Process(self.channel.running.id())
    }

    /// A process has only its program; its folder contains what its trials wrote.
    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        Some(files::taken_bytes(&self.program))
    }

    /// Each instance has its own address on the loopback.
    fn address_from_arm(&self) -> Result<IpAddr, Reason> {
        Ok(self.number.loopback().into())
    }

    fn shared(&self) -> Result<String, Reason> {
        self.shared.clone().ok_or_else(not_shared)
    }

    /// On the host a server's port is open directly: the baseline of publishing.
    fn published(&self, _at: PublishedAt) -> Result<Published, Reason> {
        Ok(Published::Direct(Ipv4Addr::LOCALHOST.into()))
    }

    fn workdir(&self) -> String {
        self.workdir.clone()
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<()> {
        // Fails if the agent has crashed, which is fine.
        let is_sent = self.channel.stream.send(&Request::Bye).is_ok();
        // A killed agent can still be written to while it dies, and has not ended its children.
        let is_done = is_sent && matches!(self.channel.running.wait(STOP_LIMIT), Ok(Some(0)));
        if !is_done {
            self.channel.running.kill();
            end_group(cx, self.channel.running.id())?;
        }
        Ok(())
    }
}

/// Ends what an agent that could not do so itself has left in its cgroup. Descendants that have left the session and
/// removed the run's name from their environment cannot be found otherwise.
fn end_group(cx: &Context<'_>, agent: u32) -> Result<()> {
    let arguments = ["end-group", cx.run.as_str(), &agent.to_string()];
    lines_of(cx, &arguments, "ending what an agent left").map(drop)
}

/// The output of one of the agent's commands, line by line; nothing on systems other than Linux, where the agent has
/// no such command.
pub(super) fn lines_of(cx: &Context<'_>, arguments: &[&str], what: &str) -> Result<Vec<String>> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    let command = cx.agent.command(arguments.iter().copied());
    Ok(succeed(cx, &command, CONTROL_LIMIT, what)?
        .stdout_text()
        .lines()
        .map(|line| line.escape_debug().to_string())
        .collect())
}

#[cfg(test)]
mod tests {
    use tare_model::Value;

    use super::*;

    fn cpus(value: impl Into<Value>) -> Result<Option<String>, SettingsError> {
        let params = Params::new().with("cpuset", value);
        cpu_list(&Reader::new("host", SETTINGS, &params)?)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn cpus_parse_from_number_list_or_range() {
        let list = Value::List(vec![Value::Int(0), Value::Int(3)]);
        for (value, expected) in [
            (1i64.into(), "1"),
            ("0, 2-4".into(), "0,2,3,4"),
            (list, "0,3"),
        ] {
            let value: Value = value;
            assert_eq!(cpus(value).unwrap().as_deref(), Some(expected));
        }
    }

    #[test]
    fn invalid_cpuset_is_refused_by_setting_name() {
        for bad in ["", "a", "3-1", "-1", "0,,1", "1024", "0-99999"] {
            assert_eq!(cpus(bad).unwrap_err().setting, "cpuset", "{bad}");
        }
    }

    #[test]
    fn variables_are_names_and_values() {
        for (text, expected) in [("A=1=2", ("A", "1=2")), ("B=", ("B", ""))] {
            let expected = (expected.0.to_owned(), expected.1.to_owned());
            assert_eq!(variable(text), Some(expected));
        }
        for bad in ["A", "=x", "A=\0", "TARE_RUN=x"] {
            let params = Params::new().with("env", bad);
            let error = Reader::new("host", SETTINGS, &params).err().unwrap();
            assert_eq!(error.setting, "env", "{bad}");
        }
    }

    #[test]
    fn a_setting_that_it_does_not_have_is_refused_by_name() {
        let settings = Params::new().with("memory", "1g");
        let arm = ArmId::new("host").unwrap();
        let error = Host.configure(arm, &settings).err().unwrap();
        assert_eq!(error.setting, "memory");
    }
}
