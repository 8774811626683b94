//! Where the engine listens: by the same rules and in the same order as the `docker` command.
//!
//! `DOCKER_HOST`, else `DOCKER_CONTEXT`, else `currentContext` of the client's configuration with the
//! context's own file, else the system's default socket or named pipe. Following the client matters: a user
//! who says `docker run` and a study that says `docker` must mean the same engine. TLS and ssh endpoints are
//! not spoken; the error says how to reach them over a socket instead.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::super::image::packed::hex;
use crate::cx::{files, vars};

use super::errors::printable;

/// Where an engine listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A unix socket, by path.
    Socket(String),
    /// A Windows named pipe, as `//./pipe/name`.
    Pipe(String),
    /// Plain HTTP, as `host:port`.
    Http(String),
}

/// Why there is no endpoint to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoEndpoint {
    pub(super) why: String,
    pub(super) fix: Option<String>,
}

/// The folder of the client's configuration.
fn client_folder() -> Option<PathBuf> {
    vars::text("DOCKER_CONFIG").map(PathBuf::from).or_else(|| {
        let home = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        vars::text(home).map(|home| PathBuf::from(home).join(".docker"))
    })
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => write!(out, "unix://{}", printable(path)),
            Self::Pipe(name) => write!(out, "npipe://{}", printable(name)),
            Self::Http(address) => write!(out, "tcp://{}", printable(address)),
        }
    }
}

impl Endpoint {
    /// The system's default.
    fn default_here() -> Self {
        if cfg!(windows) {
            Self::Pipe("//./pipe/docker_engine".into())
        } else {
            Self::Socket("/var/run/docker.sock".into())
        }
    }

    /// The endpoint that the `docker` command would use here.
    pub(super) fn resolve() -> Result<Self, NoEndpoint> {
        if let Some(host) = vars::text("DOCKER_HOST") {
            return Self::parse(&host, "DOCKER_HOST");
        }
        let Some(folder) = client_folder() else {
            return Ok(Self::default_here());
        };
        let context = vars::text("DOCKER_CONTEXT").or_else(|| {
            let config = files::read_text(&folder.join("config.json")).ok()?;
            let config: serde_json::Value = serde_json::from_str(&config).ok()?;
            Some(config.get("currentContext")?.as_str()?.to_owned())
        });
        match context {
            Some(name) if !name.is_empty() && name != "default" => Self::of_context(&folder, &name),
            _ => Ok(Self::default_here()),
        }
    }

    /// The endpoint of the context of this name.
    pub(super) fn named(name: &str) -> Result<Self, NoEndpoint> {
        match client_folder() {
            _ if name == "default" => Ok(Self::default_here()),
            Some(folder) => Self::of_context(&folder, name),
            None => Err(NoEndpoint {
                why: format!(
                    "there is no folder with docker contexts to look up `{}` in",
                    printable(name)
                ),
                fix: Some("set DOCKER_CONFIG to the folder of the client's configuration".into()),
            }),
        }
    }

    /// The endpoint of a context: `contexts/meta/<SHA-256 of its name>/meta.json` below the folder.
    fn of_context(folder: &std::path::Path, name: &str) -> Result<Self, NoEndpoint> {
        let digest = hex(&Sha256::digest(name.as_bytes()));
        let path = folder.join("contexts/meta").join(digest).join("meta.json");
        let no_context = |why: String| NoEndpoint {
            why,
            fix: Some(
                "`docker context ls` lists contexts; `docker context use default` leaves this one"
                    .into(),
            ),
        };
        let text = files::read_text(&path).map_err(|error| {
            no_context(format!(
                "the docker context `{}` has no file: {error}",
                printable(name)
            ))
        })?;
        let host = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|meta| {
                let host = meta.pointer("/Endpoints/docker/Host")?;
                Some(host.as_str()?.to_owned())
            });
        match host {
            Some(host) if !host.is_empty() => {
                Self::parse(&host, &format!("the docker context `{}`", printable(name)))
            }
            _ => Err(no_context(format!(
                "the docker context `{}` names no engine in `{}`",
                printable(name),
                path.display()
            ))),
        }
    }

    /// Reads `unix://`, `npipe://` or `tcp://`; `source` says where the text stood.
    pub(super) fn parse(host: &str, source: &str) -> Result<Self, NoEndpoint> {
        let refuse = |why: &str, fix: &str| {
            Err(NoEndpoint {
                why: format!("{source} names `{}`, {why}", printable(host)),
                fix: Some(fix.to_owned()),
            })
        };
        let Some((scheme, rest)) = host.split_once("://") else {
            return refuse(
                "which has no scheme",
                "write it as unix:///path/to/docker.sock",
            );
        };
        if rest.is_empty() || rest.chars().any(char::is_control) {
            return refuse(
                "which is no address",
                "write it as unix:///path/to/docker.sock",
            );
        }
        match scheme {
            "unix" if cfg!(unix) => Ok(Self::Socket(rest.to_owned())),
            "npipe" if cfg!(windows) => Ok(Self::Pipe(rest.replace('\\', "/"))),
            "unix" | "npipe" => refuse(
                "which this system cannot open",
                "unset it to use the default engine",
            ),
            "tcp" | "http" if vars::text("DOCKER_TLS_VERIFY").is_none() => {
                let address = rest.trim_end_matches('/');
                let is_plain = address
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
                if is_plain {
                    Ok(Self::Http(address.to_owned()))
                } else {
                    refuse("which is no address", "write it as tcp://host:2375")
                }
            }
            "ssh" => refuse(
                "and Tare does not speak to an engine over ssh",
                "forward its socket: `ssh -nNT -L /tmp/engine.sock:/var/run/docker.sock HOST`, \
                 then DOCKER_HOST=unix:///tmp/engine.sock; or run Tare there",
            ),
            "tcp" | "http" | "https" => refuse(
                "and Tare does not speak TLS to an engine",
                "run Tare on that machine, or forward the engine's socket with ssh",
            ),
            _ => refuse(
                "whose scheme is not known",
                "use unix:///path/to/docker.sock",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_context_is_found_by_the_hash_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        // SHA-256 of "tare-test", as `docker context create tare-test` names its folder.
        let hash = hex(&Sha256::digest(b"tare-test"));
        let meta = folder.path().join("contexts/meta").join(hash);
        files::create_folder(&meta).unwrap();
        let text = r#"{"Name":"tare-test","Endpoints":{"docker":{"Host":"unix:///run/x.sock"}}}"#;
        files::write(&meta.join("meta.json"), text.as_bytes()).unwrap();
        assert_eq!(
            Endpoint::of_context(folder.path(), "tare-test"),
            Ok(Endpoint::Socket("/run/x.sock".into()))
        );
        let missing = Endpoint::of_context(folder.path(), "other").unwrap_err();
        assert!(missing.why.contains("`other`"), "{}", missing.why);
    }

    #[test]
    fn what_is_not_spoken_is_said_with_a_way_round() {
        let error = Endpoint::parse("ssh://me@there", "DOCKER_HOST").unwrap_err();
        assert!(error.why.contains("ssh") && error.fix.unwrap().contains("-L"));
        let error = Endpoint::parse("https://there:2376", "DOCKER_HOST").unwrap_err();
        assert!(error.why.contains("TLS"));
        for text in [
            "",
            "docker.sock",
            "unix://",
            "fd://",
            "tcp://a/../b",
            "unix:///a\nb",
        ] {
            let error = Endpoint::parse(text, "DOCKER_HOST").unwrap_err();
            assert!(!error.why.contains('\n'), "{text:?}");
        }
    }

    #[test]
    fn a_plain_address_is_taken() {
        assert_eq!(
            Endpoint::parse("tcp://localhost:2375", "DOCKER_HOST"),
            Ok(Endpoint::Http("localhost:2375".into()))
        );
    }
}
