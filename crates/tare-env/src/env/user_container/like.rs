//! What an arm of a study is like, according to its settings: an existing container, a command line that would create
//! one, or a service of a compose file.
//!
//! Settings are stored with the study and shown in its reports, so a line with a secret is refused.
//! Limits: only the client itself knows what a line means, so it is asked.

use super::{Source, is_line_for};
use crate::env::reader::Reader;
use crate::env::setting::Setting;

pub(crate) use tare_core::driver::user_container::{COMPOSE, RUN};

/// The setting by which an arm joins the networks, sockets and named pipes of the container that it is like.
pub(crate) const JOIN: &str = "join_networks";

/// Checks the settings of an arm that is like a container for contradictions; the three rows are what it does
/// without, what it joins, and the line.
pub(crate) fn contradictions(
    read: &Reader<'_>,
    like: Option<&Like>,
    [without, joins, line]: [Setting; 3],
) -> [(bool, Setting, (&'static str, &'static str)); 3] {
    const ALONE: (&str, &str) = (
        "`SELF` has no effect without a container that the arm is like",
        "add `like` or `run`, or leave it out",
    );
    let is_alone = |row: &Setting| like.is_none() && read.is_given(row);
    [
        (is_alone(&without), without, ALONE),
        (is_alone(&joins), joins, ALONE),
        (like.is_some_and(Like::reveals_secret), line, TELLS_A_SECRET),
    ]
}

/// Why a line with a secret is refused, and the hint.
const TELLS_A_SECRET: (&str, &str) = (
    "`SELF` gives a variable a text that seems secret, and settings are stored and shown with their study",
    "`-e NAME` without a text takes it from where Tare is started; `--env-file` from a file",
);

/// What an arm is like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Like {
    /// A container by its name, or the file in which its description is kept.
    Container(String),
    /// The words of a command line of an engine's client.
    Line(Vec<String>),
    /// Services of a compose file, at least one: the arm's first instance is like the first, and so on.
    Services { file: String, services: Vec<String> },
}

impl Like {
    /// Reads the settings; each is absent or has passed its check.
    pub(crate) fn read(
        read: &Reader<'_>,
        container: &Setting,
        line: &Setting,
        service: Option<&Setting>,
    ) -> Option<Self> {
        let of_service = |text: &str| {
            let mut words = words(text).into_iter();
            let file = words.next()?;
            let services = words.collect();
            Some(Self::Services { file, services })
        };
        let container = read.owned(container).map(Self::Container);
        let of_line = || read.text(line).map(|text| Self::Line(words(text)));
        let service = || service.and_then(|row| read.text(row)).and_then(of_service);
        container.or_else(of_line).or_else(service)
    }

    /// Whether it is a file of the run, which holds a container's description and what its copies reach.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Self::Container(name) if name.starts_with('/'))
    }

    /// Returns the sources of the containers that the arm's instances are like in turn; with one, all are like it.
    pub(crate) fn sources(&self) -> Vec<Source<'_>> {
        match self {
            Self::Container(name) => vec![Source::Container(name)],
            Self::Line(words) => vec![Source::Line(words)],
            Self::Services { file, services } => {
                let source = |service| Source::Service { file, service };
                services.iter().map(|service| source(service)).collect()
            }
        }
    }

    /// Whether it sets a variable to a secret, judging by the variable's name.
    pub(crate) fn reveals_secret(&self) -> bool {
        /// Parts of the names of such variables.
        const SECRET: [&str; 6] = ["PASS", "SECRET", "TOKEN", "KEY", "CREDENTIAL", "AUTH"];
        let Self::Line(words) = self else {
            return false;
        };
        let is_flag = |word: &str| matches!(word, "-e" | "--env");
        let mut before = "";
        words.iter().any(|word| {
            let given = if is_flag(before) {
                Some(word.as_str())
            } else {
                let joined = word.strip_prefix("--env=");
                joined.or_else(|| word.strip_prefix("-e").filter(|rest| !rest.is_empty()))
            };
            before = word;
            let name = given
                .and_then(|text| text.split_once('='))
                .map(|(name, _)| name);
            name.is_some_and(|name| {
                let name = name.to_uppercase();
                SECRET.iter().any(|part| name.contains(part))
            })
        })
    }
}

/// Splits a line into words as a shell would, without any expansion.
fn words(text: &str) -> Vec<String> {
    shlex::split(text).unwrap_or_default()
}

/// Whether it is a line by which this client creates a container.
pub(crate) fn is_line(client: &str, text: &str) -> bool {
    let words = words(text);
    is_line_for(client, &words) && !text.chars().any(char::is_control)
}

/// Whether it is a file and at least one service.
pub(crate) fn is_file_with_services(text: &str) -> bool {
    words(text).len() >= 2 && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_split_like_a_shell_without_expansion() {
        assert!(is_line(
            "docker",
            "docker run -e 'A=b c' image sh -c \"x $Y\""
        ));
        assert_eq!(words("docker run 'b c' $Y"), ["docker", "run", "b c", "$Y"]);
        for text in [
            "docker ps",
            "podman run x",
            "docker run 'x",
            "",
            "docker run x\n",
        ] {
            assert!(!is_line("docker", text), "{text}");
        }
        let services = is_file_with_services;
        assert!(services("compose.yml web") && services("a.yml one two") && !services("a.yml"));
    }

    #[test]
    fn secret_variable_is_detected_in_any_flag_form() {
        let tells = |text: &str| Like::Line(words(text)).reveals_secret();
        for flag in [
            "-e DB_PASSWORD=x",
            "--env=API_KEY=x",
            "-eauth_token=x",
            "--env MY_SECRET=x",
        ] {
            assert!(tells(&format!("docker run {flag} image")), "{flag}");
        }
        for flag in ["-e DB_PASSWORD", "-e MODE=1", "--env-file keys"] {
            assert!(!tells(&format!("docker run {flag} image")), "{flag}");
        }
        assert!(!Like::Container("web".into()).reveals_secret());
    }
}
