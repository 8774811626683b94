//! Converts a command in an image, with settings of an environment, to the equivalent command line of the engine's
//! client.
//!
//! An image's variables are differences that no setting names: only the search through a container's differences
//! finds them. Settings without a client flag give no command line.

use tare_model::{Params, Value};

use super::WHICH;

/// A command to run in an image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageCommand {
    /// The command and its arguments.
    pub argv: Vec<String>,
    /// Bind mounts, `path:path[:ro]`.
    pub binds: Vec<String>,
    /// Working directory, if any.
    pub directory: Option<String>,
    /// Requested variables, as `-e` takes them.
    pub variables: Vec<String>,
    /// Whether the host has the program too.
    pub is_on_host: bool,
}

/// Settings and their equivalent flags.
const FLAGS: [(&str, &str); 17] = [
    ("cpus", "--cpus"),
    ("cpuset", "--cpuset-cpus"),
    ("memory", "--memory"),
    ("shm", "--shm-size"),
    ("ulimits", "--ulimit"),
    ("cap_add", "--cap-add"),
    ("cap_drop", "--cap-drop"),
    ("privileged", "--privileged"),
    ("init", "--init"),
    ("runtime", "--runtime"),
    ("platform", "--platform"),
    ("binds", "--volume"),
    ("tmpfs", "--tmpfs"),
    ("log_driver", "--log-driver"),
    ("user", "--user"),
    ("network", "--network"),
    ("no_new_privileges", "--security-opt"),
];

/// Returns the flags for a setting; `None` if there is none.
fn flags(name: &str, settings: &Params) -> Option<Vec<String>> {
    let value = settings.value(name)?;
    let option = |name: &str| Some(vec!["--security-opt".to_owned(), format!("{name}={value}")]);
    match (name, value.to_string().as_str()) {
        ("seccomp" | "apparmor", "default") => return Some(Vec::new()),
        ("seccomp" | "apparmor", _) => return option(name),
        // A published port is reached from outside, which is another question.
        ("network", "published") => return None,
        _ => {}
    }
    let (_, flag) = FLAGS.iter().find(|(known, _)| *known == name)?;
    Some(match value {
        Value::Bool(false) => Vec::new(),
        Value::Bool(true) if name == "no_new_privileges" => {
            vec![(*flag).to_owned(), "no-new-privileges".to_owned()]
        }
        Value::Bool(true) => vec![(*flag).to_owned()],
        _ => {
            let words = settings.words(name).into_iter();
            words.flat_map(|word| [(*flag).to_owned(), word]).collect()
        }
    })
}

impl ImageCommand {
    /// Returns the command line if the image sets variables that may be relevant or the host lacks the program;
    /// `image_env` are the image's variables.
    pub(crate) fn line(
        &self,
        client: &str,
        settings: &Params,
        image_env: &[String],
    ) -> Option<Vec<String>> {
        let image = settings.text("image")?.to_owned();
        let matters = |text: &String| {
            super::variable(text, Some(String::new()), client, &self.argv).is_some()
        };
        if self.is_on_host && !image_env.iter().any(matters) {
            return None;
        }
        let mut line = [client, "run", "--rm", "--entrypoint", ""]
            .map(str::to_owned)
            .to_vec();
        let names = settings.0.keys().map(String::as_str);
        for name in names.filter(|name| *name != "image" && !WHICH.contains(name)) {
            line.extend(flags(name, settings)?);
        }
        for (flag, words) in [("--volume", &self.binds), ("--env", &self.variables)] {
            line.extend(
                words
                    .iter()
                    .flat_map(|word| [flag.to_owned(), word.clone()]),
            );
        }
        let directory = self.directory.iter().filter(|it| *it != "/");
        line.extend(directory.flat_map(|it| ["--workdir".to_owned(), it.clone()]));
        line.push(image);
        line.extend(self.argv.iter().cloned());
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(settings: &Params, image_env: &[&str], is_on_host: bool) -> Option<String> {
        let asked = ImageCommand {
            argv: vec!["work".to_owned(), "-n".to_owned()],
            binds: vec!["/w:/w".to_owned()],
            directory: Some("/w".to_owned()),
            variables: vec!["A=1".to_owned()],
            is_on_host,
        };
        let image_env: Vec<String> = image_env.iter().map(|it| (*it).to_owned()).collect();
        let words = asked.line("docker", settings, &image_env)?;
        Some(words.join(" "))
    }

    #[test]
    fn settings_become_the_flags_of_the_client() {
        let settings = Params::new()
            .with("image", "app")
            .with("context", "here")
            .with("cpus", 0.5)
            .with("init", true)
            .with("privileged", false)
            .with("no_new_privileges", true)
            .with("seccomp", "unconfined")
            .with("ulimits", "nofile=10:20,core=0");
        let expected = "docker run --rm --entrypoint  --cpus 0.5 --init --security-opt no-new-privileges \
                        --security-opt seccomp=unconfined --ulimit nofile=10:20 --ulimit core=0 --volume /w:/w \
                        --env A=1 --workdir /w app work -n";
        assert_eq!(
            line(&settings, &["LD_PRELOAD=/x"], true).as_deref(),
            Some(expected)
        );
        // A setting without a flag gives no command line.
        let served = settings.with("storage", "served");
        assert_eq!(line(&served, &["LD_PRELOAD=/x"], true), None);
    }

    #[test]
    fn image_is_a_line_only_if_it_adds_a_difference() {
        let settings = Params::new().with("image", "app");
        assert_eq!(
            line(&settings, &["PATH=/bin", "PYTHON_VERSION=3"], true),
            None
        );
        assert!(line(&settings, &["PATH=/bin"], false).is_some());
        assert!(line(&settings, &["GLIBC_TUNABLES=x"], true).is_some());
        assert_eq!(line(&Params::new(), &["GLIBC_TUNABLES=x"], true), None);
    }
}
