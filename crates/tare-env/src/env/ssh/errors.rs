//! Converts messages of `ssh` to errors, classified by what the user can do.
//!
//! `ssh` reports every internal error by one exit status (255) and a line in English; those lines have not changed
//! in years, and an unknown line is passed on unchanged. Sources: OpenSSH's sshconnect.c, sshconnect2.c, ssh.c,
//! readconf.c, packet.c, clientloop.c.
//! Limits: a server logs why it refuses a key, but does not send it.

use std::time::Duration;

use super::super::EnvError;
use super::super::grammar::has_only;
use super::super::refusals::KnownRefusal;
use super::super::text::escaped;
use super::command::CONNECT_LIMIT;
use super::settings::Settings;

/// Number of `ssh`'s lines that are passed on.
const LINES: usize = 6;

/// Returns the lines meant for people, as one text that is safe for a terminal; may be empty.
pub(super) fn words(stderr: &str) -> String {
    let mut lines: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .filter(|line| is_for_people(line))
        .collect();
    lines.dedup();
    let first = lines.len().saturating_sub(LINES);
    escaped(lines[first..].join("; "))
}

fn is_for_people(line: &str) -> bool {
    let chatter = [
        "debug1:",
        "debug2:",
        "debug3:",
        "OpenSSH_",
        "Authenticated to ",
        "Authenticated using ",
        "Transferred: ",
        "Bytes per second: ",
        "mux_client_request_session: session request failed",
        "Warning: Permanently added",
        "@@@@",
    ];
    !line.is_empty() && !chatter.iter().any(|start| line.starts_with(start))
}

/// Whether the log of `ssh -v` shows a successful login.
pub(super) fn has_logged_in(stderr: &str) -> bool {
    stderr.contains("Authenticated to ")
}

/// Known messages of `ssh` if it cannot connect. HOST is the host, LINE the message, OFFERS the login methods that
/// the server offers, NAME the name under which the key is known, BY_HAND and COPY what a user would type.
static KNOWN: &[KnownRefusal] = &tare_model::rows! {
    KnownRefusal::absent(
        &["remote host identification has changed"],
        "the key of `HOST` is not the one that is known for it: another machine, or a man in the middle",
        "if you know why it changed: `ssh-keygen -R 'NAME'`, then look at the new key with `BY_HAND`",
    ),
    KnownRefusal::absent(
        &["host key verification failed", "host key is known for"],
        "the key of `HOST` is not known here, and Tare accepts none for you",
        "connect once by hand and compare the key: `BY_HAND`",
    ),
    KnownRefusal::absent(&["warning: identity file"], "the key cannot be read: LINE", "name the file of a private key: `identity = \"FILE\"`"),
    KnownRefusal::denied(&["unprotected private key file"], "`ssh` does not use a key that others can read: WORDS", "`chmod 600` the key"),
    KnownRefusal::denied(
        &[
            "permission denied ( … password",
            "permission denied ( … keyboard-interactive",
        ],
        "`HOST` takes none of the keys and asks for a password (it offers OFFERS)",
        COPY_FIX,
    ),
    KnownRefusal::denied(&["permission denied ("], "`HOST` takes none of the keys (it offers OFFERS)", COPY_FIX),
    KnownRefusal::denied(
        &["too many authentication failures"],
        "`HOST` was offered too many keys before the right one",
        "name the key: `identity = \"FILE\"`",
    ),
    KnownRefusal::absent(
        &["could not resolve hostname"],
        "no machine has the name `HOST`: LINE",
        "check the name, or give it to an address in your ssh configuration (`ssh -G HOST` shows what it says)",
    ),
    KnownRefusal::absent(&["connection refused"], "no server listens: LINE", "start an ssh server there, or give its `port`"),
    KnownRefusal::absent(
        &["no route to host", "network is unreachable"],
        "`HOST` cannot be reached: LINE",
        "check that the machine runs and that the network between is up",
    ),
    KnownRefusal::absent(
        &[
            "can't open user config file",
            "bad configuration option",
            "bad owner or permissions on",
            "terminating,",
        ],
        "`ssh` cannot use its configuration: LINE",
        "`BY_HAND` must work first",
    ),
};

const COPY_FIX: &str =
    "`COPY`, and `ssh-add` if the key has a passphrase; Tare never asks for a password";

/// Explains from `ssh`'s messages why there is no connection; `None` if they are not known.
pub(super) fn trouble(settings: &Settings, stderr: &str) -> Option<EnvError> {
    if stderr.contains("timed out") || stderr.contains("Timeout, server") {
        return Some(EnvError::Timeout {
            phase: format!("connecting to `{}`", settings.host),
            limit: CONNECT_LIMIT,
        });
    }
    let lines = || {
        stderr
            .lines()
            .map(str::trim)
            .filter(|line| is_for_people(line))
    };
    // The first matching row, not the first line, decides: a changed key also fails to be verified.
    let (known, line) = KNOWN.iter().find_map(|known| {
        let explained = |line: &&str| known.explains(line);
        Some((known, lines().find(explained)?))
    })?;
    let offers = line
        .rsplit_once('(')
        .map_or("", |(_, ways)| ways.trim_end_matches(['.', ')']));
    let by_hand = by_hand(settings);
    Some(known.error(&[
        (
            "NAME",
            &known_name(stderr).unwrap_or_else(|| settings.host.clone()),
        ),
        ("COPY", &by_hand.replacen("ssh", "ssh-copy-id", 1)),
        ("BY_HAND", &by_hand),
        ("HOST", &settings.host),
        ("OFFERS", &escaped(offers)),
        ("WORDS", &words(stderr)),
        ("LINE", &escaped(line)),
    ]))
}

/// Returns the `ssh` command that a user would type to connect.
pub(super) fn by_hand(settings: &Settings) -> String {
    let port = settings.port.map(|port| port.to_string());
    let mut words = vec!["ssh".to_owned()];
    for (name, value) in [
        ("-F", &settings.config),
        ("-i", &settings.identity),
        ("-p", &port),
    ] {
        if let Some(value) = value {
            let shown = value.escape_debug();
            words.push(name.to_owned());
            words.push(if super::settings::is_plain(value) {
                shown.to_string()
            } else {
                format!("'{shown}'")
            });
        }
    }
    words.push(settings.host.clone());
    words.join(" ")
}

/// Returns the name under which the known hosts list a machine whose key has changed: from `ssh`'s advice
/// (`ssh-keygen -f "…" -R "name"`) or the line `Host key for name has changed`.
pub(super) fn known_name(stderr: &str) -> Option<String> {
    let advised = stderr.split("-R \"").nth(1);
    let name = match advised.and_then(|rest| rest.split('"').next()) {
        Some(name) => name,
        None => stderr.split("Host key for ").nth(1)?.split(' ').next()?,
    };
    let is_fine = !name.is_empty() && has_only(name, b".-_:[]");
    is_fine.then(|| name.to_owned())
}

/// Returns the error that `phase` ("logging in to", …) took longer than `limit` on the other machine.
pub(super) fn too_slow(phase: &str, settings: &Settings, limit: Duration) -> EnvError {
    EnvError::Timeout {
        phase: format!("{phase} `{}`", settings.host),
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            host: "me@node".into(),
            port: Some(2222),
            identity: None,
            config: Some("/a b".into()),
            folder: None,
        }
    }

    #[test]
    fn ssh_chatter_is_dropped_and_control_chars_escaped() {
        let stderr =
            "OpenSSH_9.2p1 Debian\r\ndebug1: x\r\nAuthenticated to a\nread: \u{1b}[31mno\n";
        assert_eq!(words(stderr), "read: \\u{1b}[31mno");
        assert_eq!(words(""), "");
    }

    #[test]
    fn password_login_is_refused_with_advice() {
        let stderr = "me@node: Permission denied (publickey,password).\r\n";
        let error = trouble(&settings(), stderr).unwrap();
        assert!(matches!(error, EnvError::Denied { .. }), "{error:?}");
        let (what, fix) = (error.to_string(), error.hint().unwrap());
        assert!(what.contains("asks for a password"), "{what}");
        assert!(
            fix.contains("ssh-copy-id -F '/a b' -p 2222 me@node"),
            "{fix}"
        );
    }

    #[test]
    fn changed_host_key_error_uses_known_hosts_name() {
        let stderr = "@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n\
            Host key for [127.0.0.1]:2222 has changed and you have requested strict checking.\n\
            Host key verification failed.\n";
        let error = trouble(&settings(), stderr).unwrap();
        assert!(matches!(error, EnvError::Absent { .. }), "{error:?}");
        let (why, fix) = (error.to_string(), error.hint().unwrap());
        assert!(why.contains("man in the middle"), "{why}");
        assert!(fix.contains("ssh-keygen -R '[127.0.0.1]:2222'"), "{fix}");
    }

    #[test]
    fn unknown_ssh_error_is_not_classified() {
        assert!(trouble(&settings(), "kex_exchange_identification: no\n").is_none());
    }
}
