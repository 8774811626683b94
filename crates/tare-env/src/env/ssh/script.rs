//! The programs on the other machine: four constant scripts for its `/bin/sh`.
//!
//! `ssh` passes one text to the account's login shell, whichever shell that is. So a script is one line in single
//! quotes without a single quote, backslash, `!` or line break inside: sh, bash, zsh, fish and csh all take that
//! literally. Arguments follow as words of letters, digits and `/._+-` ([`is_plain`]).
//! A login shell may print to stdout before it runs our command, so each script prints a mark on a separate line, and
//! reading starts after it.
//! The scripts need `sh`, `cat`, `chmod`, `mkdir`, `rm`, `sleep`, `env` and `uname`, as specified by POSIX.
//! Limits: mounts in a folder that appear while it is being removed are not noticed.
//!
//! [`GUARD`] runs as long as the arm and removes its folders when its stdin ends: when the host closes it, was
//! killed, or lost the connection.

use tare_model::RunId;

use super::settings::is_plain;

/// The line before the relevant output.
pub(super) const MARK: &str = "tare-begins-here";

/// The line after the guard's report.
pub(super) const END: &str = "tare-ends-here";

/// Exit statuses of the scripts; `ssh` itself ends with 255, a shell with 126 and 127.
pub(super) mod status {
    /// A folder could not be made.
    pub(crate) const NO_FOLDER: i32 = 41;
    /// The folders could not be removed.
    pub(crate) const NOT_REMOVED: i32 = 42;
    /// The agent could not be written.
    pub(crate) const NOT_WRITTEN: i32 = 51;
    /// The agent could be written but not run.
    pub(crate) const NOT_RUN: i32 = 52;
}

/// `gone FOLDER…` removes folders, but not one in which something is mounted: that is not Tare's, and `rm` would
/// descend into it.
macro_rules! gone {
    () => {
        concat!(
            r#"t=/proc/self/mountinfo; [ -r $t ] || t=/dev/null; "#,
            r#"gone() { for f in "$@"; do [ -d "$f" ] || continue; q=$(cd "$f" && pwd -P) || return 1; "#,
            r#"while read -r i j k l p m; do case $p in "$q"|"$q"/*) "#,
            r#"echo "something is mounted at $p; unmount it first" >&2; return 1;; esac; done <$t; "#,
            r#"rm -rf "$f" || return 1; done; }; "#,
        )
    };
}

/// Creates the folders, reports where, and waits. Arguments: name of the folders; folder above them or `-`.
pub(super) const GUARD: &str = concat!(
    gone!(),
    r#"umask 077; n=$1; b=$2; "#,
    r#"if [ "$b" = - ]; then b=${XDG_RUNTIME_DIR:-/tmp}; [ -w "$b" ] || b=/tmp; fi; "#,
    r#"d=$b/$n; w=$d/work; mkdir "$d" || exit 41; "#,
    r#"bye() { trap - EXIT; cd /; gone "$w" "$d" || { sleep 1; gone "$w" "$d"; } || exit 42; }; "#,
    r#"trap bye EXIT; trap "exit 43" HUP INT TERM PIPE; "#,
    r#"if [ "$2" = - ] && mkdir "/var/tmp/$n" 2>/dev/null; then w=/var/tmp/$n; else mkdir "$w" || exit 41; fi; "#,
    r#"echo; echo tare-begins-here; echo "folder $d"; echo "work $w"; "#,
    r#"echo "system $(uname -s)"; echo "machine $(uname -m)"; echo "connection $SSH_CONNECTION"; "#,
    r#"echo "boot $(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"; echo tare-ends-here; "#,
    r#"cat >/dev/null"#,
);

/// Writes the agent from stdin, sends the written file back, and runs its `version`. Argument: the file.
pub(super) const COPY: &str = concat!(
    r#"umask 077; cat >"$1" && chmod 700 "$1" || exit 51; "#,
    r#"echo; echo tare-begins-here; cat "$1" || exit 51; "$1" version || exit 52"#,
);

/// Becomes the agent. Arguments: its file, its working directory, its options.
pub(super) const SERVE: &str = concat!(
    r#"a=$1; cd "$2" || exit 41; shift 2; "#,
    r#"echo; echo tare-begins-here; exec "$a" serve "$@""#,
);

/// Removes folders of a name that belong to this user. If the run is not `-`, processes with its label are ended
/// first, by the agent in that folder. Arguments: run; folder above or `-`; names.
pub(super) const SWEEP: &str = concat!(
    gone!(),
    r#"r=$1; b=$2; shift 2; s=0; [ "$b" = - ] && b=${XDG_RUNTIME_DIR:-/tmp}; "#,
    r#"echo; echo tare-begins-here; "#,
    r#"for n in "$@"; do for d in "$b/$n" "/tmp/$n" "/var/tmp/$n"; do "#,
    r#"[ -L "$d" ] && continue; [ -d "$d" ] && [ -O "$d" ] || continue; "#,
    r#"[ "$r" = - ] || for a in "$d"/agent-*; do [ -x "$a" ] && [ -O "$a" ] && "$a" end-runs "$r"; done; "#,
    r#"if gone "$d"; then echo "removed the folder $d"; else s=42; fi; done; done; exit $s"#,
);

/// Returns the text that runs `script` with `words` under any login shell, with the label of this run; `None` if a
/// word could be misread.
pub(super) fn remote(run: Option<&RunId>, script: &str, words: &[&str]) -> Option<String> {
    words.iter().all(|word| is_plain(word)).then(|| {
        // An identifier is a plain word.
        let label = run.map_or_else(String::new, |run| format!("env TARE_RUN={run} "));
        let mut text = format!("exec {label}/bin/sh -c '{script}' tare-ssh");
        for word in words {
            text.push(' ');
            text.push_str(word);
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_one_quoted_word_to_every_shell() {
        for script in [GUARD, COPY, SERVE, SWEEP] {
            assert!(!script.contains(['\'', '\\', '!', '\n']), "{script}");
            assert!(script.contains(&format!("echo; echo {MARK};")), "{script}");
        }
        assert!(GUARD.contains(&format!("echo {END};")));
        assert!(GUARD.contains(&format!("exit {}", status::NO_FOLDER)));
        assert!(COPY.contains(&format!("exit {}", status::NOT_WRITTEN)));
        assert!(COPY.contains(&format!("exit {}", status::NOT_RUN)));
    }

    #[test]
    fn word_with_shell_characters_is_not_sent() {
        assert!(remote(None, COPY, &["/tmp/tare-r+arm+1/agent-ab"]).is_some());
        for word in ["", "a b", "a'b", "$x", "a;b", "=x", "~", "*", "a\n", "é"] {
            assert_eq!(remote(None, COPY, &[word]), None, "{word:?}");
        }
    }
}
