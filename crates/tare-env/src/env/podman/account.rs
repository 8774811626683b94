//! The owner of the podman to use: Tare's user, or an ordinary user if Tare runs as root.
//!
//! Rootless podman belongs to an ordinary user, and root must become one to use it. That is done with `setpriv` (it
//! does not fork and records no login, so a process keeps its PID and its pipes), with a clean environment as that
//! user would have after a login, in the root folder.
//! Limits: additions by the user's login scripts are missing.

use crate::env::prelude::*;

/// Search path for programs of the user and of podman.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A user other than Tare's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) home: PathBuf,
}

impl Account {
    /// Looks up the user of this name or number; `None` if it is Tare's.
    pub(super) fn find(cx: &Context<'_>, name: &str) -> Result<Option<Self>> {
        if !cfg!(unix) {
            return Err(EnvError::absent(
                "acting as another user is not available on this system",
                "remove `as`",
            ));
        }
        let own = files::own_uid();
        let command = CommandLine::new("getent", ["passwd", "--", name]);
        let finished = cx.exec.run(&command, &[], CONTROL_LIMIT)?;
        let text = finished.stdout_text().into_owned();
        let Some(account) = text.lines().find_map(Self::parse) else {
            return Err(EnvError::absent(
                format!("there is no user `{}` on this machine", printable(name)),
                format!("`sudo useradd --create-home {}`", printable(name)),
            ));
        };
        if account.uid == own {
            return Ok(None);
        }
        if own != 0 {
            return Err(EnvError::denied(
                format!("only root may run podman as `{}`", account.name),
                "run Tare as that user and remove `as`, or run it as root",
            ));
        }
        Ok(Some(account))
    }

    /// Parses a line of passwd(5).
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, _] = fields.as_slice() else {
            return None;
        };
        Some(Self {
            name: (*name).to_owned(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
            home: PathBuf::from(home),
        })
    }

    /// Returns a command that runs as this user, with a clean environment and these variables.
    pub(super) fn command(
        &self,
        program: &str,
        arguments: Vec<String>,
        variables: &[(&str, &str)],
    ) -> CommandLine {
        let mut words = vec![
            format!("--reuid={}", self.uid),
            format!("--regid={}", self.gid),
            "--init-groups".into(),
            "--inh-caps=-all".into(),
            "--".into(),
            "env".into(),
            "--ignore-environment".into(),
            "--chdir=/".into(),
            format!("HOME={}", self.home.display()),
            format!("USER={}", self.name),
            format!("LOGNAME={}", self.name),
            format!("PATH={PATH}"),
            "LC_ALL=C".into(),
        ];
        // A login session's folder, if any; without it podman uses its own default.
        let runtime = format!("/run/user/{}", self.uid);
        if Path::new(&runtime).is_dir() {
            words.push(format!("XDG_RUNTIME_DIR={runtime}"));
        }
        words.extend(
            variables
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        words.push(program.to_owned());
        words.extend(arguments);
        CommandLine::new("setpriv", words).in_session()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_passwd_is_read_and_anything_else_is_not() {
        let account = Account::parse("tare:x:1001:1002:A, B:/home/tare:/bin/sh").unwrap();
        assert_eq!((account.uid, account.gid), (1001, 1002));
        assert_eq!(account.home, Path::new("/home/tare"));
        assert_eq!(Account::parse("tare:x:-1:0::/:/bin/sh"), None);
        assert_eq!(Account::parse("short:line"), None);
    }

    #[test]
    fn a_users_command_begins_with_an_empty_environment() {
        let account = Account::parse("tare:x:4000000:4000000::/home/tare:/bin/sh").unwrap();
        let command = account.command("podman", vec!["info".into()], &[("TARE_RUN", "r")]);
        assert_eq!(command.program, "setsid");
        assert_eq!(command.arguments[0], "setpriv");
        let text = command.arguments.join(" ");
        assert!(
            text.contains("--reuid=4000000 --regid=4000000 --init-groups"),
            "{text}"
        );
        assert!(
            text.contains("env --ignore-environment --chdir=/ HOME=/home/tare"),
            "{text}"
        );
        assert!(text.ends_with("TARE_RUN=r podman info"), "{text}");
        assert!(!text.contains("XDG_RUNTIME_DIR"), "{text}");
    }
}
