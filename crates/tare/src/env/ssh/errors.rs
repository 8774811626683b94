//! What `ssh` says, turned into what the reader can do.
//!
//! `ssh` tells every trouble of its own by one status (255) and a line in English; those lines have not
//! changed in years, and a line that is not known here is passed on as it is. Sources: OpenSSH's
//! sshconnect.c, sshconnect2.c, ssh.c, readconf.c, packet.c, clientloop.c.
//! What it cannot see: why a server refuses a key; it tells only its own log.

use std::time::Duration;

use super::super::EnvError;
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

/// Why there is no connection, from what `ssh` said; `None` for what is not known here.
pub(super) fn trouble(settings: &Settings, stderr: &str) -> Option<EnvError> {
    let host = &settings.host;
    let by_hand = by_hand(settings);
    let has = |text: &str| stderr.contains(text);
    let absent = |why: String, fix: String| {
        Some(EnvError::Absent {
            why,
            fix: Some(fix),
        })
    };
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        let name = known_name(stderr).unwrap_or_else(|| host.clone());
        return absent(
            format!(
                "the key of `{host}` is not the one that is known for it: another machine, or somebody in between"
            ),
            format!(
                "if you know why it changed: `ssh-keygen -R '{name}'`, then look at the new key with `{by_hand}`"
            ),
        );
    }
    if has("Host key verification failed") || has("host key is known for") {
        return absent(
            format!("the key of `{host}` is not known here, and Tare accepts none for you"),
            format!("connect once by hand and compare the key: `{by_hand}`"),
        );
    }
    if let Some(line) = line_with(stderr, "Warning: Identity file") {
        return absent(
            format!("the key cannot be read: {}", line.escape_debug()),
            "name the file of a private key: `identity = \"FILE\"`".to_owned(),
        );
    }
    if has("UNPROTECTED PRIVATE KEY FILE") {
        return Some(EnvError::Denied {
            what: format!(
                "`ssh` does not use a key that others can read: {}",
                words(stderr)
            ),
            fix: Some("`chmod 600` the key".to_owned()),
        });
    }
    if let Some(line) = line_with(stderr, "Permission denied (") {
        let offers = line
            .rsplit_once('(')
            .map_or("", |(_, methods)| methods.trim_end_matches(['.', ')']));
        let asks = if offers.contains("password") || offers.contains("keyboard-interactive") {
            format!("`{host}` takes none of the keys and asks for a password")
        } else {
            format!("`{host}` takes none of the keys")
        };
        return Some(EnvError::Denied {
            what: format!("{asks} (it offers {})", offers.escape_debug()),
            fix: Some(format!(
                "`{}`, and `ssh-add` if the key has a passphrase; Tare never asks for a password",
                by_hand.replacen("ssh", "ssh-copy-id", 1)
            )),
        });
    }
    if has("Too many authentication failures") {
        return Some(EnvError::Denied {
            what: format!("`{host}` was offered too many keys before the right one"),
            fix: Some("name the key: `identity = \"FILE\"`".to_owned()),
        });
    }
    if let Some(line) = line_with(stderr, "Could not resolve hostname") {
        return absent(
            format!("no machine has the name `{host}`: {}", line.escape_debug()),
            format!(
                "check the name, or give it to an address in your ssh configuration (`ssh -G {host}` shows what it says)"
            ),
        );
    }
    if let Some(line) = line_with(stderr, "Connection refused") {
        return absent(
            format!("nobody listens: {}", line.escape_debug()),
            "start an ssh server there, or give its `port`".to_owned(),
        );
    }
    if has("timed out") || has("Timeout, server") {
        return Some(EnvError::Timeout {
            phase: format!("connecting to `{host}`"),
            limit: CONNECT_LIMIT,
        });
    }
    if let Some(line) = ["No route to host", "Network is unreachable"]
        .iter()
        .find_map(|text| line_with(stderr, text))
    {
        return absent(
            format!("`{host}` cannot be reached: {}", line.escape_debug()),
            "check that the machine runs and that the network between is up".to_owned(),
        );
    }
    if let Some(line) = [
        "Can't open user config file",
        "Bad configuration option",
        "Bad owner or permissions on",
        "terminating,",
    ]
    .iter()
    .find_map(|text| line_with(stderr, text))
    {
        return absent(
            format!(
                "`ssh` cannot use its configuration: {}",
                line.escape_debug()
            ),
            format!("`{by_hand}` must work first"),
        );
    }
    None
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

fn line_with<'a>(stderr: &'a str, text: &str) -> Option<&'a str> {
    stderr
        .lines()
        .map(str::trim)
        .find(|line| line.contains(text) && is_for_people(line))
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
        let Some(EnvError::Denied {
            what,
            fix: Some(fix),
        }) = trouble(&settings(), stderr)
        else {
            panic!("not denied");
        };
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
        let Some(EnvError::Absent {
            why,
            fix: Some(fix),
        }) = trouble(&settings(), stderr)
        else {
            panic!("not absent");
        };
        assert!(why.contains("somebody in between"), "{why}");
        assert!(fix.contains("ssh-keygen -R '[127.0.0.1]:2222'"), "{fix}");
    }

    #[test]
    fn what_is_not_known_is_nobodys_guess() {
        assert!(trouble(&settings(), "kex_exchange_identification: no\n").is_none());
    }
}
