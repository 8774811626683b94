//! What an arm of a study is like, as its settings say: a container that is there, a line that would make one, or a
//! service of a compose file.
//!
//! Settings are stored with the study and told in its reports, so a line that holds somebody's key is refused.
//! What it cannot see: what a client makes of the line; that is asked of the client itself.
//! This file is no driver; drivers use it.

use super::{Source, is_line_for};
use crate::env::reader::Reader;
use crate::env::setting::Setting;

pub(crate) use tare_core::driver::own::{COMPOSE, RUN};

/// The setting by which an arm joins the networks, sockets and named pipes of what it is like.
pub(crate) const JOIN: &str = "join_networks";

/// What is wrong with settings of an arm that is like a container, of which these say what it does without, what it joins
/// and the line.
pub(crate) fn contradictions(
    read: &Reader<'_>,
    like: Option<&Like>,
    [without, joins, line]: [Setting; 3],
) -> [(bool, Setting, (&'static str, &'static str)); 3] {
    const ALONE: (&str, &str) = (
        "`SELF` has no effect without a container that the arm is like",
        "add `like` or `run`, or leave it out",
    );
    let is_alone = |row: &Setting| like.is_none() && read.is_said(row);
    [
        (is_alone(&without), without, ALONE),
        (is_alone(&joins), joins, ALONE),
        (like.is_some_and(Like::tells_a_secret), line, TELLS_A_SECRET),
    ]
}

/// Why a line that holds a key is refused, and what helps.
const TELLS_A_SECRET: (&str, &str) = (
    "`SELF` gives a variable a text that seems secret, and settings are stored and shown with their study",
    "`-e NAME` without a text takes it from where Tare is started; `--env-file` from a file",
);

/// What an arm is like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Like {
    /// A container by its name, or the file in which one is kept.
    Container(String),
    /// A line for an engine's client, by its words.
    Line(Vec<String>),
    /// A service of a compose file.
    Service { file: String, service: String },
}

impl Like {
    /// What the settings say, each of which is none or of the form that its check asks for.
    pub(crate) fn read(
        read: &Reader<'_>,
        container: &Setting,
        line: &Setting,
        service: Option<&Setting>,
    ) -> Option<Self> {
        let of_service = |text: &str| {
            let [file, service] = <[String; 2]>::try_from(words(text)).ok()?;
            Some(Self::Service { file, service })
        };
        let container = read.owned(container).map(Self::Container);
        let of_line = || read.text(line).map(|text| Self::Line(words(text)));
        let service = || service.and_then(|row| read.text(row)).and_then(of_service);
        container.or_else(of_line).or_else(service)
    }

    /// Whether it is a file of the run's own, in which a container is kept with what its copies reach.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Self::Container(name) if name.starts_with('/'))
    }

    /// Where that is.
    pub(crate) fn source(&self) -> Source<'_> {
        match self {
            Self::Container(name) => Source::Container(name),
            Self::Line(words) => Source::Line(words),
            Self::Service { file, service } => Source::Service { file, service },
        }
    }

    /// Whether it gives a variable a text that nobody else should read, by the variable's name.
    pub(crate) fn tells_a_secret(&self) -> bool {
        /// What names of such variables have in them.
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

/// The words of a line as a shell would read them, without anything that a shell would put in their place.
fn words(text: &str) -> Vec<String> {
    shlex::split(text).unwrap_or_default()
}

/// Whether it is a line by which this client makes a container.
pub(crate) fn is_line(client: &str, text: &str) -> bool {
    let words = words(text);
    is_line_for(client, &words) && !text.chars().any(char::is_control)
}

/// Whether it is a file and a service.
pub(crate) fn is_service(text: &str) -> bool {
    words(text).len() == 2 && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_a_shell_reads_words_and_nothing_is_put_in_their_place() {
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
        assert!(is_service("compose.yml web") && !is_service("compose.yml"));
    }

    #[test]
    fn a_variable_with_a_key_is_noticed_however_it_is_given() {
        let tells = |text: &str| Like::Line(words(text)).tells_a_secret();
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
        assert!(!Like::Container("web".into()).tells_a_secret());
    }
}
