//! Finds where the engine listens, by the same rules and in the same order as the `docker` command.
//!
//! `DOCKER_HOST`, else `DOCKER_CONTEXT`, else `currentContext` of the client's configuration with the context's file,
//! else the system's default socket or named pipe. A user's `docker run` and a study's `docker` must mean the same
//! engine. An engine behind ssh is reached as the client does it, by `docker system dial-stdio` on the other machine;
//! one behind TLS through the client itself, which has the certificates. Neither prompts: a password ends the
//! attempt.

use crate::env::prelude::*;

use sha2::{Digest, Sha256};

use super::super::image::packed::hex;

/// The address of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A unix socket, by path.
    Socket(String),
    /// A Windows named pipe, as `//./pipe/name`.
    Pipe(String),
    /// Plain HTTP, as `host:port`.
    Http(String),
    /// Through a program's standard streams.
    Relayed {
        /// The program with its arguments.
        command: CommandLine,
        /// The address as the user named it, for messages.
        shown: String,
    },
}

/// How long an engine on another machine may take to answer: each request opens a new connection.
const RELAYED_LIMIT: Duration = Duration::from_secs(20);
/// Connect timeout of ssh, seconds.
const SSH_CONNECT_LIMIT: &str = "10";

/// The folder of the client's configuration.
fn client_folder() -> Option<PathBuf> {
    let given = vars::text("DOCKER_CONFIG").map(PathBuf::from);
    given.or_else(|| vars::home().map(|home| home.join(".docker")))
}

/// The name of an engine, enough to find it again from another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EngineName {
    /// A value of `DOCKER_HOST`.
    Host(String),
    /// A context of the client.
    Context(String),
}

impl EngineName {
    /// The engine that the `docker` command would use here.
    pub(super) fn usual() -> Self {
        if let Some(host) = vars::text("DOCKER_HOST") {
            return Self::Host(host);
        }
        let current = || {
            let config = files::read_text(&client_folder()?.join("config.json")).ok()?;
            let config: Value = serde_json::from_str(&config).ok()?;
            let name = config.get("currentContext")?.as_str()?.to_owned();
            Some(name).filter(|name| !name.is_empty())
        };
        let context = vars::text("DOCKER_CONTEXT").or_else(current);
        Self::Context(context.unwrap_or_else(|| "default".to_owned()))
    }

    /// The address behind a context, as a value of `DOCKER_HOST`; `None` if the name is an address or the default
    /// context.
    pub(super) fn context_address(&self) -> Option<String> {
        match self {
            Self::Context(name) if name != "default" => {
                Some(Endpoint::resolve(self).ok()?.to_string())
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for EngineName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(host) => write!(out, "at `{}`", printable(host)),
            Self::Context(name) if name == "default" => write!(out, "on this machine"),
            Self::Context(name) => write!(out, "of the docker context `{}`", printable(name)),
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => write!(out, "unix://{}", printable(path)),
            Self::Pipe(name) => write!(out, "npipe://{}", printable(name)),
            Self::Http(address) => write!(out, "tcp://{}", printable(address)),
            Self::Relayed { shown, .. } => write!(out, "{}", printable(shown)),
        }
    }
}

impl Endpoint {
    /// Time limit for its first answer.
    pub(super) fn patience(&self) -> Duration {
        match self {
            Self::Relayed { .. } => RELAYED_LIMIT,
            _ => super::DETECT_LIMIT,
        }
    }

    /// The system's default endpoint.
    fn default_here() -> Self {
        if cfg!(windows) {
            Self::Pipe("//./pipe/docker_engine".into())
        } else {
            Self::Socket("/var/run/docker.sock".into())
        }
    }

    /// The endpoint of a named engine.
    pub(super) fn resolve(name: &EngineName) -> Result<Self, EnvError> {
        match name {
            EngineName::Host(host) => Self::parse(host, "DOCKER_HOST"),
            EngineName::Context(context) => Self::named(context),
        }
    }

    /// The endpoint of a context.
    fn named(name: &str) -> Result<Self, EnvError> {
        match client_folder() {
            _ if name == "default" => Ok(Self::default_here()),
            Some(folder) => Self::of_context(&folder, name),
            None => Err(EnvError::absent(
                format!(
                    "there is no folder with docker contexts to look up `{}` in",
                    printable(name)
                ),
                "set DOCKER_CONFIG to the folder of the client's configuration",
            )),
        }
    }

    /// Reads a context's endpoint from `contexts/meta/<SHA-256 of its name>/meta.json` below `folder`.
    fn of_context(folder: &std::path::Path, name: &str) -> Result<Self, EnvError> {
        let digest = hex(&Sha256::digest(name.as_bytes()));
        let path = folder.join("contexts/meta").join(&digest).join("meta.json");
        let no_context = |why: String| {
            EnvError::absent(
                why,
                "`docker context ls` lists contexts; `docker context use default` leaves this one",
            )
        };
        let text = files::read_text(&path).map_err(|error| {
            no_context(format!(
                "the docker context `{}` has no file: {error}",
                printable(name)
            ))
        })?;
        let meta = serde_json::from_str::<Value>(&text).unwrap_or_default();
        let host = meta.pointer("/Endpoints/docker/Host");
        let host = host.and_then(|host| Some(host.as_str()?.to_owned()));
        let skips_check =
            meta.pointer("/Endpoints/docker/SkipTLSVerify") == Some(&Value::Bool(true));
        let tls = folder.join("contexts/tls").join(&digest).join("docker");
        let has_tls = skips_check || files::names(&tls).is_ok_and(|names| !names.is_empty());
        match host {
            Some(host) if has_tls && host.starts_with("tcp://") => {
                Self::by_client(&["--context", name], &host)
            }
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

    /// An engine that is reached through the `docker` command.
    fn by_client(arguments: &[&str], shown: &str) -> Result<Self, EnvError> {
        if !cfg!(unix) {
            return Err(EnvError::absent(
                format!(
                    "`{}` is behind TLS, which cannot be reached from this system",
                    printable(shown)
                ),
                "run Tare on that machine",
            ));
        }
        let arguments = arguments.iter().chain(&["system", "dial-stdio"]);
        Ok(Self::Relayed {
            command: CommandLine::new("docker", arguments.map(|word| (*word).to_owned())).at_home(),
            shown: shown.to_owned(),
        })
    }

    /// Parses `unix://`, `npipe://`, `tcp://` or `ssh://`; `source` is where the text came from, for messages.
    pub(super) fn parse(host: &str, source: &str) -> Result<Self, EnvError> {
        let refuse = |why: &str, fix: &str| {
            Err(EnvError::absent(
                format!("{source} names `{}`, {why}", printable(host)),
                fix,
            ))
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
            "ssh" if cfg!(unix) => match by_ssh(rest) {
                Some(arguments) => Ok(Self::Relayed {
                    command: CommandLine::new("ssh", arguments),
                    shown: host.to_owned(),
                }),
                None => refuse("which is no address", "write it as ssh://user@host:port"),
            },
            // The client takes the certificates from DOCKER_CERT_PATH or its configuration folder.
            "tcp" | "http" | "https" if cfg!(unix) => {
                let address = format!("tcp://{}", rest.trim_end_matches('/'));
                Self::by_client(&["--tlsverify", "--host", &address], host)
            }
            "ssh" | "tcp" | "http" | "https" => refuse(
                "which cannot be reached from this system",
                "run Tare on that machine",
            ),
            _ => refuse(
                "whose scheme is not known",
                "use unix:///path/to/docker.sock",
            ),
        }
    }
}

/// The arguments of `ssh` for `[user@]host[:port][/path of the socket]`, as the client builds them; `None` if it is
/// no address. No part of it can be mistaken for an option or for a word of the other machine's shell.
fn by_ssh(address: &str) -> Option<Vec<String>> {
    let (place, path) = match address.split_once('/') {
        Some((place, path)) => (place, Some(path).filter(|path| !path.is_empty())),
        None => (address, None),
    };
    let (user, place) = match place.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, place),
    };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') => (host, Some(port)),
        _ => (place, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_word = |text: &str, extra: &[u8]| {
        !text.is_empty()
            && !text.starts_with('-')
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || extra.contains(&byte))
    };
    let is_fine = is_word(host, b".-_:")
        && user.is_none_or(|user| is_word(user, b".-_"))
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port != 0))
        && path.is_none_or(|path| is_word(path, b"./-_"));
    if !is_fine {
        return None;
    }
    let limit = format!("ConnectTimeout={SSH_CONNECT_LIMIT}");
    // Nothing is forwarded to the engine's machine, whatever the user's ssh configuration says.
    let mut arguments = vec!["-T", "-a", "-x", "-o", "BatchMode=yes", "-o", &limit];
    for option in ["ClearAllForwardings=yes", "PermitLocalCommand=no"] {
        arguments.extend(["-o", option]);
    }
    for (option, value) in [("-l", user), ("-p", port)] {
        arguments.extend(value.into_iter().flat_map(|value| [option, value]));
    }
    arguments.extend(["--", host, "docker"]);
    let socket = path.map(|path| format!("unix:///{path}"));
    arguments.extend(socket.iter().flat_map(|socket| ["--host", socket.as_str()]));
    arguments.extend(["system", "dial-stdio"]);
    Some(arguments.into_iter().map(str::to_owned).collect())
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
            Endpoint::of_context(folder.path(), "tare-test").unwrap(),
            Endpoint::Socket("/run/x.sock".into())
        );
        let missing = Endpoint::of_context(folder.path(), "other").unwrap_err();
        assert!(missing.to_string().contains("`other`"), "{missing}");
    }

    #[cfg(unix)]
    #[test]
    fn ssh_address_becomes_arguments_without_shell() {
        let command = |host: &str| match Endpoint::parse(host, "DOCKER_HOST") {
            Ok(Endpoint::Relayed { command, .. }) => command.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            command("ssh://me@there:2222"),
            "ssh -T -a -x -o BatchMode=yes -o ConnectTimeout=10 -o ClearAllForwardings=yes -o PermitLocalCommand=no -l me -p 2222 -- there docker system dial-stdio"
        );
        assert!(
            command("ssh://there/run/x.sock")
                .ends_with("-- there docker --host unix:///run/x.sock system dial-stdio")
        );
        for bad in [
            "ssh://-oProxyCommand=x",
            "ssh://me@",
            "ssh://a b",
            "ssh://there:99999",
            "ssh://there/$(x)",
            "ssh://there;reboot",
        ] {
            let error = Endpoint::parse(bad, "DOCKER_HOST").unwrap_err();
            assert!(error.hint().unwrap().contains("ssh://user@host"), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn an_engine_behind_tls_is_left_to_the_client() {
        let Ok(Endpoint::Relayed { command, shown }) =
            Endpoint::parse("https://there:2376", "DOCKER_HOST")
        else {
            panic!("not relayed");
        };
        assert_eq!(shown, "https://there:2376");
        assert_eq!(
            command.to_string(),
            "docker --tlsverify --host tcp://there:2376 system dial-stdio"
        );
    }

    #[test]
    fn invalid_endpoint_address_is_refused() {
        for text in [
            "",
            "docker.sock",
            "unix://",
            "fd://",
            "tcp://a/../b",
            "unix:///a\nb",
        ] {
            let error = Endpoint::parse(text, "DOCKER_HOST").unwrap_err();
            assert!(!error.to_string().contains('\n'), "{text:?}");
        }
    }

    #[test]
    fn plain_tcp_address_is_accepted() {
        assert_eq!(
            Endpoint::parse("tcp://localhost:2375", "DOCKER_HOST").unwrap(),
            Endpoint::Http("localhost:2375".into())
        );
    }
}
