//! Mounts as parts: the file system below a mount is removed by putting the same files into the container's own
//! layer; a settings file that the image lacks can also be removed itself.
//!
//! Pure: the configuration decides which mounts can be removed so; the copies of their files are made in
//! [`copies`](super::super::copies).
//! Limits: symbolic links in the image on the path to a mount are not seen.

use crate::env::prelude::*;

use super::{Pair, Part, Switch, is_nothing};
use crate::env::user_container::share::{self, Share};
use crate::env::user_container::shared::Copy;
use crate::env::user_container::{self, Shares, is_difference};

/// What is mounted at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Holds {
    /// A folder.
    Folder,
    /// A single file.
    File,
    /// A single file over one of the image, which reappears without the mount: the contents of such a file matter
    /// more than its location.
    OverImages,
}

/// The files below a mount, copied once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// The mount point.
    pub(crate) target: String,
    /// The engine's archive of the files.
    pub(crate) archive: PathBuf,
    /// What is mounted.
    pub(crate) holds: Holds,
    /// Whether the mount can be removed, with its files in the layer.
    pub(crate) may_go: bool,
    /// Whether the copy replaces the mount, because the command writes there.
    pub(crate) stands_in: bool,
    /// Whether its file system may be slower than a usual disk.
    pub(crate) is_slow: bool,
}

impl Copied {
    /// Where the files are copied to in an arm without these parts, if they are.
    pub(crate) fn copy(&self, without: &[String]) -> Option<Copy> {
        let lacks = |part: &str| without.iter().any(|id| id.trim_end_matches('?') == part);
        if lacks(&settings_id_of(&self.target)) {
            return None;
        }
        if self.may_go && lacks(&id_of(&self.target)) {
            return Some(match self.holds {
                Holds::OverImages => Copy::Images,
                Holds::Folder | Holds::File => Copy::Layer,
            });
        }
        self.stands_in.then_some(match self.holds {
            Holds::Folder => Copy::Volume,
            Holds::File | Holds::OverImages => Copy::Layer,
        })
    }
}

fn id_of(target: &str) -> String {
    format!("mounted.{target}")
}

fn settings_id_of(target: &str) -> String {
    format!("settings.{target}")
}

/// Endings of the names of files that programs, libraries and interpreters read as settings, if they exist.
const SETTINGS: [&str; 7] = tare_model::rows! {
    "cfg", "cnf", "conf", "ini", "properties", "pth", "rc",
};

/// Whether a file is read as settings by convention. Other files may be the program's input: without it there is less
/// work to do.
fn has_settings(target: &str) -> bool {
    let target = Path::new(target);
    let mut folders = target.iter().filter_map(std::ffi::OsStr::to_str);
    let ending = target.extension().and_then(std::ffi::OsStr::to_str);
    folders.any(|it| it == "etc") || ending.is_some_and(|it| SETTINGS.contains(&it))
}

/// The shares that can be removed, and the paths of the others with the reason why not. `image_volumes` are the mount
/// points of the image's volumes.
pub(crate) fn switchable(
    body: &Value,
    policy: Shares,
    image_volumes: &[String],
) -> (Vec<Share>, Vec<(String, &'static str)>) {
    let places = places(body, image_volumes);
    let (mut able, mut others) = (Vec::new(), Vec::new());
    for share in share::shares(body) {
        let hindrance = if policy == Shares::Shared {
            Some("the command may write there")
        } else if places
            .iter()
            .filter(|place| **place == share.target)
            .count()
            > 1
        {
            Some("the image has a volume there")
        } else if !is_difference(&id_of(&share.target)) {
            Some("its path has letters that no name may have")
        } else {
            unfit(body, &share, &places)
        };
        match hindrance {
            None => able.push(share),
            Some(_) if share.steers() => {}
            Some(why) => others.push((share.target, why)),
        }
    }
    (able, others)
}

/// The shares that the command could write to and of which every arm can have its own copy. `image_volumes` as above.
pub(crate) fn copyable(body: &Value, image_volumes: &[String]) -> Vec<Share> {
    let places = places(body, image_volumes);
    let shares = share::shares(body).into_iter();
    shares
        .filter(|share| share.may_write && !share.source.is_empty())
        .filter(|share| unfit(body, share, &places).is_none())
        .collect()
}

/// Why the files of a share cannot be copied to its path.
fn unfit(body: &Value, share: &Share, places: &[String]) -> Option<&'static str> {
    let has = |name: &str| !is_nothing(&body["HostConfig"][name]);
    let target = Path::new(&share.target);
    let is_other = |place: &&String| **place != share.target;
    let is_near = |place: &String| {
        let place = Path::new(place);
        place.starts_with(target) || target.starts_with(place)
    };
    let is_kernels =
        |top: &&str| *top == share.source || share.source.starts_with(&format!("{top}/"));
    if has("ReadonlyRootfs") {
        Some("the container's own layer cannot be written to")
    } else if has("VolumesFrom") || places.iter().filter(is_other).any(is_near) {
        Some("something else may be mounted above or below it")
    } else if share.steers() || ["/proc", "/sys", "/dev"].iter().any(is_kernels) {
        Some("these are no files")
    } else if share.source == "/" {
        Some("it is the whole machine")
    } else if !is_plain(&share.target) {
        Some("its path has letters that no name may have")
    } else {
        None
    }
}

/// Whether a path is absolute and has nothing to resolve.
fn is_plain(path: &str) -> bool {
    let mut names = path.split('/');
    names.next() == Some("")
        && !path.contains(',')
        && names.all(|name| !matches!(name, "" | "." | ".."))
}

/// All paths inside with a mount.
fn places(body: &Value, image_volumes: &[String]) -> Vec<String> {
    let host = &body["HostConfig"];
    let keys = |map| members_of(map).map(|(name, _)| name.clone());
    let mut volumes: Vec<String> = keys(&body["Volumes"]).collect();
    // The format of the engine's own client library.
    volumes.extend(texts_of(&body["Volumes"]).map(str::to_owned));
    volumes.extend(image_volumes.iter().cloned());
    volumes.sort();
    volumes.dedup();
    let of_binds = texts_of(&host["Binds"]).filter_map(|bind| {
        let words: Vec<&str> = bind.split(':').collect();
        words
            .get(1)
            .or(words.first())
            .map(|word| (*word).to_owned())
    });
    let of_mounts =
        entries_of(&host["Mounts"]).filter_map(|mount| mount["Target"].as_str().map(str::to_owned));
    of_binds
        .chain(of_mounts)
        .chain(keys(&host["Tmpfs"]))
        .chain(volumes)
        .collect()
}

/// The mounts whose files were copied, each as a part.
pub(super) fn of_mounts(pair: Pair<'_>) -> Vec<Part> {
    let copied = |share: Share| {
        let mut copied = pair.copied.iter();
        let copied = copied.find(|it| it.may_go && it.target == share.target)?;
        Some((share, copied))
    };
    share::shares(pair.body)
        .into_iter()
        .filter_map(copied)
        .map(|(share, copied)| {
            let is_images = copied.holds == Holds::OverImages;
            let target = printable(&share.target);
            let flag = if share.source.is_empty() {
                format!("-v {target}")
            } else {
                format!("-v {}:{target}", printable(&share.source))
            };
            let (what, price) = if is_images {
                (
                    format!("the file that is mounted over the image's `{target}` (`{flag}`)"),
                    "the image's own file counts",
                )
            } else {
                (
                    format!("the file system below `{target}` (`{flag}`)"),
                    "the files are as they were when they were copied, and what is written there goes with the container",
                )
            };
            Part::new(
                id_of(&share.target),
                what,
                advice(&target, &flag, is_images),
                price,
                if copied.is_slow { 0.8 } else { 0.35 },
                Switch::Mount(share.target),
            )
            .may_be_needed(true)
        })
        .collect()
}

/// Settings files that the image lacks, each as a part.
pub(super) fn of_settings(pair: Pair<'_>) -> Vec<Part> {
    let is_new = |target: &String| {
        let mut copied = pair.copied.iter();
        copied.any(|it| it.may_go && it.holds == Holds::File && it.target == *target)
    };
    let targets = share::shares(pair.body).into_iter().map(|it| it.target);
    targets
        .filter(|target| is_new(target) && has_settings(target))
        .filter(|target| !ENGINES_FILES.contains(&target.as_str()))
        .map(|target| {
            let shown = printable(&target);
            Part::new(
                settings_id_of(&target),
                format!("the mounted file `{shown}`, which the image lacks"),
                format!(
                    "see what `{shown}` says, or do not mount it (in a compose file: below `volumes:`)"
                ),
                "whatever it was written for",
                0.4,
                Switch::Mount(target),
            )
            .may_be_needed(true)
        })
        .collect()
}

/// Files that engines write into every container; a mount there replaces the engine's file.
const ENGINES_FILES: [&str; 3] = ["/etc/hosts", "/etc/resolv.conf", "/etc/hostname"];

fn advice(target: &str, flag: &str, is_images: bool) -> String {
    if ENGINES_FILES.contains(&target) {
        return format!(
            "have fewer lines in the file, or remove `{flag}` from the `docker run` line: the engine writes its own (`--add-host`, `--dns`)"
        );
    }
    if is_images {
        return format!(
            "see what the file says that the image's does not, or remove `{flag}` from the `docker run` line (in a compose file: below `volumes:`)"
        );
    }
    format!(
        "have the files of `{target}` in the container's own layer: remove `{flag}` from the `docker run` line, and put `COPY … {target}` into the image's Dockerfile (in a compose file: below `volumes:`)"
    )
}

/// tmpfs file systems that are requested as mounts, each as a part.
pub(super) fn of_memory(pair: Pair<'_>) -> Vec<Part> {
    entries_of(&pair.body["HostConfig"]["Mounts"])
        .filter(|mount| mount["Type"] == "tmpfs")
        .filter_map(|mount| mount["Target"].as_str())
        .map(|target| Part {
            difference: user_container::in_memory(target, "docker"),
            switch: Switch::Mount(target.to_owned()),
        })
        .collect()
}

/// Removes the mount at a path.
pub(super) fn take_away(body: &mut Value, target: &str) {
    let host = &mut body["HostConfig"];
    if let Value::Array(binds) = &mut host["Binds"] {
        let of = |bind: &Value| bind.as_str().and_then(Share::of_bind);
        binds.retain(|bind| of(bind).is_none_or(|share| share.target != target));
    }
    if let Value::Array(mounts) = &mut host["Mounts"] {
        mounts.retain(|mount| mount["Target"] != target);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{less, pair};
    use super::*;

    fn body() -> Value {
        json!({
            "Image": "x", "Volumes": {"/anonymous": {}},
            "HostConfig": {
                "Binds": ["/srv/data:/data:ro", "cache:/var/cache", "/proc:/host", "/a:/a", "/b:/a/b",
                          "/var/run/docker.sock:/var/run/docker.sock", "/odd:/o,dd", "/img:/volume"],
                "Mounts": [{"Type": "bind", "Source": "/m", "Target": "/mounted"}, {"Type": "tmpfs", "Target": "/t"}]
            }
        })
    }

    fn copied(target: &str, holds: Holds) -> Copied {
        Copied {
            target: target.into(),
            archive: "/run/files".into(),
            holds,
            may_go: true,
            stands_in: false,
            is_slow: false,
        }
    }

    fn able(body: &Value, policy: Shares) -> (Vec<String>, String) {
        let (able, others) = switchable(body, policy, &["/volume".to_owned()]);
        let able = able.into_iter().map(|share| share.target).collect();
        (able, format!("{others:?}"))
    }

    #[test]
    fn isolated_mount_is_a_part_if_files_fit_layer() {
        let (targets, others) = able(&body(), Shares::ReadOnly);
        assert_eq!(targets, ["/data", "/var/cache", "/mounted"]);
        for place in ["/host", "/a\"", "/a/b", "/o,dd", "/volume"] {
            assert!(others.contains(place), "{place}: {others}");
        }
        assert!(!others.contains("docker.sock"), "{others}");
        let shared = able(&body(), Shares::Shared);
        assert!(shared.0.is_empty(), "{shared:?}");
        for (name, value) in [
            ("ReadonlyRootfs", json!(true)),
            ("VolumesFrom", json!(["x"])),
        ] {
            let mut body = body();
            body["HostConfig"][name] = value;
            assert!(able(&body, Shares::ReadOnly).0.is_empty(), "{name}");
        }
    }

    #[test]
    fn writable_mounts_have_copies_even_image_volumes() {
        let volumes = ["/volume".to_owned()];
        let targets = |body: &Value| -> Vec<String> {
            let shares = copyable(body, &volumes).into_iter();
            shares.map(|share| share.target).collect()
        };
        assert_eq!(targets(&body()), ["/var/cache", "/volume", "/mounted"]);
        let mut fixed = body();
        fixed["HostConfig"]["ReadonlyRootfs"] = json!(true);
        assert!(targets(&fixed).is_empty());
    }

    #[test]
    fn only_copied_mounts_are_parts_removed_separately() {
        let (body, plain) = (body(), json!({}));
        let copied = [
            Copied {
                stands_in: true,
                is_slow: true,
                ..copied("/data", Holds::Folder)
            },
            copied("/mounted", Holds::OverImages),
        ];
        let pair = Pair {
            copied: &copied,
            ..pair(&body, &plain, &[])
        };
        let parts = of_mounts(pair);
        let ids: Vec<&str> = parts
            .iter()
            .map(|part| part.difference.id.as_str())
            .collect();
        assert_eq!(ids, ["mounted./data", "mounted./mounted"]);
        assert!(parts[0].difference.likelihood > parts[1].difference.likelihood);
        assert!(of_settings(pair).is_empty());
        let copy = |copied: &Copied, id: &str| copied.copy(&[id.to_owned()]);
        assert_eq!(copy(&copied[0], "mounted./data"), Some(Copy::Layer));
        assert_eq!(copy(&copied[0], "mounted./mounted"), Some(Copy::Volume));
        assert_eq!(copy(&copied[1], "mounted./data"), None);
        let images = copy(&copied[1], "mounted./mounted");
        assert_eq!(images, Some(Copy::Images));
        assert!(
            parts[1]
                .difference
                .what
                .contains("over the image's `/mounted`")
        );
        assert!(parts[0].difference.what.contains("`-v /srv/data:/data`"));
        let host = &less(pair, "mounted./data")["HostConfig"];
        assert_eq!(host["Binds"].as_array().unwrap().len(), 7);
        assert_eq!(host["Mounts"], body["HostConfig"]["Mounts"]);
        let host = &less(pair, "mounted./mounted")["HostConfig"];
        assert_eq!(host["Binds"], body["HostConfig"]["Binds"]);
        assert_eq!(host["Mounts"], json!([{"Type": "tmpfs", "Target": "/t"}]));
        assert_eq!(of_memory(pair)[0].difference.id, "tmpfs-mount./t");
        let mounts = &less(pair, "tmpfs-mount./t")["HostConfig"]["Mounts"];
        assert_eq!(mounts.as_array().unwrap().len(), 1, "{mounts}");
    }
    #[test]
    fn settings_file_that_the_image_lacks_is_a_part_of_its_own() {
        let bind = |target: &str| format!("/srv/file:{target}:ro");
        let targets = [
            "/etc/ld.so.preload",
            "/opt/x/php.ini",
            "/srv/input.csv",
            "/etc/hosts",
        ];
        let body = json!({"HostConfig": {"Binds": targets.map(bind)}});
        let copied = targets.map(|target| copied(target, Holds::File));
        let plain = json!({});
        let pair = Pair {
            copied: &copied,
            ..pair(&body, &plain, &[])
        };
        let parts = of_settings(pair);
        let ids: Vec<&str> = parts.iter().map(|it| it.difference.id.as_str()).collect();
        assert_eq!(
            ids,
            ["settings./etc/ld.so.preload", "settings./opt/x/php.ini"]
        );
        let binds = &less(pair, ids[0])["HostConfig"]["Binds"];
        assert_eq!(binds.as_array().unwrap().len(), 3);
        // Without the file it is not copied either.
        let location = format!("mounted.{}", targets[0]);
        assert_eq!(
            copied[0].copy(std::slice::from_ref(&location)),
            Some(Copy::Layer)
        );
        assert_eq!(copied[0].copy(&[location, ids[0].to_owned()]), None);
    }
}
