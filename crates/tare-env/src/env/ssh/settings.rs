//! The settings of an `ssh` arm, checked before anything is started.
//!
//! A host that begins with `-` would be an option of `ssh`, and one with a quote, `$` or a space could become a
//! command in a user's `ProxyCommand` (CVE-2023-51385). So names must match a narrow grammar; what does not fit
//! belongs in the user's ssh configuration under a plain name. Everything else about the way to the host (user, jump
//! hosts, keys, ciphers) is configured there too and has no setting here.
//! Limits: whether a well-formed name exists is unknown until `ssh` connects.

use tare_model::Params;

use super::super::SettingsError;
use super::super::grammar::has_only;
use super::super::reader::Reader;
use super::super::setting::{Form, settings};

settings! {
    pub(super) SETTINGS;

    HOST("host",
        Text(Form::new("`host` or `user@host` of letters, digits, `.`, `_`, `-` and `:`, beginning with a letter or digit; give anything else a plain name in your ssh configuration", is_host)),
        "", "a name of your ssh configuration, or `[user@]host`");
    PORT("port", Whole(1, 65_535, "a port"), "what your ssh configuration says", "the server's port");
    IDENTITY("identity",
        Text(Form::new("a file of this machine; a path with `%`, `$` or control characters can only be named in your ssh configuration", is_key_path)),
        "none", "file of the private key to offer before those of your ssh configuration, and no others");
    CONFIG("config", Text(Form::new("a file of this machine, or `none`", is_local_path)), "your own",
        "ssh configuration file to use; everything without a setting here belongs into it");
    FOLDER("folder",
        Text(Form::new("an absolute path of letters, digits, `.`, `_`, `-`, `+` and `/` without `..`, for example \"/var/tmp\"", is_folder)),
        "the agent below $XDG_RUNTIME_DIR or /tmp, the files below /var/tmp",
        "remote folder below which the agent and the probes' files go");
}

/// Checked settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) identity: Option<String>,
    pub(super) config: Option<String>,
    pub(super) folder: Option<String>,
}

impl Settings {
    /// Reads the settings; anything unknown, ill-formed or missing is an error that names it.
    pub(super) fn read(params: &Params) -> Result<Self, SettingsError> {
        let read = Reader::new("ssh", SETTINGS, params)?;
        Ok(Self {
            host: read.text(&HOST).unwrap_or_default().to_owned(),
            port: read.whole(&PORT),
            identity: read.owned(&IDENTITY).map(absolute),
            config: read.owned(&CONFIG).map(|path| match path.as_str() {
                "none" => path,
                _ => absolute(path),
            }),
            folder: read
                .text(&FOLDER)
                .map(|folder| folder.trim_end_matches('/').to_owned()),
        })
    }

    /// Returns the settings in their original form, for the record of what was created where.
    pub(super) fn params(&self) -> Params {
        let mut params = Params::new().with("host", self.host.as_str());
        if let Some(port) = self.port {
            params = params.with("port", i64::from(port));
        }
        for (name, value) in [
            ("identity", &self.identity),
            ("config", &self.config),
            ("folder", &self.folder),
        ] {
            if let Some(value) = value {
                params = params.with(name, value.as_str());
            }
        }
        params
    }
}

/// Makes a path independent of the current directory; `~` is left to `ssh`.
fn absolute(path: String) -> String {
    if path.starts_with('~') {
        return path;
    }
    // Without a current directory the path stays relative, and `ssh` reports what is wrong with it.
    std::path::absolute(&path)
        .ok()
        .and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or(path)
}

/// Whether a text is `[user@]host`, where the host is a name, an IPv4 or an IPv6 address.
fn is_host(text: &str) -> bool {
    let is_name = |name: &str, others: &[u8]| {
        let is_first = |first: char| first.is_ascii_alphanumeric() || first == '_';
        name.starts_with(is_first) && has_only(name, others)
    };
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    let is_address = host.parse::<std::net::Ipv6Addr>().is_ok();
    text.len() <= 255
        && user.is_none_or(|user| is_name(user, b"._-+"))
        && (is_address || is_name(host, b"._-"))
}

fn is_local_path(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.contains(char::is_control)
}

/// Whether a text is a path of a key without `%` and `$`: `ssh` expands `%` and `${…}` in it.
fn is_key_path(text: &str) -> bool {
    is_local_path(text) && !text.contains(['%', '$'])
}

fn is_folder(text: &str) -> bool {
    text.len() <= 200
        && text.starts_with('/')
        && is_plain(text)
        && text.split('/').all(|part| part != "..")
}

/// Whether a text is the same single word for every shell, so that it needs no quotes.
pub(super) fn is_plain(text: &str) -> bool {
    let is_first = |first: char| first.is_ascii_alphanumeric() || "/-".contains(first);
    text.starts_with(is_first) && has_only(text, b"/._+-")
}

#[cfg(test)]
mod tests {
    use tare_model::Value;

    use super::*;

    fn parse(name: &str, value: impl Into<Value>) -> Result<Settings, SettingsError> {
        let params = Params::new().with("host", "h").with(name, value);
        Settings::read(&params)
    }

    #[test]
    fn names_and_addresses_of_every_form_are_hosts() {
        for host in [
            "node-1",
            "me@node_1.example.org",
            "10.0.0.1",
            "::1",
            "me@fe80::1",
            "a.b+c@h",
        ] {
            assert_eq!(parse("host", host).unwrap().host, host);
        }
    }

    #[test]
    fn host_unsafe_for_ssh_or_shell_is_refused() {
        for host in [
            "",
            "-oProxyCommand=x",
            "-",
            "me@-h",
            "@h",
            "me@",
            "a b",
            "a\nb",
            "a'b",
            "a\"b",
            "$(x)",
            "`x`",
            "a;b",
            "ssh://h",
            "\u{1b}[2J",
            "host/..",
            "h:22",
            "a%b",
        ] {
            let error = parse("host", host).unwrap_err();
            assert_eq!(error.setting, "host", "{host:?}");
            assert!(!error.problem.contains(char::is_control), "{error:?}");
        }
        assert_eq!(parse("host", true).unwrap_err().setting, "host");
        let none = Settings::read(&Params::new()).unwrap_err();
        assert_eq!(none.setting, "host");
    }

    #[test]
    fn folders_are_plain_absolute_paths() {
        assert_eq!(
            parse("folder", "/var/tmp/").unwrap().folder.as_deref(),
            Some("/var/tmp")
        );
        for folder in [
            "", "tmp", "~/x", "/a b", "/a/../b", "/a'b", "/a\n", "/$HOME", "-",
        ] {
            assert_eq!(parse("folder", folder).unwrap_err().setting, "folder");
        }
    }

    #[test]
    fn ssh_port_key_and_files_are_checked_by_name() {
        assert_eq!(parse("port", 2222i64).unwrap().port, Some(2222));
        for port in [0i64, -1, 65536] {
            assert_eq!(parse("port", port).unwrap_err().setting, "port");
        }
        assert_eq!(parse("port", "ssh").unwrap_err().setting, "port");
        for name in ["identity", "config"] {
            for path in ["", "-x", "a\nb"] {
                assert_eq!(parse(name, path).unwrap_err().setting, name);
            }
        }
        assert_eq!(
            parse("identity", "/a/%h").unwrap_err().setting,
            "identity",
            "ssh would replace it"
        );
        assert_eq!(
            parse("identity", "~/.ssh/id").unwrap().identity.as_deref(),
            Some("~/.ssh/id")
        );
        let here = parse("config", "my config").unwrap().config.unwrap();
        assert!(std::path::Path::new(&here).is_absolute(), "{here}");
        assert_eq!(
            parse("config", "none").unwrap().config.as_deref(),
            Some("none")
        );
        assert_eq!(parse("options", "x").unwrap_err().setting, "options");
    }

    #[test]
    fn settings_come_back_from_their_record() {
        let settings = parse("folder", "/var/tmp").unwrap();
        assert_eq!(Settings::read(&settings.params()).unwrap(), settings);
    }
}
