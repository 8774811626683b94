//! The command lines of `ssh`: the user's configuration, with the options that Tare needs.
//!
//! Options on the command line override the configuration. They only remove: no questions, no terminal, no
//! forwardings (a second connection could not bind a forwarded port again), no command from the configuration, no
//! change to the known hosts. Host key checking stays as the user configured it; its questions are not answered, so
//! an unknown key ends the attempt.
//! Limits: the effects of a `ProxyCommand` or `Match exec` in the configuration are unknown.

use crate::env::prelude::*;

use super::settings::Settings;

/// Time limit for `ssh` to connect.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The longest path of a control socket: that of a socket on macOS (104 bytes with its end) minus 17 for the suffix
/// under which `ssh` first creates it.
const CONTROL_LIMIT: usize = 104 - 1 - 17;

/// The connection that a command uses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Share<'a> {
    /// A new connection, which other commands may share through this control socket.
    Give(&'a str),
    /// The existing connection behind this control socket.
    Take(&'a str),
    /// A new connection that is not shared.
    Alone,
}

/// Returns a control socket's path below this folder. `None` if it cannot be used: Windows' `ssh` has no control
/// sockets, socket paths are short, and `ssh` expands `%` and `${…}` in them.
pub(super) fn control_path(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name).into_os_string().into_string().ok()?;
    let is_fine = cfg!(unix)
        && path.len() <= CONTROL_LIMIT
        && path.starts_with('/')
        && !path.contains(['%', '$', '~'])
        && !path.contains(char::is_control);
    is_fine.then_some(path)
}

/// Returns an `ssh` command to this host. With a `log`, `ssh` writes to it how it connects, and its errors. That is a
/// separate file because the other machine also writes to stderr, where it could imitate messages of `ssh`.
pub(super) fn ssh(
    settings: &Settings,
    share: Share<'_>,
    log: Option<&Path>,
    run: &RunId,
    remote: &str,
) -> CommandLine {
    let connect = format!("ConnectTimeout={}", CONNECT_LIMIT.as_secs());
    let log = log.map(|path| path.display().to_string());
    let port = settings.port.map(|port| port.to_string());
    let mut arguments = vec!["-T", "-a", "-x"];
    let mut option = |text| arguments.extend(["-o", text]);
    option("BatchMode=yes");
    option(&connect);
    option("ServerAliveInterval=5");
    option("ServerAliveCountMax=3");
    option("ClearAllForwardings=yes");
    option("RemoteCommand=none");
    option("PermitLocalCommand=no");
    option("UpdateHostKeys=no");
    if settings.identity.is_some() {
        option("IdentitiesOnly=yes");
    }
    if cfg!(unix) {
        option("ControlPersist=no");
        let (control, socket) = match share {
            Share::Give(socket) => ("ControlMaster=yes", socket),
            Share::Take(socket) => ("ControlMaster=no", socket),
            Share::Alone => ("ControlMaster=no", "none"),
        };
        option(control);
        arguments.extend(["-S", socket]);
    }
    match &log {
        Some(log) => arguments.extend(["-v", "-E", log]),
        None => arguments.extend(["-o", "LogLevel=ERROR"]),
    }
    for (name, value) in [
        ("-p", &port),
        ("-i", &settings.identity),
        ("-F", &settings.config),
    ] {
        if let Some(value) = value {
            arguments.extend([name, value]);
        }
    }
    arguments.extend(["--", &settings.host, remote]);
    CommandLine::new("ssh", arguments).variable("TARE_RUN", run.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_or_long_control_socket_path_is_not_used() {
        let path = |folder: &str| control_path(Path::new(folder), "arm-1");
        if cfg!(unix) {
            assert_eq!(path("/run/tare").as_deref(), Some("/run/tare/arm-1"));
        }
        assert_eq!(path(&format!("/{}", "x".repeat(90))), None);
        assert_eq!(path("/a%h"), None);
        assert_eq!(path("/a${HOME}"), None);
        assert_eq!(path("relative"), None);
    }

    #[test]
    fn ssh_host_is_never_parsed_as_option() {
        let settings = Settings {
            host: "h".into(),
            port: Some(22),
            identity: None,
            config: None,
            folder: None,
        };
        let run = RunId::new("r").expect("a name");
        let line = ssh(&settings, Share::Alone, None, &run, "true");
        let end = &line.arguments[line.arguments.len() - 3..];
        assert_eq!(end, ["--", "h", "true"]);
        assert!(line.arguments.contains(&"BatchMode=yes".to_owned()));
    }
}
