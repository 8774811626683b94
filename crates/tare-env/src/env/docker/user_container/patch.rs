//! Changes the user's line so that some differences are gone: removes or adds words, and tries each change on the
//! client until its request is the wanted one.
//!
//! No flag is parsed: only the client knows which words belong together, and a change counts by the request that the
//! client then makes. Parts without a flag in the line (a variable of the image, an env file, what the engine does to
//! every container) are switched off by an added flag, if there is one.
//! Limits: two flags of the same meaning, of which the client lets the later win, are not recognised.

use crate::env::prelude::*;

use super::difference::{Pair, is_nothing, without};
use crate::env::user_container::fields::FIELDS;

/// Maximum number of client calls, each of which takes a twentieth of a second.
const ASKED_MOST: usize = 60;

/// A changed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patch {
    /// The whole line; it may contain secrets.
    pub(super) words: Vec<String>,
    /// A description of the change.
    pub(super) how: String,
}

/// One change of a line: words removed or inserted at a position.
struct Edit {
    place: usize,
    n_removed: usize,
    inserted: Vec<String>,
}

impl Edit {
    fn made(&self, words: &[String]) -> Vec<String> {
        let mut changed = words.to_vec();
        changed.splice(self.removed(), self.inserted.iter().cloned());
        changed
    }

    fn removed(&self) -> std::ops::Range<usize> {
        self.place..self.place + self.n_removed
    }

    /// The change in words: the flag, without the value of a variable.
    fn describe(&self, words: &[String]) -> String {
        let (word, flag) = if self.inserted.is_empty() {
            ("without", &words[self.removed()])
        } else {
            ("with", self.inserted.as_slice())
        };
        format!("{word} `{}`", shown(flag))
    }
}

/// Flags whose values hold no secrets, in addition to those of the table.
const TELLING: [&str; 20] = tare_model::rows! {
    "--cap-add", "--cap-drop", "--device", "--entrypoint", "--log-driver", "--net", "--network", "--publish",
    "--security-opt", "--tmpfs", "--ulimit", "--user", "--volume", "--workdir", "-c", "-m", "-p", "-u", "-v",
    "-w",
};

/// A flag, with its value only if that holds no secrets: short flags may be joined in one word, and newer clients may
/// have any flag.
fn shown(flag: &[String]) -> String {
    let text = flag.join(" ");
    let name = flag[0].split('=').next().unwrap_or_default();
    let is_telling = TELLING.contains(&name)
        || FIELDS
            .iter()
            .any(|field| field.flag == name && !matches!(field.id, "env" | "log" | "label"));
    let shown = match flag {
        _ if is_telling => text,
        // For a variable, only the name is shown.
        [one] if one.starts_with("--") => match one.splitn(3, '=').collect::<Vec<_>>()[..] {
            [_] => text,
            [flag, name, _] => format!("{flag}={name}=…"),
            _ => format!("{name}=…"),
        },
        [_, value] if matches!(name, "-e" | "--env") => {
            let variable = value.split('=').next().unwrap_or_default();
            let end = if value.contains('=') { "=…" } else { "" };
            format!("{name} {variable}{end}")
        }
        [one] if one.len() == 2 => text,
        _ if name.starts_with("--") => format!("{name} …"),
        _ => format!("{}…", name.chars().take(2).collect::<String>()),
    };
    printable(&shown.chars().take(120).collect::<String>())
}

/// The line without these differences, checked by the client through `ask`; `verb` is the position of `run`. `None`
/// if no change of words has exactly this effect.
pub(super) fn patched(
    words: &[String],
    verb: usize,
    pair: Pair<'_>,
    ids: &[String],
    mut ask: impl FnMut(&[String]) -> Option<Value>,
) -> Option<Patch> {
    let wanted = without(pair, ids).ok()?;
    let mut words = words.to_vec();
    let mut distance = different(pair.body, &wanted).len();
    let mut how = Vec::new();
    let mut asked = 0;
    while distance > 0 {
        let mut better = None;
        for edit in edits(&words, verb, ids) {
            if asked == ASKED_MOST {
                return None;
            }
            asked += 1;
            let changed = edit.made(&words);
            let Some(body) = ask(&changed) else {
                continue;
            };
            let now = different(&body, &wanted).len();
            if now < distance {
                better = Some((edit, changed, now));
                break;
            }
        }
        let (edit, changed, now) = better?;
        how.push(edit.describe(&words));
        (words, distance) = (changed, now);
    }
    (!how.is_empty()).then(|| Patch {
        words,
        how: how.join(" and "),
    })
}

/// Possible changes, the likeliest first: remove flags that look like the difference, add a flag that switches it
/// off, remove any other flag.
fn edits(words: &[String], verb: usize, ids: &[String]) -> Vec<Edit> {
    let flags = (verb + 1..words.len()).filter(|place| words[*place].starts_with('-'));
    let looks_alike = |place: usize| {
        let near: String = words[place..words.len().min(place + 2)].join(" ");
        ids.iter().any(|id| {
            let last = id.split_once('.').map_or(id.as_str(), |(_, name)| name);
            near.contains(last)
        })
    };
    let (near, far): (Vec<usize>, Vec<usize>) = flags.partition(|place| looks_alike(*place));
    let out = |place: usize| {
        // `--flag=value` is one word, `--flag value` two.
        let is_one = words[place].contains('=') || place + 1 == words.len();
        let lengths = if is_one { &[1][..] } else { &[2, 1] };
        lengths.iter().map(move |&n_removed| Edit {
            place,
            n_removed,
            inserted: Vec::new(),
        })
    };
    let put = ids.iter().filter_map(|id| opposite(id));
    let put = put.map(|inserted| Edit {
        place: verb + 1,
        n_removed: 0,
        inserted,
    });
    let near = near.into_iter().flat_map(out);
    near.chain(put)
        .chain(far.into_iter().flat_map(out))
        .collect()
}

/// The flag that switches off a part that no flag added.
fn opposite(id: &str) -> Option<Vec<String>> {
    let flag: &[&str] = match id {
        "engine.seccomp" => &["--security-opt", "seccomp=unconfined"],
        "engine.apparmor" => &["--security-opt", "apparmor=unconfined"],
        "engine.network" => &["--network", "host"],
        "engine.log" => &["--log-driver", "none"],
        "health" => &["--no-healthcheck"],
        _ => {
            let name = id.strip_prefix("env.")?;
            // A name without a value, unset here too: removes even the image's.
            return Some(vec!["--env".to_owned(), name.to_owned()]);
        }
    };
    Some(flag.iter().map(|word| (*word).to_owned()).collect())
}

/// The places where two configurations differ; empty values equal absent ones.
fn different(one: &Value, other: &Value) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    compare("", one, other, &mut places);
    places
}

fn compare(place: &str, one: &Value, other: &Value, places: &mut BTreeSet<String>) {
    if one == other || (is_nothing(one) && is_nothing(other)) {
        return;
    }
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let of = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
                compare(&format!("{place}/{name}"), &of(a), &of(b), places);
            }
        }
        (Value::Array(_) | Value::Null, Value::Array(_) | Value::Null) => {
            // Compared entry by entry, in any order, so that removing a flag shortens the distance.
            let texts = |value: &Value| -> BTreeSet<String> {
                entries_of(value).map(Value::to_string).collect()
            };
            let (a, b) = (texts(one), texts(other));
            places.extend(
                a.symmetric_difference(&b)
                    .map(|text| format!("{place}={text}")),
            );
        }
        _ => {
            places.insert(place.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    /// A client that knows a few flags; everything after the image is the command.
    fn client(line: &[String]) -> Option<Value> {
        let mut host = json!({"NetworkMode": "default"});
        let mut env = Vec::new();
        let mut health = json!({});
        let mut words = line.iter().skip(2);
        let mut image = None;
        while let Some(word) = words.next() {
            let (flag, text) = match word.split_once('=') {
                Some((flag, text)) if flag.starts_with("--") => (flag, Some(text.to_owned())),
                _ => (word.as_str(), None),
            };
            if flag == "--init" {
                host["Init"] = json!(true);
                continue;
            }
            if flag == "--no-healthcheck" {
                health["Test"] = json!(["NONE"]);
                continue;
            }
            if !flag.starts_with('-') {
                image = Some(flag.to_owned());
                break;
            }
            let text = text.or_else(|| words.next().cloned())?;
            match flag {
                "-c" | "--cpu-shares" => host["CpuShares"] = json!(text.parse::<u32>().ok()?),
                "--network" => host["NetworkMode"] = json!(text),
                "--security-opt" => host["SecurityOpt"] = json!([text]),
                "--log-driver" => host["LogConfig"] = json!({"Type": text, "Config": {}}),
                "-e" | "--env" => env.push(text),
                "--health-cmd" => health["Test"] = json!(["CMD-SHELL", text]),
                "--health-interval" => health["Interval"] = json!(text),
                _ => return None,
            }
        }
        let command: Vec<&String> = words.collect();
        Some(
            json!({"Image": image?, "Env": env, "Cmd": command, "HostConfig": host, "Healthcheck": health}),
        )
    }

    fn patch(line: &str, ids: &[&str], image_env: &[&str]) -> Option<(String, String)> {
        let line = words(line);
        let (body, plain) = (client(&line).unwrap(), client(&words("docker create x")));
        let image_env: Vec<String> = image_env.iter().map(|text| (*text).to_owned()).collect();
        let plain = plain.unwrap();
        let pair = Pair {
            body: &body,
            plain: &plain,
            image_env: &image_env,
            // The image named `checked` has a health check.
            images_check_ns: (body["Image"] == "checked").then_some(1),
            copied: &[],
            limits: &[],
        };
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let patch = patched(&line, 1, pair, &ids, client)?;
        Some((patch.words.join(" "), patch.how))
    }

    #[test]
    fn removing_difference_drops_only_its_flag_words() {
        let line = "docker run --init -c 2 -e A=1 --env=B=hush x sh -c 2";
        // The command contains the same words.
        assert_eq!(
            patch(line, &["cpu-shares"], &[]).unwrap(),
            (
                "docker run --init -e A=1 --env=B=hush x sh -c 2".to_owned(),
                "without `-c 2`".to_owned()
            )
        );
        let (words, how) = patch(line, &["env.A", "env.B"], &[]).unwrap();
        assert_eq!(words, "docker run --init -c 2 x sh -c 2");
        assert_eq!(how, "without `-e A=…` and without `--env=B=…`");
        assert_eq!(patch(line, &["init"], &[]).unwrap().1, "without `--init`");
    }

    #[test]
    fn secret_flag_values_are_not_shown() {
        for (flag, how) in [
            (&["-e", "DB_PASSWORD=hush"][..], "-e DB_PASSWORD=…"),
            (&["--env=DB_PASSWORD=hush"], "--env=DB_PASSWORD=…"),
            (&["-ePASSWORD=hush"], "-e…"),
            (&["-itePASSWORD=hush"], "-i…"),
            (
                &["--mount", "type=volume,volume-opt=o=password=hush"],
                "--mount …",
            ),
            (
                &["--mount=type=volume,volume-opt=o=password=hush"],
                "--mount=type=…",
            ),
            (&["--annotation", "token=hush"], "--annotation …"),
            (&["--health-cmd", "curl -u me:hush x"], "--health-cmd …"),
            (&["--newest=hush"], "--newest=…"),
            (&["-l", "token=hush"], "-l…"),
            (&["-c", "2"], "-c 2"),
            (&["--cpu-shares=2"], "--cpu-shares=2"),
            (&["--init"], "--init"),
            (&["-i"], "-i"),
        ] {
            let flag: Vec<String> = flag.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(shown(&flag), how);
        }
    }

    #[test]
    fn patch_adds_missing_flag_or_drops_all_health_flags() {
        let checked = "docker run --health-cmd=true --health-interval 1s --init x sh";
        for (line, id, image_env, patched, how) in tare_model::rows! {
            (
                "docker run --init x sh",
                "engine.seccomp",
                &[][..],
                "docker run --security-opt seccomp=unconfined --init x sh",
                "with `--security-opt seccomp=unconfined`",
            ),
            ("docker run --init x sh", "env.SLOW", &["SLOW=1"], "docker run --env SLOW --init x sh", "with `--env SLOW`"),
            (checked, "health", &[], "docker run --init x sh", "without `--health-cmd=…` and without `--health-interval …`"),
            ("docker run checked sh", "health", &[], "docker run --no-healthcheck checked sh", "with `--no-healthcheck`"),
        } {
            let found = patch(line, &[id], image_env).unwrap();
            assert_eq!((found.0.as_str(), found.1.as_str()), (patched, how));
        }
    }

    #[test]
    fn patch_of_absent_difference_is_none() {
        // The line does not have this difference.
        assert_eq!(patch("docker run x sh", &["cpu-shares"], &[]), None);
    }

    #[test]
    fn empty_values_are_not_differences() {
        let one = json!({"A": null, "B": [], "C": {"D": 0}, "E": ["x", "y"]});
        let other = json!({"C": {}, "E": ["y"]});
        let places = different(&one, &other);
        assert_eq!(places.into_iter().collect::<Vec<_>>(), ["/E=\"x\""]);
    }
}
