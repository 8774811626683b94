//! `dist [--target TRIPLE]`: builds static agents, and `tare` with the agents embedded, as `<target
//! folder>/dist/tare`, or for another system as `<target folder>/dist/<triple>/tare`.
//!
//! The agent has a separate target folder, so that its profile and flags never disturb other builds, and so that a
//! `tare` built without this command finds it there. On Linux it is linked with musl; if that target is not
//! available, statically with the C library of the machine. For Windows there are two agents: one for the host, and,
//! if its target is installed, the Linux one for containers.
//! Limits: does not check for a linker for another system; cargo reports a missing one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};

use crate::shell::{Program, cargo, program, step, strs};
use crate::workspace::{root, target_folder};

/// Largest size of the agent, because it is copied into every arm. The tests enforce it; a larger build, from another
/// compiler, still measures.
const AGENT_LIMIT_BYTES: u64 = 2 << 20;

/// Builds everything.
pub fn main(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments = strs(arguments);
    let target = match arguments[..] {
        [] => None,
        ["--target", target] => Some(target),
        _ => bail!(
            "`dist` takes no arguments but `--target TRIPLE`, and got `{}`",
            arguments.join(" ")
        ),
    };
    let program = build_for(&BuildPaths::own(), target, Build::Whole)?;
    println!("{}", program.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the built `tare` that `TARE` names; builds everything if it is not set.
pub fn named_or_built() -> anyhow::Result<PathBuf> {
    std::env::var_os("TARE").map_or_else(dist, |path| Ok(PathBuf::from(path)))
}

/// A build location: the sources and the target folder.
#[derive(Debug, Clone)]
pub struct BuildPaths {
    /// The root of the workspace.
    pub root: PathBuf,
    /// The target folder.
    pub target: PathBuf,
}

impl BuildPaths {
    /// This workspace.
    pub fn own() -> Self {
        Self {
            root: root().to_owned(),
            target: target_folder(),
        }
    }

    /// Returns the running cargo's `build`, with the versions of the lock file.
    fn build(&self, arguments: &[&str]) -> Program {
        cargo(&["build", "--locked"])
            .arguments(arguments)
            .folder(&self.root)
    }
}

/// Which `tare` is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Optimized, with all forms of reports.
    Whole,
    /// For a fast first answer: without the forms whose libraries take a third of the build, and not optimized, which
    /// takes another two thirds. What it measures is the same: all timed work is in the agents.
    First,
}

/// How cargo builds one of them.
struct Cargo {
    arguments: &'static [&'static str],
    /// The profile, which is also its folder.
    profile: &'static str,
    /// The folder for the program.
    folder: &'static str,
}

impl Build {
    fn cargo(self) -> Cargo {
        match self {
            Self::Whole => Cargo {
                arguments: &["--all-features"],
                profile: "release",
                folder: "dist",
            },
            Self::First => Cargo {
                arguments: &[],
                profile: "first",
                folder: "run",
            },
        }
    }
}

/// Builds everything in this workspace and returns the path of `tare`.
pub fn dist() -> anyhow::Result<PathBuf> {
    build(&BuildPaths::own())
}

/// Builds everything and returns the path of `tare`.
pub fn build(place: &BuildPaths) -> anyhow::Result<PathBuf> {
    build_for(place, None, Build::Whole)
}

/// Like `build`, for another target if given, and this `tare`.
pub fn build_for(
    place: &BuildPaths,
    target: Option<&str>,
    build: Build,
) -> anyhow::Result<PathBuf> {
    let cargo = build.cargo();
    let agents = match target {
        None => agents()?,
        Some(target) => {
            ensure!(
                is_installed(target) || add(target),
                "Rust has no standard library here for `{target}`: `rustup target add {target}`"
            );
            agents_for(target)
        }
    };
    step(
        "building the agent, one static file for every environment, and `tare` with it inside (the first time some minutes on two processors)",
    );
    let listed = |agent: &Agent| format!("{}={}", agent.target, agent.copy(place).display());
    let files: Vec<String> = agents.iter().map(listed).collect();
    let of_target: Vec<&str> = target.iter().flat_map(|it| ["--target", it]).collect();
    let host = place
        .build(&["--profile", cargo.profile])
        .arguments(&["--package", "tare", "--bin", "tare"])
        .arguments(&of_target)
        .arguments(cargo.arguments)
        .arguments(&["--target-dir", &place.target.to_string_lossy()])
        .variable("TARE_AGENT_FILES", files.join(";"));
    build_with(place, &agents, &host)?;
    for agent in &agents {
        let bytes = size(&agent.copy(place))?;
        println!("{bytes:>10} B  tare-agent for {}", agent.target);
    }
    let below = target.unwrap_or_default();
    let name = match target {
        None => format!("tare{}", std::env::consts::EXE_SUFFIX),
        Some(target) => named("tare", target),
    };
    let built = place.target.join(below).join(cargo.profile).join(&name);
    let folder = place.target.join(cargo.folder).join(below);
    std::fs::create_dir_all(&folder)?;
    let program = folder.join(&name);
    // Removed rather than overwritten: a running `tare` keeps its file.
    let _ = std::fs::remove_file(&program);
    std::fs::copy(&built, &program)
        .with_context(|| format!("cannot copy {} to {}", built.display(), program.display()))?;
    println!("{:>10} B  tare", size(&program)?);
    Ok(program)
}

fn size(path: &Path) -> anyhow::Result<u64> {
    let metadata = std::fs::metadata(path).with_context(|| format!("no {}", path.display()))?;
    Ok(metadata.len())
}

/// Builds the agents and then the host's program, or both at once if no agent has been built yet.
fn build_with(place: &BuildPaths, agents: &[Agent], host: &Program) -> anyhow::Result<()> {
    let agents_built = || agents.iter().try_for_each(|agent| agent.build(place));
    // Cargo looks at the times of files that are there before it builds anything.
    if agents.iter().any(|agent| agent.copy(place).exists()) {
        agents_built()?;
        return host.run();
    }
    // Linking the agent takes one processor a minute. The build script that embeds the agents waits for the lock,
    // which ends with this process at the latest.
    let awaited = agents_folder(place).join("awaited");
    std::fs::create_dir_all(agents_folder(place))?;
    let lock = File::create(&awaited)?;
    lock.lock()?;
    let begun = SystemTime::now();
    let host = host.clone().variable("TARE_AGENTS_AWAITED", &awaited);
    std::thread::scope(|scope| {
        let agents = scope.spawn(move || {
            agents_built()?;
            // Older than the waiting script, or cargo would run it again the next time.
            for agent in agents {
                let file = File::options().write(true).open(agent.copy(place))?;
                file.set_modified(begun)?;
            }
            drop(lock);
            anyhow::Ok(())
        });
        let host = host.run();
        agents.join().expect("building does not panic").and(host)
    })
}

/// Builds the agent that this machine's `tare` puts into its own arms and returns its path.
pub fn own_agent(place: &BuildPaths) -> anyhow::Result<PathBuf> {
    let agents = agents()?;
    let agent = agents.first().context("there is no agent to build")?;
    agent.build(place)?;
    Ok(agent.path(place))
}

/// Checks the size of the agent.
///
/// # Errors
/// If it is larger than the limit.
pub fn is_small_enough(agent: &Path) -> anyhow::Result<()> {
    let bytes = size(agent)?;
    ensure!(
        bytes <= AGENT_LIMIT_BYTES,
        "the agent has {bytes} B, more than the {AGENT_LIMIT_BYTES} B that are promised"
    );
    Ok(())
}

/// Returns the agents that this machine's `tare` embeds, its own first.
fn agents() -> anyhow::Result<Vec<Agent>> {
    let arch = std::env::consts::ARCH;
    let musl = format!("{arch}-unknown-linux-musl");
    if cfg!(target_os = "linux") {
        if is_installed(&musl) || add(&musl) {
            return Ok(vec![Agent::new(musl, "")]);
        }
        println!(
            "the target {musl} is not installed and cannot be added: linking with the C library of this machine"
        );
        let gnu = format!("{arch}-unknown-linux-gnu");
        return Ok(vec![Agent::new(gnu, "-C target-feature=+crt-static")]);
    }
    Ok(agents_for(&host_target()?))
}

/// Returns the agents that the `tare` of this target embeds: its own, and for a target other than Linux the one for
/// the containers that it runs.
fn agents_for(target: &str) -> Vec<Agent> {
    let mut agents = vec![Agent::new(target.to_owned(), "")];
    if target.contains("linux") {
        return agents;
    }
    let arch = target.split('-').next().unwrap_or_default();
    let musl = format!("{arch}-unknown-linux-musl");
    if is_installed(&musl) || add(&musl) {
        // A musl program needs no foreign C compiler, only a linker: the one that comes with Rust.
        agents.push(Agent::new(musl, "-C linker=rust-lld"));
    } else {
        println!("the target {musl} is not installed: this `tare` cannot measure Linux containers");
    }
    agents
}

/// Returns a program's file name on a target's system.
fn named(program: &str, target: &str) -> String {
    let ending = if target.contains("windows") {
        ".exe"
    } else {
        ""
    };
    format!("{program}{ending}")
}

/// The target folder of the agents.
fn agents_folder(place: &BuildPaths) -> PathBuf {
    place.target.join("agent")
}

/// The agent for one target.
#[derive(Debug)]
struct Agent {
    target: String,
    /// Flags for the compiler.
    flags: &'static str,
}

impl Agent {
    fn new(target: String, flags: &'static str) -> Self {
        Self { target, flags }
    }

    /// Where it is once it is built.
    fn path(&self, place: &BuildPaths) -> PathBuf {
        let folder = agents_folder(place).join(&self.target).join("agent");
        folder.join(named("tare-agent", &self.target))
    }

    /// The copy that is embedded. Its time changes only with its bytes.
    fn copy(&self, place: &BuildPaths) -> PathBuf {
        agents_folder(place).join(format!("embedded-{}", self.target))
    }

    fn build(&self, place: &BuildPaths) -> anyhow::Result<()> {
        let mut build = place
            .build(&["--package", "tare-agent", "--bin", "tare-agent"])
            .arguments(&["--profile", "agent", "--target", &self.target])
            .arguments(&["--target-dir", &agents_folder(place).to_string_lossy()]);
        if !self.flags.is_empty() {
            build = build.variable("RUSTFLAGS", self.flags);
        }
        build.run()?;
        let built = std::fs::read(self.path(place))?;
        let copy = self.copy(place);
        if std::fs::read(&copy).ok().as_ref() != Some(&built) {
            std::fs::write(copy, built)?;
        }
        Ok(())
    }
}

/// Whether the standard library for this target is installed.
pub fn is_installed(target: &str) -> bool {
    program("rustc", &["--print", "target-libdir", "--target", target])
        .output()
        .is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

/// Asks rustup for the target; `false` without rustup or network.
pub fn add(target: &str) -> bool {
    step(&format!("adding Rust's target {target}"));
    program("rustup", &["target", "add", target])
        .output()
        .is_ok()
}

/// Returns this machine's default compilation target.
fn host_target() -> anyhow::Result<String> {
    let text = program("rustc", &["-vV"]).output()?;
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc does not say what it builds for")
}
