//! The command lines: the user's own `ssh` with what Tare needs on top of the user's configuration.
//!
//! Options on the command line go before the configuration's. They only take away: no questions, no
//! terminal, no forwardings (a second connection could not bind a forwarded port again), no command of the
//! configuration's, no change to the list of known hosts. How strictly host keys are checked is left as the
//! user has it; questions about them are answered by nobody, so an unknown key ends the attempt.
//! What it cannot see: what a `ProxyCommand` or `Match exec` of the configuration does.

use crate::env::prelude::*;

use super::settings::Settings;

/// How long `ssh` may take to connect.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The longest path of a control socket: that of a socket on macOS (104 bytes with its end) less the 17 of
/// the suffix under which `ssh` first makes it.
const CONTROL_LIMIT: usize = 104 - 1 - 17;

/// Whose connection a command uses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Share<'a> {
    /// Its own, which others may use by this control socket.
    Give(&'a str),
    /// That behind this control socket.
    Take(&'a str),
    /// Its own, alone.
    Alone,
}

/// A control socket below this folder; `None` where there is none: Windows' `ssh` does not have them, paths
/// of sockets are short, and `ssh` replaces `%` and `${…}` in them.
pub(super) fn control_path(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name).into_os_string().into_string().ok()?;
    let is_fine = cfg!(unix)
        && path.len() <= CONTROL_LIMIT
        && path.starts_with('/')
        && !path.contains(['%', '$', '~'])
        && !path.contains(char::is_control);
    is_fine.then_some(path)
}

/// `ssh` to this host. With a `log` it tells there how it connects, and what goes wrong: a file of its own, because
/// standard error is also the other machine's, which could write there whatever `ssh` would.
pub(super) fn ssh(
    settings: &Settings,
    share: Share<'_>,
    log: Option<&Path>,
    run: &RunId,
    remote: String,
) -> CommandLine {
    let mut arguments: Vec<String> = ["-T", "-a", "-x"].map(str::to_owned).to_vec();
    let mut option = |text: &str| arguments.extend(["-o".to_owned(), text.to_owned()]);
    option("BatchMode=yes");
    option(&format!("ConnectTimeout={}", CONNECT_LIMIT.as_secs()));
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
        arguments.extend(["-S".to_owned(), socket.to_owned()]);
    }
    if let Some(log) = log {
        arguments.extend(["-v", "-E"].map(str::to_owned));
        arguments.push(log.display().to_string());
    } else {
        arguments.extend(["-o", "LogLevel=ERROR"].map(str::to_owned));
    }
    let port = settings.port.map(|port| port.to_string());
    for (name, value) in [
        ("-p", &port),
        ("-i", &settings.identity),
        ("-F", &settings.config),
    ] {
        if let Some(value) = value {
            arguments.extend([name.to_owned(), value.clone()]);
        }
    }
    arguments.extend(["--".to_owned(), settings.host.clone(), remote]);
    CommandLine::new("ssh", arguments).variable("TARE_RUN", run.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_socket_whose_path_is_too_long_or_would_be_replaced_is_not_used() {
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
    fn the_host_is_never_taken_for_an_option() {
        let settings = Settings {
            host: "h".into(),
            port: Some(22),
            identity: None,
            config: None,
            folder: None,
        };
        let run = RunId::new("r").expect("a name");
        let line = ssh(&settings, Share::Alone, None, &run, "true".into());
        let end = &line.arguments[line.arguments.len() - 3..];
        assert_eq!(end, ["--", "h", "true"]);
        assert!(line.arguments.contains(&"BatchMode=yes".to_owned()));
    }
}
