//! Parses a command line that creates a container, by podman's rules.
//!
//! The help of the installed podman lists the flags and which of them take a value, so no list in Tare has to be kept
//! up to date. Everything after the image belongs to the command.
//! Pure: takes the help and the words.
//! Limits: the effect of a flag is unknown here; a container is created from the line and inspected to find out.

use crate::env::prelude::*;

/// The flags of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// Key: name or letter. Value: the long name, and whether the flag takes a value.
    known: BTreeMap<String, (String, bool)>,
}

impl Flags {
    /// Parses a command's help: `-c, --cpu-shares uint   CPU shares`, or `--init   Run an init`.
    pub(super) fn of_help(help: &str) -> Self {
        let mut known = BTreeMap::new();
        for line in help.lines() {
            let line = line.trim_start();
            if !line.starts_with('-') {
                continue;
            }
            // The description follows after several spaces.
            let shown = line.split("  ").next().unwrap_or_default();
            let mut words = shown.split(' ').filter(|word| !word.is_empty());
            let mut names = Vec::new();
            let mut takes_text = false;
            for word in &mut words {
                match word.trim_end_matches(',').strip_prefix('-') {
                    Some(name) => names.push(name.trim_start_matches('-').to_owned()),
                    None => takes_text = true,
                }
            }
            if let Some(long) = names.last().cloned() {
                for name in names {
                    known.insert(name, (long.clone(), takes_text));
                }
            }
        }
        Self { known }
    }

    fn lookup(&self, name: &str) -> Result<(String, bool), String> {
        self.known
            .get(name)
            .cloned()
            .ok_or_else(|| format!("podman has no flag `{}`", printable(name)))
    }
}

/// A flag of a line with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unit {
    /// Long name, without dashes.
    pub(super) flag: String,
    /// Value, if any.
    pub(super) text: Option<String>,
}

impl Unit {
    pub(super) fn new(flag: &str, text: impl Into<String>) -> Self {
        Self {
            flag: flag.to_owned(),
            text: Some(text.into()),
        }
    }

    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Formats it as one argument for podman.
    pub(super) fn word(&self) -> String {
        match &self.text {
            Some(text) => format!("--{}={text}", self.flag),
            None => format!("--{}", self.flag),
        }
    }
}

/// A parsed command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The OCI runtime that is named before the verb, if any.
    pub(super) runtime: Option<String>,
    pub(super) units: Vec<Unit>,
    pub(super) image: String,
    pub(super) command: Vec<String>,
}

/// Returns the position of `run` or `create`, after podman's global flags.
pub(crate) fn verb(words: &[String]) -> Option<usize> {
    let mut place = 1;
    let mut may_be_text = false;
    loop {
        let word = words.get(place)?.as_str();
        match word {
            "run" | "create" => return Some(place),
            "container" if !may_be_text => may_be_text = false,
            _ if word.starts_with('-') => may_be_text = !word.contains('='),
            _ if may_be_text => may_be_text = false,
            _ => return None,
        }
        place += 1;
    }
}

/// Parses a line.
///
/// # Errors
/// A word that is no flag of podman's, or a missing word.
pub(super) fn line(words: &[String], flags: &Flags) -> Result<Line, String> {
    let verb = verb(words).ok_or("this is no `podman run` line")?;
    let mut line = Line {
        runtime: runtime(&words[1..verb])?,
        ..Line::default()
    };
    let mut rest = words[verb + 1..].iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            line.image = rest.next().cloned().unwrap_or_default();
            break;
        }
        let mut next = || {
            let text = rest.next().cloned();
            text.ok_or_else(|| format!("`{}` wants a text", printable(word)))
        };
        if let Some(long) = word.strip_prefix("--") {
            let (name, given) = match long.split_once('=') {
                Some((name, text)) => (name, Some(text.to_owned())),
                None => (long, None),
            };
            let (flag, takes_text) = flags.lookup(name)?;
            let text = match given {
                None if takes_text => Some(next()?),
                given => given,
            };
            line.units.push(Unit { flag, text });
        } else if let Some(letters) = word.strip_prefix('-').filter(|it| !it.is_empty()) {
            let mut left = letters;
            while let Some(letter) = left.chars().next() {
                left = &left[letter.len_utf8()..];
                let (flag, takes_text) = flags.lookup(&letter.to_string())?;
                if !takes_text {
                    line.units.push(Unit { flag, text: None });
                    continue;
                }
                let text = if left.is_empty() {
                    next()?
                } else {
                    left.strip_prefix('=').unwrap_or(left).to_owned()
                };
                left = "";
                line.units.push(Unit::new(&flag, text));
            }
        } else {
            line.image.clone_from(word);
            break;
        }
    }
    if line.image.is_empty() {
        return Err("the line names no image".to_owned());
    }
    line.command = rest.cloned().collect();
    Ok(line)
}

/// Returns the runtime from the flags before the verb; other flags there are an error, because they select another
/// podman.
fn runtime(words: &[String]) -> Result<Option<String>, String> {
    let mut found = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, given) = match word.split_once('=') {
            Some((name, text)) => (name, Some(text.to_owned())),
            None => (word.as_str(), None),
        };
        match name {
            "container" => {}
            "--runtime" => found = given.or_else(|| words.next().cloned()),
            "--log-level" => {
                given.or_else(|| words.next().cloned());
            }
            _ => {
                return Err(format!(
                    "`{}` before `run` leads to another podman than the one that is asked here",
                    printable(name)
                ));
            }
        }
    }
    Ok(found)
}

/// Parses `type=bind,src=/a,dst=/b,ro`.
pub(super) fn mount(text: &str) -> Value {
    let of = |names: &[&str]| {
        let mut parts = text.split(',');
        parts.find_map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, "true"));
            names.contains(&name).then(|| value.to_owned())
        })
    };
    let is_read_only = of(&["ro", "readonly"]).is_some_and(|value| value == "true");
    json!({
        "Text": text, "Type": of(&["type"]).unwrap_or_else(|| "volume".to_owned()),
        "Source": of(&["source", "src"]).unwrap_or_default(),
        "Target": of(&["target", "dst", "destination"]).unwrap_or_default(),
        "ReadOnly": is_read_only, "WasReadOnly": is_read_only,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Run a command in a new container

Examples:
  podman run --rm alpine ls

Options:
      --add-host strings      Add a custom host-to-IP mapping (host:ip) (default [])
  -c, --cpu-shares uint       CPU shares (relative weight)
  -d, --detach                Run container in background and print container ID
  -e, --env stringArray       Set environment variables in container
      --init                  Run an init binary inside the container
  -i, --interactive           Make STDIN available
  -t, --tty                   Allocate a pseudo-TTY for container
  -v, --volume stringArray    Bind mount a volume into the container
";

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn parse(text: &str) -> Result<Line, String> {
        line(&words(text), &Flags::of_help(HELP))
    }

    #[test]
    fn podman_line_is_parsed_as_help_describes() {
        let line = parse("podman --runtime runc run -itd -c 2 --init -e=A=1 -eB=2 --env C=3 --cpu-shares=5 img:1 sh -c 2 --init")
            .unwrap();
        let shown: Vec<String> = line.units.iter().map(Unit::word).collect();
        assert_eq!(
            shown.join(" "),
            "--interactive --tty --detach --cpu-shares=2 --init --env=A=1 --env=B=2 --env=C=3 --cpu-shares=5"
        );
        assert_eq!(line.runtime.as_deref(), Some("runc"));
        assert_eq!(
            (line.image.as_str(), line.command.join(" ").as_str()),
            ("img:1", "sh -c 2 --init")
        );
        assert_eq!(parse("podman run -- img").unwrap().image, "img");
    }

    #[test]
    fn invalid_podman_line_is_an_error_with_reason() {
        for (text, said) in [
            ("podman run --no-such x", "no flag `no-such`"),
            ("podman run -z x", "no flag `z`"),
            ("podman run --init", "names no image"),
            ("podman run --env", "wants a text"),
            ("podman --root /x run x", "`--root`"),
            ("podman ps", "no `podman run` line"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!(verb(&words("podman container run x")), Some(2));
        assert_eq!(verb(&words("podman --runtime=runc create x")), Some(2));
        assert_eq!(verb(&words("podman exec x run")), None);
    }
}
