//! Finds the agents: the binaries that are copied into the arms.
//!
//! Order of search: the file that the user named; those that `cargo xtask dist` embedded in this program; those in
//! the workspace's target folder or next to this program. Static ones are preferred: they run in every arm, so the
//! host arm gets the same bytes as the others.
//! An agent is identified by the build id in its bytes, which `Hello` must repeat. It need not be executed for that,
//! so an agent for another system can be handled too.
//! The bytes that were read are the bytes that run: on Linux they are sealed in memory and the file no longer
//! matters; elsewhere a copy in the run's folder runs, which is closed to other users.
//! Limits: an agent in the target folder may be older than its sources.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tare_model::wire::PROTOCOL;

use super::exec::CommandLine;
use super::files::{self, FileError};
use super::sealed::Sealed;

/// Bytes before and after the build id in an agent's file.
const MARKS: (&[u8], u8) = (b"<tare-agent-build ", b'>');

/// Agents embedded in this program: target and bytes.
static EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// The target that this program was built for.
const OWN_TARGET: &str = env!("TARE_TARGET");

/// An agent binary; every arm gets the same bytes.
#[derive(Debug, Clone)]
pub struct AgentBinary {
    /// The file that it was read from.
    pub path: PathBuf,
    /// Its SHA-256 as hexadecimal digits.
    pub sha256: String,
    /// The build id that it sends in `Hello`.
    pub build: String,
    sealed: Option<Arc<Sealed>>,
}

impl AgentBinary {
    /// Reads an agent's file.
    ///
    /// # Errors
    /// It cannot be read, or is no agent.
    pub fn read(path: &Path) -> Result<Self, AgentError> {
        read(path).map(|known| known.binary)
    }

    /// An agent without contents, for tests that need only its path.
    #[cfg(test)]
    pub(crate) fn fake(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            sha256: String::new(),
            build: String::new(),
            sealed: None,
        }
    }

    /// A path to the hashed bytes, valid as long as this value lives.
    pub fn pinned(&self) -> PathBuf {
        let sealed = self.sealed.as_ref();
        sealed.map_or_else(|| self.path.clone(), |sealed| sealed.path())
    }

    /// Reads the hashed bytes.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn bytes(&self) -> Result<Vec<u8>, FileError> {
        files::read(&self.pinned())
    }

    /// The command that runs it with these arguments.
    pub fn command<A: Into<String>>(&self, arguments: impl IntoIterator<Item = A>) -> CommandLine {
        let mut command = CommandLine::new(self.pinned().display().to_string(), arguments);
        command.name = Some(self.path.display().to_string());
        command
    }
}

/// Why no agent can be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No agent was found; build one with `cargo xtask dist`, or name one with `--agent`.
    #[error("no agent for this machine: none is embedded, and none lies in {}", list(.looked))]
    Missing {
        /// The paths that were searched.
        looked: Vec<PathBuf>,
    },
    /// A file is not an agent.
    #[error("`{}` is not an agent of Tare: it holds no build id", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| format!("`{}`", path.display()))
        .collect();
    paths.join(", ")
}

/// An agent and the properties that decide where it can run.
#[derive(Debug, Clone)]
struct FoundAgent {
    /// Its target triple, taken from its build id.
    target: String,
    is_static: bool,
    binary: AgentBinary,
}

/// All agents that were found.
#[derive(Debug, Clone)]
pub struct Agents {
    /// Best first.
    known: Vec<FoundAgent>,
    own: AgentBinary,
}

impl Agents {
    /// Finds the agents. `chosen` is the file that the user named; embedded ones are written to `folder` once, under
    /// a name with their hash.
    pub fn locate(chosen: Option<&Path>, folder: &Path) -> Result<Self, AgentError> {
        let mut known = Vec::new();
        if let Some(path) = chosen {
            known.push(taken(path, folder, Sealed::new)?);
        }
        for (target, bytes) in EMBEDDED {
            known.push(unpack(target, bytes, folder)?);
        }
        let looked = candidates();
        if EMBEDDED.is_empty() {
            for path in looked.iter().filter(|path| is_of_the_programs_owner(path)) {
                known.push(taken(path, folder, Sealed::new)?);
            }
        }
        // A stable sort keeps the order above among equals; the agent that the user named stays first.
        let from = usize::from(chosen.is_some());
        known[from..].sort_by_key(|agent| !agent.is_static);
        let own = known
            .iter()
            .find(|agent| runs_on(&agent.target, OWN_TARGET))
            .map(|agent| agent.binary.clone())
            .ok_or(AgentError::Missing { looked })?;
        Ok(Self { known, own })
    }

    /// A set of one agent, the host's.
    pub fn only(path: &Path) -> Result<Self, AgentError> {
        let agent = read(path)?;
        Ok(Self {
            own: agent.binary.clone(),
            known: vec![agent],
        })
    }

    /// The host's agent.
    pub fn host(&self) -> &AgentBinary {
        &self.own
    }

    /// The agent with this build id (as sent in `Hello`), if it is one of these.
    pub fn of_build(&self, build: &str) -> Option<&AgentBinary> {
        self.known
            .iter()
            .map(|agent| &agent.binary)
            .find(|binary| binary.build == build)
    }

    /// The agent that answered `Hello` with this protocol and build.
    ///
    /// # Errors
    /// Why this Tare cannot talk to it.
    pub fn greeted(&self, protocol: u32, build: &str) -> Result<&AgentBinary, String> {
        if protocol != PROTOCOL {
            return Err(format!(
                "its agent speaks protocol {protocol}, and this Tare speaks {PROTOCOL}"
            ));
        }
        self.of_build(build).ok_or_else(|| {
            format!(
                "its agent is build `{}`, which is not what this Tare brought (`{}`)",
                build.escape_debug(),
                self.own.build
            )
        })
    }

    /// A static agent for Linux on this machine type (`x86_64`, `aarch64`), if any. For engines whose containers run
    /// Linux, whatever the host runs.
    pub fn linux(&self, arch: &str) -> Option<&AgentBinary> {
        self.known
            .iter()
            .find(|agent| {
                agent.is_static && runs_on(&agent.target, &format!("{arch}-unknown-linux"))
            })
            .map(|agent| &agent.binary)
    }

    /// An agent for Windows on this machine type, if any.
    pub fn windows(&self, arch: &str) -> Option<&AgentBinary> {
        self.known
            .iter()
            .find(|agent| runs_on(&agent.target, &format!("{arch}-pc-windows")))
            .map(|agent| &agent.binary)
    }
}

/// Whether an agent for `target` runs on `place`: same machine type and system, any C library.
fn runs_on(target: &str, place: &str) -> bool {
    let system = |triple: &str| {
        ["linux", "windows", "darwin", "freebsd"]
            .into_iter()
            .find(|system| triple.contains(system))
    };
    target.split('-').next() == place.split('-').next() && system(target) == system(place)
}

/// Paths to search for an agent: in the target folder that holds this program, and next to this program.
fn candidates() -> Vec<PathBuf> {
    let Ok(program) = std::env::current_exe() else {
        return Vec::new();
    };
    let name = format!("tare-agent{}", std::env::consts::EXE_SUFFIX);
    let arch = std::env::consts::ARCH;
    let mut paths = Vec::new();
    // `target/debug/tare` is one folder below the target folder, a test program two.
    for folder in program.ancestors().skip(2).take(2) {
        for target in [&format!("{arch}-unknown-linux-musl"), OWN_TARGET] {
            let name = if target.contains("linux") {
                "tare-agent"
            } else {
                &name
            };
            paths.push(folder.join("agent").join(target).join("agent").join(name));
        }
    }
    paths.extend(
        program
            .ancestors()
            .skip(1)
            .take(2)
            .map(|folder| folder.join(&name)),
    );
    paths
}

/// Whether a file belongs to this program's owner or to root. In a folder that others may write to, such as `/tmp`,
/// another user could put an agent next to the program.
fn is_of_the_programs_owner(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let owner = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid());
        let program = std::env::current_exe().ok().and_then(|path| owner(&path));
        path.is_file() && owner(path).is_some_and(|uid| uid == 0 || Some(uid) == program)
    }
    #[cfg(not(unix))]
    path.is_file()
}

fn read(path: &Path) -> Result<FoundAgent, AgentError> {
    let bytes = files::read(path)?;
    know(path, &bytes, Sealed::new)
}

/// Seals bytes in memory; `None` if that fails.
type Seal = fn(&[u8]) -> Option<Sealed>;

/// Reads an agent's file. If its bytes cannot be sealed, a copy in `folder` is used, so that replacing the file does
/// not replace the agent.
fn taken(path: &Path, folder: &Path, seal: Seal) -> Result<FoundAgent, AgentError> {
    let bytes = files::read(path)?;
    let known = know(path, &bytes, seal)?;
    if known.binary.sealed.is_some() {
        return Ok(known);
    }
    let copy = written(&known.target, &bytes, folder)?;
    know(&copy, &bytes, seal)
}

fn know(path: &Path, bytes: &[u8], seal: Seal) -> Result<FoundAgent, AgentError> {
    let build = build_id(bytes).ok_or_else(|| AgentError::Foreign {
        path: path.to_owned(),
    })?;
    // `version-hash-level-target`: the target is everything after the third dash.
    let target = build.splitn(4, '-').nth(3).unwrap_or_default().to_owned();
    Ok(FoundAgent {
        target,
        is_static: !needs_interpreter(bytes),
        binary: AgentBinary {
            path: path.to_owned(),
            sha256: sha256(bytes),
            build,
            sealed: seal(bytes).map(Arc::new),
        },
    })
}

/// Writes an embedded agent to `folder` unless it is already there.
fn unpack(target: &str, bytes: &[u8], folder: &Path) -> Result<FoundAgent, AgentError> {
    know(&written(target, bytes, folder)?, bytes, Sealed::new)
}

/// Writes an agent to `folder` under a name with its hash, unless it is already there, and returns its path.
fn written(target: &str, bytes: &[u8], folder: &Path) -> Result<PathBuf, FileError> {
    let hash = sha256(bytes);
    let suffix = if target.contains("windows") {
        ".exe"
    } else {
        ""
    };
    let path = folder.join(format!("agent-{}{suffix}", &hash[..12]));
    if !files::read(&path).is_ok_and(|found| found == bytes) {
        files::create_folder(folder)?;
        files::write_program(&path, bytes)?;
    }
    Ok(path)
}

/// SHA-256 as hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("writing to a String cannot fail");
        digits
    })
}

/// The build id between its markers.
fn build_id(bytes: &[u8]) -> Option<String> {
    let (open, close) = MARKS;
    let mut rest = bytes;
    while let Some(at) = rest.windows(open.len()).position(|window| window == open) {
        rest = &rest[at + open.len()..];
        let end = rest.iter().take(128).position(|byte| *byte == close);
        // The marker alone also occurs in the code that extracts the id; an id is plain text.
        let id = end.map(|end| &rest[..end]).filter(|id| {
            !id.is_empty()
                && id
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(byte))
        });
        if let Some(id) = id {
            return Some(String::from_utf8_lossy(id).into_owned());
        }
    }
    None
}

/// Whether this is a 64-bit little-endian ELF file with a program interpreter, i.e. a dynamic linker and libraries.
/// Source: System V ABI, program header, `PT_INTERP` = 3.
fn needs_interpreter(bytes: &[u8]) -> bool {
    let number = |at: usize, width: usize| {
        bytes.get(at..at + width).map(|digits| {
            digits
                .iter()
                .rev()
                .fold(0usize, |number, digit| number << 8 | usize::from(*digit))
        })
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let (Some(table), Some(size), Some(count)) = (number(32, 8), number(54, 2), number(56, 2))
    else {
        return false;
    };
    (0..count).any(|index| {
        index
            .checked_mul(size)
            .and_then(|offset| offset.checked_add(table))
            .filter(|at| *at < bytes.len())
            .and_then(|at| number(at, 4))
            == Some(3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes an agent's file of this build into a new folder.
    fn written_to_folder(id: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine");
        files::write(&path, &fake(id)).unwrap();
        (folder, path)
    }

    fn fake(id: &str) -> Vec<u8> {
        let mut bytes = b"code <tare-agent-build  and more".to_vec();
        bytes.extend_from_slice(format!("<tare-agent-build {id}> data").as_bytes());
        bytes
    }

    #[test]
    fn the_build_id_is_the_plain_text_between_the_marks() {
        let id = "0.1.0-00ff-o3-x86_64-unknown-linux-musl";
        assert_eq!(build_id(&fake(id)).as_deref(), Some(id));
        assert_eq!(build_id(b"<tare-agent-build no end"), None);
        assert_eq!(build_id(b""), None);
    }

    #[test]
    fn a_file_that_is_no_agent_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bash");
        files::write(&path, b"\x7fELF something else").unwrap();
        let error = Agents::locate(Some(&path), folder.path()).unwrap_err();
        assert!(error.to_string().contains("bash"), "{error}");
    }

    #[test]
    fn named_agent_is_host_agent_if_it_runs_here() {
        let (folder, path) = written_to_folder(&format!("0.1.0-ab-o3-{OWN_TARGET}"));
        let agents = Agents::locate(Some(&path), folder.path()).unwrap();
        assert_eq!(agents.host().path, path);
        assert_eq!(agents.host().sha256.len(), 64);
        let arch = std::env::consts::ARCH;
        assert_eq!(
            agents.linux(arch).map(|agent| &agent.path),
            OWN_TARGET.contains("linux").then_some(&path)
        );
        assert!(agents.linux("riscv64").is_none());
    }

    #[test]
    fn embedded_agent_is_written_once_and_repaired() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = fake("0.1.0-ab-o3-aarch64-unknown-linux-musl");
        let first = unpack("aarch64-unknown-linux-musl", &bytes, folder.path()).unwrap();
        assert_eq!(first.target, "aarch64-unknown-linux-musl");
        files::write(&first.binary.path, b"broken").unwrap();
        let second = unpack("aarch64-unknown-linux-musl", &bytes, folder.path()).unwrap();
        assert_eq!(second.binary.path, first.binary.path);
        assert_eq!(second.binary.sha256, first.binary.sha256);
        assert_eq!(files::read(&first.binary.path).unwrap(), bytes);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn agent_file_replaced_after_read_has_no_effect() {
        let (_folder, path) = written_to_folder(&format!("0.1.0-ab-o3-{OWN_TARGET}"));
        let bytes = files::read(&path).unwrap();
        let agent = AgentBinary::read(&path).unwrap();
        let copy = agent.clone();
        files::write(&path, &fake(&format!("0.1.0-cd-o3-{OWN_TARGET}"))).unwrap();
        drop(agent);
        assert_eq!(copy.bytes().unwrap(), bytes);
        assert_eq!(sha256(&files::read(&copy.pinned()).unwrap()), copy.sha256);
        // Messages show the file that was named.
        let shown = copy.command(["version"]).to_string();
        assert_eq!(shown, format!("{} version", path.display()));
    }

    #[test]
    fn without_sealing_agent_runs_from_run_folder_copy() {
        let (folder, path) = written_to_folder(&format!("0.1.0-ab-o3-{OWN_TARGET}"));
        let bytes = files::read(&path).unwrap();
        let own = folder.path().join("run");
        let agent = taken(&path, &own, |_| None).unwrap().binary;
        files::write(&path, &fake(&format!("0.1.0-cd-o3-{OWN_TARGET}"))).unwrap();
        assert!(agent.pinned().starts_with(&own));
        assert_eq!(agent.bytes().unwrap(), bytes);
        assert_eq!(sha256(&files::read(&agent.pinned()).unwrap()), agent.sha256);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn dynamic_program_is_distinguished_from_static() {
        let own = files::read(&std::env::current_exe().unwrap()).unwrap();
        // A test's program uses libraries where the target does.
        assert_eq!(needs_interpreter(&own), OWN_TARGET.ends_with("gnu"));
        assert!(!needs_interpreter(b"\x7fELF\x02\x01"));
    }

    #[test]
    fn agent_runs_only_on_its_architecture_and_system() {
        let musl = "x86_64-unknown-linux-musl";
        assert!(runs_on(musl, "x86_64-unknown-linux-gnu"));
        assert!(!runs_on(musl, "aarch64-unknown-linux-gnu"));
        assert!(!runs_on(musl, "x86_64-pc-windows-gnu"));
    }
}
