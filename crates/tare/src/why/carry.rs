//! How a command is carried into an environment: as people do it with `docker run -v`, and said plainly.
//!
//! The working directory is shown inside under the same path and may be written to, and so is every file that
//! the command names. The program is the host's own: where the environment has a root of its own, the host's
//! userland (`/usr`, `/lib`, `/etc`, …) is shown in it read-only, which also serves interpreters that open
//! their libraries by name; so the same bytes run outside and inside, and the program's own text is not on the
//! environment's storage. Variables are a list of harmless ones and those that are asked for, the same on both
//! sides, because a store is no place for somebody's keys.
//! With an image of the user's own the program is the image's, found there by its name.
//! What it cannot see: files that the command opens without naming them, outside of its working directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tare_model::{CommandCall, Params, Value};

use super::Trouble;
use crate::cause::switch::target;
use crate::cx::{files, vars};
use crate::env::{Driver, Files, private};

/// The host's userland.
const USERLAND: [&str; 9] = [
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt",
];

/// How a program comes to its libraries where the root is another one.
const USERLAND_SHOWN: &str =
    "with the host's userland shown read-only inside, without its password files and keys";

/// Variables that are passed; one that ends in `*` stands for all that begin so.
const HARMLESS: [&str; 28] = tare_model::rows! {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TMPDIR", "PYTHON*",
    "VIRTUAL_ENV", "PYENV_*", "LD_LIBRARY_PATH", "OMP_*", "OPENBLAS_*", "MKL_*", "NUMEXPR_*", "RAYON_*",
    "GOMAXPROCS", "GOGC", "JAVA_HOME", "JAVA_OPTS", "RUBYOPT", "PERL5LIB", "MALLOC_*", "GLIBC_TUNABLES",
};

/// Parts of a name that say that the text is nobody's business.
const SECRET: [&str; 6] = ["TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH"];

/// What is asked for, as the command line says it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    /// The command.
    pub argv: Vec<String>,
    /// Further variables, `NAME` or `NAME=text`.
    pub variables: Vec<String>,
    /// A file that holds the standard input for every run.
    pub stdin_file: Option<PathBuf>,
    /// Whether an environment's own image holds the program.
    pub has_own_image: bool,
    /// Whether a folder is shown inside although a home, or Tare's own files, lie in it.
    pub shows_private: bool,
    /// A folder with nothing in it, which covers private ones.
    pub empty: PathBuf,
    /// Where it is started, if not in the working directory.
    pub directory: Option<String>,
}

/// A command, ready to be run anywhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Carried {
    /// What is run.
    pub call: CommandCall,
    /// What must be shown inside an environment whose root is its own, `path:path[:ro]`.
    pub userland: Vec<String>,
    /// What must be shown inside any environment.
    pub own: Vec<String>,
    /// What would have to be shown inside for the host's own program, where an image brings another.
    pub instead: Vec<String>,
    /// What was done, a line each.
    pub notes: Vec<String>,
    /// Whether only the image can have the program.
    pub is_missing: bool,
}

/// Finds out how a command is to be carried.
///
/// # Errors
/// The program is not there, or a path cannot be shown elsewhere.
pub fn carried(wish: &Wish) -> Result<Carried, Trouble> {
    let Some(name) = wish.argv.first().filter(|name| !name.is_empty()) else {
        return Err(Trouble::Nothing);
    };
    let directory = match &wish.directory {
        Some(directory) => directory.clone(),
        None => vars::directory().ok_or(Trouble::NoDirectory)?,
    };
    let mut carried = Carried::default();
    let mut shown = Shown::default();
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
        (Some(path), true) => beside_an_image(path, wish, &mut carried)?,
    }
    show_directory(&directory, &mut shown, &mut carried.notes);
    for argument in &wish.argv[1..] {
        show_argument(argument, &directory, &mut shown, &mut carried.notes);
    }
    if !wish.shows_private {
        shown.check_nothing_private()?;
    }
    // It lies where Tare keeps its files, and is meant for the command.
    if let Some(file) = &wish.stdin_file {
        shown.add(file, true);
        carried
            .notes
            .push("standard input: kept in a file and given to every run".to_owned());
    }
    carried.own = shown.binds()?;
    let (mut variables, note) = variables(&wish.variables, &vars::all())?;
    if wish.has_own_image {
        // An image has a search path of its own, and variables that its programs need.
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

/// With an image of the user's own its program is what runs; what the host's would need is noted, unless that lies in
/// a home.
fn beside_an_image(path: &Path, wish: &Wish, carried: &mut Carried) -> Result<(), Trouble> {
    carried.notes.push(format!(
        "program: on the host `{}`; inside, what the image has under `{}`",
        path.display(),
        wish.argv[0]
    ));
    let mut shown = Shown::default();
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

/// The settings of an environment with what has to be shown in it.
pub fn with_binds(driver: &dyn Driver, settings: &Params, carried: &Carried) -> Params {
    let can = driver.settings().iter().any(|spec| spec.name == "binds");
    if !can {
        return settings.clone();
    }
    let has_own_root = driver.declared().files != Files::Hosts && settings.value("image").is_none();
    let mut binds = settings.words("binds");
    let taken: Vec<String> = binds
        .iter()
        .filter_map(|bind| target(bind).map(str::to_owned))
        .collect();
    // Docker's init lies in `/sbin`, which the host's would hide.
    let has_init = settings.value("init") == Some(&Value::Bool(true));
    let userland = carried
        .userland
        .iter()
        .filter(|bind| has_own_root && !(has_init && bind.starts_with("/sbin:")));
    let more = userland.chain(&carried.own);
    for bind in more {
        // What the user shows at a place himself is shown there.
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

/// How the command is carried into this environment, a line each: where nothing can be shown inside, what is
/// there instead is told as plainly as what is shown elsewhere.
pub fn described(driver: &dyn Driver, carried: &Carried) -> Vec<String> {
    let id = driver.id();
    if driver.settings().iter().any(|spec| spec.name == "binds") {
        let mut notes = carried.notes.clone();
        if driver.declared().files == Files::Hosts {
            // Nothing has to be shown there: its root is made of the host's files.
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

/// Whether a line of [`Carried::told`] speaks of files.
fn is_about_files(line: &str) -> bool {
    !line.starts_with("variables: ")
}

/// The trouble that this machine has no such program.
pub fn not_here(name: &str) -> Trouble {
    Trouble::NotHere {
        program: name.escape_debug().to_string(),
    }
}

/// The userland's folders, and what is private in them covered: files by the null device, folders that cannot be
/// looked into by one with nothing in it.
fn userland(empty: &Path) -> Result<Vec<String>, Trouble> {
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

/// A path as a bind writes it down.
fn plain(path: &Path) -> Result<String, Trouble> {
    let text = path.display().to_string();
    if text.contains([':', ',']) || text.chars().any(char::is_control) {
        return Err(Trouble::OddPath {
            path: text.escape_debug().to_string(),
        });
    }
    Ok(text)
}

/// Whether a path is one of the host's userland, which is the same bytes everywhere.
pub(super) fn is_in_userland(path: &Path) -> bool {
    USERLAND.iter().any(|folder| path.starts_with(folder))
}

/// Shows what a program outside of the userland needs: the folder that it was installed into, also that of the
/// file which a link leads to, and of the interpreter that a script names.
fn show_program(path: &Path, shown: &mut Shown) {
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

/// The folder above `bin` that a program was installed into; its own folder where that would be a user's home or
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

fn show_directory(directory: &str, shown: &mut Shown, notes: &mut Vec<String>) {
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

/// Shows a file or folder that an argument names, whole or behind a `=`.
fn show_argument(argument: &str, directory: &str, shown: &mut Shown, notes: &mut Vec<String>) {
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

/// What is shown inside, each under its own path.
#[derive(Debug, Default)]
struct Shown(BTreeMap<PathBuf, bool>);

impl Shown {
    fn covers(&self, path: &Path) -> bool {
        self.0.keys().any(|shown| path.starts_with(shown))
    }

    /// Adds a path; what may be written to by one wish may be written to.
    fn add(&mut self, path: &Path, read_only: bool) {
        let entry = self.0.entry(path.to_owned()).or_insert(read_only);
        *entry &= read_only;
    }

    /// Refuses what is, or holds, a home, and what has to do with Tare's own files: the environment could read and
    /// change them.
    fn check_nothing_private(&self) -> Result<(), Trouble> {
        let found = self
            .0
            .keys()
            .find_map(|path| private::inside_of(path).map(|place| (path, place)));
        found.map_or(Ok(()), |(path, place)| {
            Err(Trouble::Private {
                path: path.display().to_string().escape_debug().to_string(),
                place: place.display().to_string().escape_debug().to_string(),
            })
        })
    }

    fn binds(&self) -> Result<Vec<String>, Trouble> {
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

/// The variables that are passed, and a line that says which.
fn variables(
    wanted: &[String],
    all: &[(String, String)],
) -> Result<(BTreeMap<String, String>, String), Trouble> {
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
            return Err(Trouble::NoVariable {
                name: name.escape_debug().to_string(),
            });
        };
        passed.insert(name.to_owned(), text);
    }
    // The value of the own run: it is the label of what is started.
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
    fn what_is_not_carried_is_told_where_nothing_can_be_shown() {
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
    fn only_harmless_variables_and_those_asked_for_are_passed() {
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
    fn what_is_written_to_by_one_wish_is_not_read_only_by_another() {
        let mut shown = Shown::default();
        shown.add(Path::new("/w"), true);
        shown.add(Path::new("/w"), false);
        shown.add(Path::new("/r"), true);
        assert_eq!(shown.binds().unwrap(), ["/r:/r:ro", "/w:/w"]);
        assert!(shown.covers(Path::new("/w/x")) && !shown.covers(Path::new("/wx")));
        shown.add(Path::new("/a:b"), true);
        assert!(shown.binds().is_err());
    }

    #[test]
    fn the_hosts_userland_is_shown_only_where_the_root_is_another() {
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
