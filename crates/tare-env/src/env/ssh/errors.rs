//! What `ssh` says, turned into what the reader can do.
//!
//! `ssh` tells every trouble of its own by one status (255) and a line in English; those lines have not
//! changed in years, and a line that is not known here is passed on as it is. Sources: OpenSSH's
//! sshconnect.c, sshconnect2.c, ssh.c, readconf.c, packet.c, clientloop.c.
//! What it cannot see: why a server refuses a key; it tells only its own log.

use std::time::Duration;

use super::super::EnvError;
use super::super::known::Known;
use super::command::CONNECT_LIMIT;
use super::settings::Settings;

/// How many lines of `ssh`'s are passed on.
const LINES: usize = 6;

/// What was said that is meant for people, as one text fit for a terminal; empty if there is nothing.
pub(super) fn words(stderr: &str) -> String {
    let mut lines: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .filter(|line| is_for_people(line))
        .collect();
    lines.dedup();
    let first = lines.len().saturating_sub(LINES);
    lines[first..].join("; ").escape_debug().to_string()
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

/// Whether `ssh -v` got as far as starting a command.
pub(super) fn has_logged_in(stderr: &str) -> bool {
    stderr.contains("Authenticated to ")
}

/// What `ssh` says where there is no connection. HOST is the host, LINE what was said, OFFERS the ways in which the
/// server lets people in, NAME the name under which the key is known, BY_HAND and COPY what a user would type.
static KNOWN: &[Known] = &tare_model::rows! {
    Known::absent(
        &["remote host identification has changed"],
        "the key of `HOST` is not the one that is known for it: another machine, or a man in the middle",
        "if you know why it changed: `ssh-keygen -R 'NAME'`, then look at the new key with `BY_HAND`",
    ),
    Known::absent(
        &["host key verification failed", "host key is known for"],
        "the key of `HOST` is not known here, and Tare accepts none for you",
        "connect once by hand and compare the key: `BY_HAND`",
    ),
    Known::absent(&["warning: identity file"], "the key cannot be read: LINE", "name the file of a private key: `identity = \"FILE\"`"),
    Known::denied(&["unprotected private key file"], "`ssh` does not use a key that others can read: WORDS", "`chmod 600` the key"),
    Known::denied(
        &[
            "permission denied ( … password",
            "permission denied ( … keyboard-interactive",
        ],
        "`HOST` takes none of the keys and asks for a password (it offers OFFERS)",
        COPY_FIX,
    ),
    Known::denied(&["permission denied ("], "`HOST` takes none of the keys (it offers OFFERS)", COPY_FIX),
    Known::denied(
        &["too many authentication failures"],
        "`HOST` was offered too many keys before the right one",
        "name the key: `identity = \"FILE\"`",
    ),
    Known::absent(
        &["could not resolve hostname"],
        "no machine has the name `HOST`: LINE",
        "check the name, or give it to an address in your ssh configuration (`ssh -G HOST` shows what it says)",
    ),
    Known::absent(&["connection refused"], "no server listens: LINE", "start an ssh server there, or give its `port`"),
    Known::absent(
        &["no route to host", "network is unreachable"],
        "`HOST` cannot be reached: LINE",
        "check that the machine runs and that the network between is up",
    ),
    Known::absent(
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

/// Why there is no connection, from what `ssh` said; `None` for what is not known here.
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
    // The first explanation counts, and not the first line: a changed key also fails to be verified.
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
        ("OFFERS", &offers.escape_debug().to_string()),
        ("WORDS", &words(stderr)),
        ("LINE", &line.escape_debug().to_string()),
    ]))
}

/// What a user would type to get there.
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

/// The name under which the list of known hosts has a machine whose key has changed: from `ssh`'s own advice
/// (`ssh-keygen -f "…" -R "name"`) or the line `Host key for name has changed`.
pub(super) fn known_name(stderr: &str) -> Option<String> {
    let advised = stderr.split("-R \"").nth(1);
    let name = match advised.and_then(|rest| rest.split('"').next()) {
        Some(name) => name,
        None => stderr.split("Host key for ").nth(1)?.split(' ').next()?,
    };
    let is_fine = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
    is_fine.then(|| name.to_owned())
}

/// The time that a whole conversation with a guard may take.
pub(super) fn too_slow(settings: &Settings, limit: Duration) -> EnvError {
    EnvError::Timeout {
        phase: format!("logging in to `{}`", settings.host),
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
    fn chatter_is_left_out_and_control_characters_are_escaped() {
        let stderr =
            "OpenSSH_9.2p1 Debian\r\ndebug1: x\r\nAuthenticated to a\nread: \u{1b}[31mno\n";
        assert_eq!(words(stderr), "read: \\u{1b}[31mno");
        assert_eq!(words(""), "");
    }

    #[test]
    fn a_password_is_never_asked_for_but_advised_against() {
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
    fn a_changed_key_is_told_under_the_name_that_it_is_known_by() {
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
    fn what_is_not_known_is_nobodys_guess() {
        assert!(trouble(&settings(), "kex_exchange_identification: no\n").is_none());
    }
}
