//! Builds the mounts, variables and program path that a command needs inside an environment, as `docker run -v`
//! would.
//!
//! The working directory is mounted writable under the same path, and so is every file that the command names. The
//! program is the host's. If the environment has its own root, the host's userland (`/usr`, `/lib`, `/etc`, …) is
//! mounted read-only, which also serves interpreters that open their libraries by name. So the same bytes run outside
//! and inside, and the program's text is not on the environment's storage. Variables are a list of harmless ones plus
//! those that the user asks for, the same on both sides, because keys do not belong in a store.
//!
//! With the user's image, the program is the image's, found by its name.
//! Limits: files outside of the working directory that the command opens without naming them are not mounted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tare_model::{CommandCall, Params, Value};

use super::WhyError;
use crate::cause::switch::target;
use crate::cx::{files, vars};
use crate::env::{Driver, Files, private};

/// The host's userland.
const USERLAND: [&str; 9] = [
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt",
];

/// How a program gets its libraries if the environment has its own root.
const USERLAND_SHOWN: &str =
    "with the host's userland shown read-only inside, without its password files and keys";

/// Variables that are passed; `*` at the end matches any continuation.
const HARMLESS: [&str; 28] = tare_model::rows! {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TMPDIR", "PYTHON*",
    "VIRTUAL_ENV", "PYENV_*", "LD_LIBRARY_PATH", "OMP_*", "OPENBLAS_*", "MKL_*", "NUMEXPR_*", "RAYON_*",
    "GOMAXPROCS", "GOGC", "JAVA_HOME", "JAVA_OPTS", "RUBYOPT", "PERL5LIB", "MALLOC_*", "GLIBC_TUNABLES",
};

/// Parts of a name that mark a variable as secret.
const SECRET: [&str; 6] = ["TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH"];

/// The request, as given on the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CarryRequest {
    /// The command.
    pub argv: Vec<String>,
    /// Additional variables, `NAME` or `NAME=text`.
    pub variables: Vec<String>,
    /// A file with the stdin of every run.
    pub stdin_file: Option<PathBuf>,
    /// Whether the program is in the environment's image.
    pub has_own_image: bool,
    /// Whether folders are mounted even if they contain a home or Tare's files.
    pub shows_private: bool,
    /// An empty folder that covers private ones.
    pub empty: PathBuf,
    /// The folder in which the command starts, if not the working directory.
    pub directory: Option<String>,
}

/// A command, ready to be run anywhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Carried {
    /// The command and its arguments.
    pub call: CommandCall,
    /// Mounts for an environment with its own root, `path:path[:ro]`.
    pub userland: Vec<String>,
    /// Mounts for any environment.
    pub own: Vec<String>,
    /// Mounts that the host's program would need, if an image has its own.
    pub instead: Vec<String>,
    /// What was done, one line each.
    pub notes: Vec<String>,
    /// Whether only the image can have the program.
    pub is_missing: bool,
}

/// Determines how to carry a command into an environment.
///
/// # Errors
/// The program does not exist, or a path cannot be mounted.
pub fn carried(wish: &CarryRequest) -> Result<Carried, WhyError> {
    let Some(name) = wish.argv.first().filter(|name| !name.is_empty()) else {
        return Err(WhyError::Nothing);
    };
    let directory = match &wish.directory {
        Some(directory) => directory.clone(),
        None => vars::directory().ok_or(WhyError::NoDirectory)?,
    };
    let mut carried = Carried::default();
    let mut shown = MountedPaths::default();
    let path = vars::text("PATH").unwrap_or_default();
    let program = files::program(name, &path, Path::new(&directory));
    let mut argv = wish.argv.clone();
    match (&program, wish.has_own_image) {
        (None, false) => return Err(not_here(name)),
        (None, true) => carried.is_missing = true,
        (Some(path), false) => {
            argv[0] = path.display().to_string();
            carried.userland = userland(&wish.empty)?;
            show_program(path, &mut shown);
            carried.notes.push(format!(
                "program: the host's own `{}`, {USERLAND_SHOWN}",
                path.display()
            ));
        }
        (Some(path), true) => note_host_program(path, wish, &mut carried)?,
    }
    show_directory(&directory, &mut shown, &mut carried.notes);
    for argument in &wish.argv[1..] {
        show_argument(argument, &directory, &mut shown, &mut carried.notes);
    }
    if !wish.shows_private {
        shown.check_nothing_private()?;
    }
    // Added after the check: the file is among Tare's files, but meant for the command.
    if let Some(file) = &wish.stdin_file {
        shown.add(file, true);
        carried
            .notes
            .push("standard input: kept in a file and given to every run".to_owned());
    }
    carried.own = shown.binds()?;
    let (mut variables, note) = variables(&wish.variables, &vars::all())?;
    if wish.has_own_image {
        // An image has its own search path, and variables that its programs need.
        let name_of = |wanted: &String| wanted.split('=').next().map(str::to_owned);
        let wanted: Vec<String> = wish.variables.iter().filter_map(name_of).collect();
        variables.retain(|name, _| wanted.contains(name));
        carried
            .notes
            .push("variables: each side's own, and those asked for".to_owned());
    } else {
        carried.notes.push(note);
    }
    carried.call = CommandCall {
        argv,
        variables,
        directory: Some(directory),
        stdin_file: wish
            .stdin_file
            .as_ref()
            .map(|file| file.display().to_string()),
        clean: !wish.has_own_image,
        ..CommandCall::default()
    };
    Ok(carried)
}

/// With the user's image, its program runs. Records what the host's program would need, unless that is in a home.
fn note_host_program(
    path: &Path,
    wish: &CarryRequest,
    carried: &mut Carried,
) -> Result<(), WhyError> {
    carried.notes.push(format!(
        "program: on the host `{}`; inside, what the image has under `{}`",
        path.display(),
        wish.argv[0]
    ));
    let mut shown = MountedPaths::default();
    show_program(path, &mut shown);
    match shown.check_nothing_private() {
        Err(private) if !wish.shows_private => carried.notes.push(format!(
            "the host's own program is not tried inside: {private}"
        )),
        _ => {
            carried.instead = userland(&wish.empty)?;
            carried.instead.extend(shown.binds()?);
        }
    }
    Ok(())
}

/// Whether an environment can show folders of this machine.
pub fn shows_folders(driver: &dyn Driver) -> bool {
    driver.settings().iter().any(|spec| spec.name == "binds")
}

/// Adds the mounts to the settings of an environment.
pub fn with_binds(driver: &dyn Driver, settings: &Params, carried: &Carried) -> Params {
    if !shows_folders(driver) {
        return settings.clone();
    }
    let has_own_root = driver.declared().files != Files::Hosts && settings.value("image").is_none();
    let mut binds = settings.words("binds");
    let taken: Vec<String> = binds
        .iter()
        .filter_map(|bind| target(bind).map(str::to_owned))
        .collect();
    // Docker's init is in `/sbin`, which the host's would hide.
    let has_init = settings.value("init") == Some(&Value::Bool(true));
    let userland = carried
        .userland
        .iter()
        .filter(|bind| has_own_root && !(has_init && bind.starts_with("/sbin:")));
    let more = userland.chain(&carried.own);
    for bind in more {
        // The user's mounts take precedence.
        if !target(bind).is_some_and(|at| taken.iter().any(|it| it == at)) {
            binds.push(bind.clone());
        }
    }
    if binds.is_empty() {
        return settings.clone();
    }
    settings.clone().with(
        "binds",
        Value::List(binds.into_iter().map(Value::Text).collect()),
    )
}

/// Describes how the command is carried into this environment, one line each. If nothing can be mounted, it says what
/// is there instead.
pub fn described(driver: &dyn Driver, carried: &Carried) -> Vec<String> {
    let id = driver.id();
    if shows_folders(driver) {
        let mut notes = carried.notes.clone();
        if driver.declared().files == Files::Hosts {
            // Nothing needs to be mounted there: its root consists of the host's files.
            for line in &mut notes {
                *line = line.replace(
                    USERLAND_SHOWN,
                    "with the host's own files around it, without homes, password files and keys",
                );
            }
        }
        return notes;
    }
    let paths: Vec<String> = carried
        .own
        .iter()
        .filter_map(|bind| bind.split(':').next())
        .map(|path| format!("`{path}`"))
        .collect();
    let instead = match driver.declared().files {
        Files::Elsewhere => "what that machine has under the same paths is used",
        _ => "inside there is nothing under the same paths, and it is started in `/`",
    };
    let variables = carried.notes.iter().filter(|line| !is_about_files(line));
    std::iter::once(format!(
        "NOT carried: {}, the program `{}` and its libraries. `{id}` shows no folders of this machine; {instead}",
        if paths.is_empty() {
            "no folder".to_owned()
        } else {
            paths.join(", ")
        },
        carried.call.argv[0]
    ))
    .chain(variables.cloned())
    .collect()
}

/// Whether a line of [`Carried::notes`] is about files.
fn is_about_files(line: &str) -> bool {
    !line.starts_with("variables: ")
}

/// The error that this machine does not have the program.
pub fn not_here(name: &str) -> WhyError {
    WhyError::NotHere {
        program: name.escape_debug().to_string(),
    }
}

/// The userland's folders, with private places covered: files by the null device, unreadable folders by an empty one.
fn userland(empty: &Path) -> Result<Vec<String>, WhyError> {
    let empty = plain(empty)?;
    let folders = USERLAND.iter().filter(|folder| Path::new(folder).is_dir());
    let private = private::places_in(&USERLAND).into_iter();
    let covers = private.map(|(place, is_folder)| {
        let cover = if is_folder { &empty } else { "/dev/null" };
        format!("{cover}:{place}:ro")
    });
    Ok(folders
        .map(|folder| format!("{folder}:{folder}:ro"))
        .chain(covers)
        .collect())
}

/// Formats a path for a bind mount.
fn plain(path: &Path) -> Result<String, WhyError> {
    let text = path.display().to_string();
    if text.contains([':', ',']) || text.chars().any(char::is_control) {
        return Err(WhyError::OddPath {
            path: text.escape_debug().to_string(),
        });
    }
    Ok(text)
}

/// Whether a path is in the host's userland, which has the same bytes everywhere.
pub(super) fn is_in_userland(path: &Path) -> bool {
    USERLAND.iter().any(|folder| path.starts_with(folder))
}

/// Mounts what a program outside of the userland needs: its installation folder, and those of a symbolic link's
/// target and of a script's interpreter.
fn show_program(path: &Path, shown: &mut MountedPaths) {
    let mut places = vec![path.to_owned()];
    places.extend(files::canonical(path).ok());
    let head = files::head(path, 256).unwrap_or_default();
    let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if let Some(line) = first_line.strip_prefix(b"#!") {
        let line = String::from_utf8_lossy(line);
        let interpreter = line.split_whitespace().next().map(PathBuf::from);
        places.extend(interpreter.iter().cloned());
        places.extend(interpreter.and_then(|path| files::canonical(&path).ok()));
    }
    for place in places {
        if !is_in_userland(&place) {
            shown.add(&installed_at(&place), true);
        }
    }
}

/// The folder above `bin` that a program was installed into; the program's folder if that would be a user's home or
/// the root.
fn installed_at(program: &Path) -> PathBuf {
    let Some(folder) = program.parent() else {
        return program.to_owned();
    };
    let is_bin = folder
        .file_name()
        .is_some_and(|name| ["bin", "sbin", "shims"].iter().any(|bin| name == *bin));
    let home = vars::text("HOME").map(PathBuf::from);
    match folder.parent() {
        Some(above) if is_bin && above.parent().is_some() && home.as_deref() != Some(above) => {
            above.to_owned()
        }
        _ => folder.to_owned(),
    }
}

fn show_directory(directory: &str, shown: &mut MountedPaths, notes: &mut Vec<String>) {
    let path = Path::new(directory);
    if path.parent().is_none() {
        notes.push(
            "working directory: `/`, which is each side's own; start from another folder to have it carried"
                .to_owned(),
        );
        return;
    }
    shown.add(path, false);
    notes.push(format!(
        "working directory: `{}` itself, shown inside under the same path; what the command writes there stays",
        path.display()
    ));
}

/// Mounts a file or folder that an argument names, whole or after a `=`.
fn show_argument(
    argument: &str,
    directory: &str,
    shown: &mut MountedPaths,
    notes: &mut Vec<String>,
) {
    let words = [
        Some(argument),
        argument.split_once('=').map(|(_, text)| text),
    ];
    for word in words.into_iter().flatten() {
        if !word.starts_with('/') && !word.starts_with("..") {
            continue;
        }
        let Ok(path) = files::canonical(&Path::new(directory).join(word)) else {
            continue;
        };
        let is_special = ["/dev", "/proc", "/sys"]
            .iter()
            .any(|root| path.starts_with(root));
        if is_special || is_in_userland(&path) || path.parent().is_none() || shown.covers(&path) {
            continue;
        }
        notes.push(format!("`{}`: shown inside as it is", path.display()));
        shown.add(&path, false);
    }
}

/// Paths to mount, each under the same path.
#[derive(Debug, Default)]
struct MountedPaths(BTreeMap<PathBuf, bool>);

impl MountedPaths {
    fn covers(&self, path: &Path) -> bool {
        self.0.keys().any(|shown| path.starts_with(shown))
    }

    /// Adds a path; it is writable if any request needs that.
    fn add(&mut self, path: &Path, read_only: bool) {
        let entry = self.0.entry(path.to_owned()).or_insert(read_only);
        *entry &= read_only;
    }

    /// Refuses paths that are or contain a home, and paths of Tare's files: the environment could read and change
    /// them.
    fn check_nothing_private(&self) -> Result<(), WhyError> {
        let found = self
            .0
            .keys()
            .find_map(|path| private::inside_of(path).map(|place| (path, place)));
        found.map_or(Ok(()), |(path, place)| {
            Err(WhyError::Private {
                path: path.display().to_string().escape_debug().to_string(),
                place: place.display().to_string().escape_debug().to_string(),
            })
        })
    }

    fn binds(&self) -> Result<Vec<String>, WhyError> {
        self.0
            .iter()
            .map(|(path, read_only)| {
                let text = plain(path)?;
                Ok(format!(
                    "{text}:{text}{}",
                    if *read_only { ":ro" } else { "" }
                ))
            })
            .collect()
    }
}

/// The variables that are passed, and a line that lists them.
fn variables(
    wanted: &[String],
    all: &[(String, String)],
) -> Result<(BTreeMap<String, String>, String), WhyError> {
    let n_all = all.len();
    let mut passed: BTreeMap<String, String> = all
        .iter()
        .filter(|(name, _)| is_harmless(name))
        .cloned()
        .collect();
    for wish in wanted {
        let (name, text) = match wish.split_once('=') {
            Some((name, text)) => (name, Some(text.to_owned())),
            None => (
                wish.as_str(),
                all.iter()
                    .find(|(name, _)| name == wish)
                    .map(|(_, text)| text.clone()),
            ),
        };
        let Some(text) = text.filter(|_| !name.is_empty()) else {
            return Err(WhyError::NoVariable {
                name: name.escape_debug().to_string(),
            });
        };
        passed.insert(name.to_owned(), text);
    }
    // This variable labels everything that this run starts.
    passed.remove(tare_model::launch::RUN_VARIABLE);
    let left = n_all.saturating_sub(passed.len());
    let names: Vec<&str> = passed.keys().map(String::as_str).collect();
    let notes = format!(
        "variables: {}; {left} other{} not passed, on neither side (`--variable NAME` passes one)",
        names.join(", "),
        if left == 1 { " is" } else { "s are" }
    );
    Ok((passed, notes))
}

fn is_harmless(name: &str) -> bool {
    let listed = HARMLESS.iter().any(|known| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *known,
    });
    listed && !SECRET.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &[&str]) -> Vec<(String, String)> {
        names
            .iter()
            .map(|name| ((*name).to_owned(), "x".to_owned()))
            .collect()
    }

    #[test]
    fn uncarried_files_noted_where_driver_cannot_bind() {
        let carried = Carried {
            call: CommandCall::new("/usr/bin/work", [""; 0]),
            own: vec!["/srv/w:/srv/w".into()],
            notes: vec![
                format!("program: the host's own `/usr/bin/work`, {USERLAND_SHOWN}"),
                "variables: PATH; 3 others are not passed".into(),
            ],
            ..Carried::default()
        };
        let of = |driver: &str| described(crate::env::find(driver).unwrap(), &carried).join("\n");
        for driver in ["docker", "podman"] {
            assert_eq!(of(driver), carried.notes.join("\n"), "{driver}");
        }
        assert!(!of("container").contains(USERLAND_SHOWN));
        assert!(!of("oci").contains("NOT carried"), "{}", of("oci"));
        for driver in ["vm", "ssh"] {
            let notes = of(driver);
            assert!(
                notes.contains("NOT carried: `/srv/w`") && notes.contains("variables: PATH"),
                "{notes}"
            );
        }
    }

    #[test]
    fn only_safe_or_requested_variables_are_passed() {
        let all = pairs(&[
            "PATH",
            "LC_ALL",
            "AWS_SECRET",
            "PYTHON_KEYRING_KEY",
            "MINE",
            "TARE_RUN",
        ]);
        let (passed, notes) = variables(&["MINE".into(), "NEW=1=2".into()], &all).unwrap();
        let names: Vec<&str> = passed.keys().map(String::as_str).collect();
        assert_eq!(names, ["LC_ALL", "MINE", "NEW", "PATH"]);
        assert_eq!(passed["NEW"], "1=2");
        assert!(notes.contains("2 others"), "{notes}");
        for wrong in ["ABSENT", "=x"] {
            assert!(
                variables(&[wrong.into()], &pairs(&["PATH"])).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_program_brings_the_folder_it_was_installed_into() {
        for (program, folder) in [
            ("/srv/tool/bin/x", "/srv/tool"),
            ("/srv/tool/x", "/srv/tool"),
            ("/bin2/x", "/bin2"),
        ] {
            assert_eq!(
                installed_at(Path::new(program)),
                Path::new(folder),
                "{program}"
            );
        }
    }

    #[test]
    fn writable_bind_wins_over_read_only() {
        let mut shown = MountedPaths::default();
        shown.add(Path::new("/w"), true);
        shown.add(Path::new("/w"), false);
        shown.add(Path::new("/r"), true);
        assert_eq!(shown.binds().unwrap(), ["/r:/r:ro", "/w:/w"]);
        assert!(shown.covers(Path::new("/w/x")) && !shown.covers(Path::new("/wx")));
        shown.add(Path::new("/a:b"), true);
        assert!(shown.binds().is_err());
    }

    #[test]
    fn host_userland_bound_only_where_root_differs() {
        let carried = Carried {
            userland: vec!["/usr:/usr:ro".into()],
            own: vec!["/w:/w".into()],
            ..Carried::default()
        };
        let binds = |driver: &str, settings: &Params| {
            let driver = crate::env::find(driver).unwrap();
            let with = with_binds(driver, settings, &carried);
            with.value("binds").map(Value::to_string)
        };
        let none = Params::new();
        assert_eq!(
            binds("docker", &none).as_deref(),
            Some("/usr:/usr:ro,/w:/w")
        );
        assert_eq!(binds("container", &none).as_deref(), Some("/w:/w"));
        let image = Params::new().with("image", "x");
        assert_eq!(binds("docker", &image).as_deref(), Some("/w:/w"));
        let init = Params::new().with("init", true);
        let mut with_sbin = carried.clone();
        with_sbin.userland.push("/sbin:/sbin:ro".into());
        let driver = crate::env::find("docker").unwrap();
        let shown = |settings: &Params| {
            with_binds(driver, settings, &with_sbin)
                .value("binds")
                .map(Value::to_string)
        };
        assert!(shown(&none).unwrap().contains("/sbin"));
        assert!(!shown(&init).unwrap().contains("/sbin"));
        let own = Params::new().with("binds", "/slow:/w");
        assert_eq!(binds("container", &own).as_deref(), Some("/slow:/w"));
        assert_eq!(binds("host", &none), None);
    }
}
