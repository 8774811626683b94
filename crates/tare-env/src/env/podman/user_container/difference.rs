//! The differences of a podman container from a plain one, flag by flag, and its flags without some of them.
//!
//! A difference is a flag with all its values, or one entry of a flag with independent entries: a variable, a sysctl,
//! a limit, a security option. Names and prices are the same as in other drivers, from the same table.
//! Pure: takes and returns the flags of a line.
//! Limits: a file of variables is one difference.

use super::words::{Unit, mount};
use crate::env::text::printable;
use crate::env::user_container::command;
use crate::env::user_container::fields::{FIELDS, Field};
use crate::env::user_container::{self, Difference};

/// Flags that do not affect the program or that no arm keeps: names, actions at the end, client behaviour.
const LEFT_OUT: &[&str] = &tare_model::rows! {
    "annotation", "attach", "authfile", "cidfile", "conmon-pidfile", "detach", "detach-keys",
    "disable-content-trust", "health-cmd", "health-interval", "health-retries", "health-start-period",
    "health-timeout", "interactive", "ip", "ip6", "label", "label-file", "log-level", "mac-address", "name",
    "network-alias", "no-healthcheck", "pidfile", "preserve-fds", "pull", "quiet", "replace", "restart", "rm",
    "sdnotify", "sig-proxy", "stop-signal", "stop-timeout", "tls-verify", "tty",
};

/// Flags that are always kept: the program would do other work without them.
const KEPT: &[&str] = &tare_model::rows! {
    "arch", "entrypoint", "env-merge", "expose", "hostname", "image-volume", "mount", "os", "platform",
    "secret", "unsetenv", "variant", "volume", "volumes-from", "workdir",
};

/// Flags whose entries are separate differences, each with the prefix of their names and its likelihood.
const ENTRIES: [(&str, &str, f64); 5] = [
    ("security-opt", "security-opt", 0.4),
    ("sysctl", "sysctl", 0.4),
    ("ulimit", "ulimit", 0.3),
    ("tmpfs", "tmpfs", 0.3),
    ("env", "env", 0.25),
];

/// Flags with another flag that is meaningless without them.
const WITH: [(&str, &str); 6] = [
    ("cpu-quota", "cpu-period"),
    ("cpu-rt-runtime", "cpu-rt-period"),
    ("memory", "memory-swap"),
    ("memory", "memory-reservation"),
    ("memory", "memory-swappiness"),
    ("log", "log-opt"),
];

/// Something that the engine applies to every container.
struct Engines {
    id: &'static str,
    what: &'static str,
    /// The flag that removes it.
    flag: &'static str,
    text: &'static str,
    price: &'static str,
    likelihood: f64,
    may_be_needed: bool,
}

const ENGINES: [Engines; 3] = [
    Engines {
        id: "engine.seccomp",
        what: "Podman's default seccomp profile",
        flag: "security-opt",
        text: "seccomp=unconfined",
        price: "without a filter every system call of the kernel can be attacked from inside",
        likelihood: 0.35,
        may_be_needed: false,
    },
    Engines {
        id: "engine.network",
        what: "Podman's network",
        flag: "network",
        text: "host",
        price: "the program shares the machine's addresses and ports",
        likelihood: 0.3,
        may_be_needed: true,
    },
    Engines {
        id: "engine.log",
        what: "Podman's log driver",
        flag: "log-driver",
        text: "none",
        price: "`podman logs` shows nothing",
        likelihood: 0.2,
        may_be_needed: false,
    },
];

/// Whether no arm keeps a flag.
pub(super) fn is_left_out(flag: &str) -> bool {
    LEFT_OUT.contains(&flag)
}

/// Returns the name of the difference that a flag belongs to; `None` for a flag that is always kept or never kept.
fn id(unit: &Unit) -> Option<String> {
    let flag = unit.flag.as_str();
    if let Some(target) = memory_mount(unit) {
        return Some(user_container::in_memory(&target, "podman").id);
    }
    if is_left_out(flag) || KEPT.contains(&flag) {
        return None;
    }
    if let Some((_, prefix, _)) = ENTRIES.iter().find(|(name, ..)| *name == flag) {
        let name = unit.text().split(['=', ':']).next().unwrap_or_default();
        return Some(format!("{prefix}.{}", printable(name)));
    }
    if let Some((with, _)) = WITH.iter().find(|(with, part)| {
        *part == flag && field(part).is_none_or(|own| own.id != flag) && *with != flag
    }) {
        return Some((*with).to_owned());
    }
    Some(field(flag).map_or(flag, |field| field.id).to_owned())
}

/// Returns the target of a tmpfs, if the flag requests one.
fn memory_mount(unit: &Unit) -> Option<String> {
    let asked = (unit.flag == "mount").then(|| mount(unit.text()))?;
    let target = asked["Target"].as_str()?;
    (asked["Type"] == "tmpfs").then(|| target.to_owned())
}

fn field(flag: &str) -> Option<&'static Field> {
    FIELDS
        .iter()
        .find(|field| field.flag.strip_prefix("--") == Some(flag) || field.id == flag)
}

/// Formats a flag briefly, without values that may be secret.
fn shown(unit: &Unit) -> String {
    let text = match unit.flag.as_str() {
        "env" | "log-opt" => match unit.text().split_once('=') {
            Some((name, _)) => format!("{name}=…"),
            None => unit.text().to_owned(),
        },
        _ => unit.text().to_owned(),
    };
    let text = if text.is_empty() {
        format!("--{}", unit.flag)
    } else {
        format!("--{} {text}", unit.flag)
    };
    printable(&text.chars().take(60).collect::<String>())
}

/// Returns all differences, the likeliest cause first. `command` is the command to run: a variable that it names is a
/// part of it.
pub(super) fn differences(
    units: &[Unit],
    image_env: &[String],
    command: &[String],
) -> Vec<Difference> {
    let mut all: Vec<Difference> = Vec::new();
    for unit in units {
        let Some(id) = id(unit).filter(|id| all.iter().all(|it| it.id != *id)) else {
            continue;
        };
        let words: Vec<String> = units
            .iter()
            .filter(|other| self::id(other).as_ref() == Some(&id))
            .map(shown)
            .collect();
        if let Some(difference) = of_flag(unit, id, &words.join(" "), command) {
            all.push(difference);
        }
    }
    for text in image_env {
        let name = text.split('=').next().unwrap_or_default();
        let shown = printable(name);
        let unset = format!("`--unsetenv {shown}`, or take `ENV {shown}` out of the image");
        all.extend(user_container::variable(
            text,
            Some(unset),
            "podman",
            command,
        ));
    }
    let has = |flag: &str, begin: &str| {
        let mut units = units.iter();
        units.any(|unit| unit.flag == flag && unit.text().starts_with(begin))
    };
    let is_privileged = units.iter().any(|unit| unit.flag == "privileged");
    for engines in ENGINES {
        let Engines { id, flag, text, .. } = engines;
        let is_gone = match id {
            "engine.seccomp" => is_privileged || has(flag, "seccomp"),
            "engine.network" => has(flag, "host") || has(flag, "none") || has(flag, "container:"),
            _ => has(flag, "none"),
        };
        if !is_gone {
            all.push(Difference {
                id: id.to_owned(),
                what: engines.what.to_owned(),
                advice: format!("`--{flag} {text}`"),
                price: engines.price.to_owned(),
                likelihood: engines.likelihood,
                may_be_needed: engines.may_be_needed,
                every_ns: None,
            });
        }
    }
    // A stable sort: the first of equal names, which is from the line, is kept.
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all.dedup_by(|later, first| later.id == first.id);
    all.sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
    all
}

fn of_flag(unit: &Unit, id: String, words: &str, command: &[String]) -> Option<Difference> {
    if unit.flag == "env" {
        return user_container::variable(unit.text(), None, "podman", command);
    }
    if let Some(target) = memory_mount(unit) {
        return Some(user_container::in_memory(&target, "podman"));
    }
    let known = field(&id);
    let likelihood = ENTRIES.iter().find(|(flag, ..)| *flag == unit.flag);
    let likelihood = likelihood.map(|(.., likelihood)| *likelihood);
    let compose = known.map(|field| field.compose).filter(|it| !it.is_empty());
    let compose = compose.map_or_else(String::new, |name| {
        format!(" (in a compose file: `{name}:`)")
    });
    Some(Difference {
        id,
        what: format!("`{words}`"),
        advice: format!("remove `{words}` from the `podman run` line{compose}"),
        price: known
            .map_or("what it was set for", |field| field.price)
            .to_owned(),
        likelihood: likelihood
            .or_else(|| known.map(|field| field.likelihood))
            .unwrap_or(0.2),
        may_be_needed: known.map_or(likelihood.is_none(), |field| field.may_be_needed)
            || unit.flag == "tmpfs",
        every_ns: None,
    })
}

/// Returns the flags without these differences. Names that end in `?` may be missing, but at least one of them must
/// exist.
///
/// # Errors
/// A name is not one of the container's differences.
pub(super) fn without(
    units: &[Unit],
    image_env: &[String],
    names: &[String],
) -> Result<Vec<Unit>, String> {
    let mut left = units.to_vec();
    let (mut n_optional, mut n_found) = (0, 0);
    for name in names.iter().filter(|name| !command::is_part(name)) {
        let (id, is_optional) = match name.strip_suffix('?') {
            Some(id) => (id, true),
            None => (name.as_str(), false),
        };
        n_optional += usize::from(is_optional);
        let is_found = take_away(&mut left, units, image_env, id);
        n_found += usize::from(is_optional && is_found);
        if !is_found && !is_optional {
            return Err(format!(
                "the container has no `{}` of its own",
                printable(id)
            ));
        }
    }
    if n_optional > 0 && n_found == 0 {
        return Err(
            "the container has nothing of its own that could be switched for it".to_owned(),
        );
    }
    Ok(left)
}

/// Removes a difference; returns whether it existed.
fn take_away(left: &mut Vec<Unit>, units: &[Unit], image_env: &[String], id: &str) -> bool {
    if let Some(Engines { flag, text, .. }) = ENGINES.iter().find(|it| it.id == id) {
        if *flag != "security-opt" {
            left.retain(|unit| unit.flag != *flag);
        }
        if id == "engine.network" {
            // Flags for the network namespace, which no longer exists.
            left.retain(|unit| {
                let is_sysctl = unit.flag == "sysctl" && unit.text().starts_with("net.");
                let goes = matches!(unit.flag.as_str(), "publish" | "publish-all" | "hostname");
                !(goes || is_sysctl)
            });
        }
        left.push(Unit::new(flag, *text));
        return true;
    }
    let is_it = |unit: &Unit| self::id(unit).as_deref() == Some(id);
    let with: Vec<&str> = WITH
        .iter()
        .filter(|(main, _)| *main == id)
        .map(|(_, part)| *part)
        .collect();
    let mut is_found = units.iter().any(is_it);
    left.retain(|unit| !is_it(unit) && !with.contains(&unit.flag.as_str()));
    if let Some(name) = id.strip_prefix("env.") {
        let is_name = |text: &String| text.split('=').next() == Some(name);
        if image_env.iter().any(is_name) {
            left.push(Unit::new("unsetenv", name));
            is_found = true;
        }
    }
    is_found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units() -> Vec<Unit> {
        [
            ("name", "web"),
            ("cpus", "0.5"),
            ("cpu-quota", "5000"),
            ("cpu-period", "10000"),
            ("memory", "64m"),
            ("memory-swap", "128m"),
            ("dns", "192.0.2.1"),
            ("dns", "192.0.2.2"),
            ("env", "PASSWORD=hush"),
            ("env", "N=3"),
            ("env", "MALLOC_ARENA_MAX=1"),
            ("sysctl", "net.core.somaxconn=5"),
            ("publish", "80:80"),
            ("volume", "/srv:/srv"),
            ("mount", "type=tmpfs,destination=/t,tmpfs-size=1m"),
            ("mount", "type=bind,src=/a,dst=/a"),
            ("log-opt", "path=/key"),
            ("newest", "5"),
        ]
        .map(|(flag, text)| Unit::new(flag, text))
        .into()
    }

    const IMAGE: [&str; 2] = ["OMP_NUM_THREADS=1", "PATH=/bin"];

    fn all() -> Vec<Difference> {
        let command = ["sh", "-c", "echo $N"].map(str::to_owned);
        differences(&units(), &IMAGE.map(str::to_owned), &command)
    }

    #[test]
    fn program_flags_are_differences_without_secrets() {
        let mut ids: Vec<String> = all().into_iter().map(|it| it.id).collect();
        ids.sort();
        assert_eq!(
            ids,
            [
                "cpu-quota",
                "cpus",
                "dns",
                "engine.log",
                "engine.network",
                "engine.seccomp",
                "env.MALLOC_ARENA_MAX",
                "env.OMP_NUM_THREADS",
                "env.PASSWORD",
                "log",
                "memory",
                "memory-swap",
                "newest",
                "publish",
                "sysctl.net.core.somaxconn",
                "tmpfs-mount./t",
            ]
        );
        let message = format!("{:?}", all());
        assert!(
            !message.contains("hush") && !message.contains("/key"),
            "{message}"
        );
        assert!(
            message.contains("`--dns 192.0.2.1 --dns 192.0.2.2`"),
            "{message}"
        );
    }

    #[test]
    fn each_difference_is_removed_with_dependent_flags() {
        let image = IMAGE.map(str::to_owned);
        let of = |ids: &[&str]| -> Result<String, String> {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            let left = without(&units(), &image, &ids)?;
            Ok(left.iter().map(Unit::word).collect::<Vec<_>>().join(" "))
        };
        let quota = of(&["cpu-quota"]).unwrap();
        assert!(
            !quota.contains("cpu-period") && quota.contains("--cpus=0.5"),
            "{quota}"
        );
        let memory = of(&["memory"]).unwrap();
        assert!(!memory.contains("--memory"), "{memory}");
        let image_env = of(&["env.OMP_NUM_THREADS"]).unwrap();
        assert!(
            image_env.ends_with(" --unsetenv=OMP_NUM_THREADS"),
            "{image_env}"
        );
        let network = of(&["engine.network"]).unwrap();
        assert!(
            network.ends_with("--network=host")
                && !network.contains("publish")
                && !network.contains("sysctl"),
            "{network}"
        );
        assert!(of(&["cpus?", "shm-size?"]).is_ok());
        assert!(of(&["shm-size"]).is_err() && of(&["shm-size?"]).is_err());
        for difference in all() {
            let left = of(&[&difference.id]).unwrap();
            assert_ne!(left, of(&[]).unwrap(), "{}", difference.id);
        }
    }
}
