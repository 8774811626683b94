//! Runs an image's files as a bare process: the baseline of a user's container, without any container.
//!
//! The layers of the engine's `overlay2` are put below an overlay of Tare's if this machine can read them; they are
//! only read. Otherwise the engine exports the files of a container that is created for this and never started, into
//! the run's folder, where they are removed with the run. The user's folders and volumes that stay are mounted
//! read-only, unless they may be written to; the files of a removed mount are in a layer above the image's, as in a
//! plain container.
//! Limits: layers of other storage drivers are not read; their files are copied.

use crate::env::prelude::*;

use std::path::Component;

use bollard::models::{ContainerCreateBody, DriverData, ImageInspect};

use super::super::Docker;
use super::super::api::Api;
use super::difference::{self, split};
use super::template::Template;
use super::{Copy, EngineMachine, resolver, temporary};
use crate::env::container::layers::Layers;
use crate::env::image::packed;
use crate::env::user_container::machine::Machine;
use crate::env::user_container::share::shares;
use crate::env::user_container::{Bare, ContainerRequest, LIKE, Shares, UserContainer};

/// Maximum that is copied of an image whose layers cannot be read, bytes.
const COPIED_MOST: u64 = 1 << 30;
/// Maximum length of the layers in the mount options, which are limited to one page; the rest is for the other
/// folders.
const OPTIONS_MOST: usize = 3000;
/// The default search path of engines, for images without one.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Folders that get new mounts inside.
const MOUNTED: [&str; 3] = ["proc", "sys", "dev"];
/// Files for name resolution that engines put into every container.
const NAMES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];

fn absent(why: impl Into<String>) -> EnvError {
    EnvError::unavailable(why)
}

/// The inputs for laying out an image's files.
struct Laying<'a> {
    cx: &'a Context<'a>,
    api: &'a Api,
    machine: &'a dyn Machine,
    template: &'a Template,
    image: &'a ImageInspect,
    folder: &'a Path,
    /// Folders of the layers, the uppermost first.
    lower: Vec<String>,
    /// The mechanisms that protect the user from a bare process.
    kept: &'a Params,
}

impl Docker {
    /// The files of what was taken as bare processes: [`crate::env::Driver::take_bare`].
    pub(crate) fn taken_bare(
        &self,
        cx: &Context<'_>,
        wish: &ContainerRequest<'_>,
        taken: &UserContainer,
    ) -> Result<Vec<Bare>, EnvError> {
        let (api, engine) = self.identify_linux(cx)?;
        let machine = EngineMachine::new(&api, &engine);
        if let Some(why) = engine.elsewhere {
            return Err(absent(why));
        }
        let like = taken.settings.text(LIKE).unwrap_or_default();
        let (template, image) = Template::read(cx, &api, like)?;
        check(&template.body, &image)?;
        let mut laying = Laying {
            cx,
            api: &api,
            machine: &machine,
            template: &template,
            image: &image,
            folder: wish.folder,
            lower: Vec::new(),
            kept: &taken.bare,
        };
        laying.lower = match image.graph_driver.as_ref().and_then(layers_of) {
            Some(layers) => layers,
            None => vec![laying.exported()?],
        };
        // Things that the program may need and a bare process can have.
        let is_usable = |id: &str| {
            ["env.", "mounted./", "settings./", "dns"]
                .iter()
                .any(|it| id.starts_with(it))
        };
        let mut all = taken.barest_first(is_usable);
        // Each has its own copies of the mounted files.
        if all.len() > 2 && !template.copied_for(&all[0]).is_empty() {
            all.drain(1..all.len() - 1);
        }
        let all = all.into_iter().enumerate();
        all.map(|(n, without)| laying.over(without, &format!("own-bare-{n}")))
            .collect()
    }
}

/// Rejects containers that cannot run as a bare process on this machine.
fn check(body: &Value, image: &ImageInspect) -> Result<(), EnvError> {
    let own = body["User"].as_str().unwrap_or_default();
    let config = image.config.as_ref();
    let images = config.and_then(|config| config.user.as_deref());
    let user = if own.is_empty() {
        images.unwrap_or_default()
    } else {
        own
    };
    if !matches!(user.split(':').next(), Some("" | "0" | "root")) {
        return Err(absent(format!(
            "it runs as the user `{}`, and a bare process here as root",
            printable(user)
        )));
    }
    let built_for = image.architecture.as_deref().unwrap_or_default();
    let is_foreign = packed::machine(built_for) != std::env::consts::ARCH;
    if is_foreign && !built_for.is_empty() {
        return Err(absent(format!(
            "the image is built for {}, which needs the engine's emulation",
            printable(built_for)
        )));
    }
    if entries_of(&body["HostConfig"]["VolumesFrom"])
        .next()
        .is_some()
    {
        return Err(absent("it has the volumes of another container"));
    }
    Ok(())
}

/// The folders of an image's layers, the uppermost first, if the engine stores them in overlayfs format and this
/// machine sees them. Uses the engine's short links, because mount options are limited to one page.
fn layers_of(driver: &DriverData) -> Option<Vec<String>> {
    if driver.name != "overlay2" {
        return None;
    }
    let of = |name: &str| driver.data.get(name).map(String::as_str);
    let below = of("LowerDir").unwrap_or_default();
    let all = std::iter::once(of("UpperDir")?).chain(below.split(':'));
    let layers: Vec<String> = all
        .filter(|layer| !layer.is_empty())
        .map(short)
        .collect::<Option<_>>()?;
    let length: usize = layers.iter().map(|layer| layer.len() + 1).sum();
    (length <= OPTIONS_MOST).then_some(layers)
}

/// The engine's short link to a layer. A folder without one is not the engine's, but another one at the same path on
/// this machine.
fn short(layer: &str) -> Option<String> {
    let folder = Path::new(layer).parent()?;
    let link = files::read_text(&folder.join("link")).ok()?;
    let short = folder.parent()?.join("l").join(link.trim());
    let is_same = files::canonical(&short).ok()? == files::canonical(Path::new(layer)).ok()?;
    is_same.then(|| short.display().to_string())
}

impl Laying<'_> {
    /// Has the engine copy the image's files into the run's folder, and returns that folder.
    fn exported(&self) -> Result<String, EnvError> {
        let size = self.image.size.unwrap_or_default();
        let too_large = || {
            absent(
                "the engine's layers cannot be read from here, and the image holds more than 1 GiB, which is not copied",
            )
        };
        if u64::try_from(size).unwrap_or_default() > COPIED_MOST {
            return Err(too_large());
        }
        let body = ContainerCreateBody {
            image: Some(self.template.image().to_owned()),
            ..Default::default()
        };
        let what = (
            "export",
            "create a container to export the image's files from",
        );
        let archive = self.folder.join("own-image.tar");
        let is_whole = temporary::with(self.cx, self.api, what, body, |name| {
            let stream = self.api.client.export_container(name);
            let what = "export the image's files";
            temporary::receive_file(self.api, what, stream, COPIED_MOST, &archive)
        })?;
        let folder = self.folder.join("own-image");
        let unpacked = if is_whole {
            files::unpack(&archive, &folder).map_err(EnvError::from)
        } else {
            Err(too_large())
        };
        files::remove(&archive)?;
        unpacked.map(|()| folder.display().to_string())
    }

    /// The bare process on these layers without these differences.
    fn over(&self, without: Vec<String>, name: &str) -> Result<Bare, EnvError> {
        let body = difference::without(self.template.pair(), &without).map_err(absent)?;
        let body = self.template.shown(&body, self.machine, &mut Vec::new());
        let mut layers = Layers {
            lower: self.lower.clone(),
            variables: variables_of(&body, &self.template.image_env),
            binds: self.binds(&body, &without)?,
        };
        let laid = self.laid(&layers.binds, &without, name)?;
        layers.lower.insert(0, laid);
        let file = self.folder.join(format!("{name}.json"));
        let mut kept = self.kept.clone();
        let has_bridge = kept.value("bridge").is_some();
        if has_bridge || resolver::is_given(&body) {
            let names = self.folder.join(format!("{name}-resolv.conf"));
            kept = kept.with("binds", resolver::written(&names, &body)?);
        }
        layers.kept(&file, without, &kept)
    }

    /// The bind mounts from this machine.
    fn binds(&self, body: &Value, without: &[String]) -> Result<Vec<Bind>, EnvError> {
        let copies = self.template.copied_for(without);
        if self.template.shares == Shares::Copied
            && copies.iter().any(|(_, it)| *it == Copy::Volume)
        {
            return Err(absent("the command writes to copies of what is yours"));
        }
        if hides_mounts(body) {
            return Err(absent(
                "something is mounted below a folder of yours, and stays out of its copies",
            ));
        }
        let is_here = |path: &&&str| files::canonical(Path::new(path)).is_ok();
        let mut binds: Vec<Bind> = NAMES
            .iter()
            .filter(is_here)
            .map(|path| Bind {
                source: (*path).to_owned(),
                target: (*path).to_owned(),
                read_only: true,
            })
            .collect();
        for share in shares(body) {
            if !is_plain(&share.target) {
                return Err(absent(format!(
                    "`{}`, where something is mounted inside, is no plain path",
                    printable(&share.target)
                )));
            }
            let source = match share.source.as_str() {
                // A new, empty volume: the image's files there stay visible.
                "" => continue,
                _ if share.is_folder() => share.source.clone(),
                volume => self.mounted_at(volume)?,
            };
            binds.push(Bind {
                source,
                target: share.target,
                read_only: !share.may_write,
            });
        }
        binds.extend(self.directory(body)?);
        Ok(binds)
    }

    /// The path of a volume's files on this machine.
    fn mounted_at(&self, volume: &str) -> Result<String, EnvError> {
        let request = self.api.client.inspect_volume(volume);
        let found = self
            .api
            .call("inspect the volume", CONTROL_LIMIT, request)?;
        let is_here = files::canonical(Path::new(&found.mountpoint)).is_ok();
        if found.driver == "local" && found.options.is_empty() && is_here {
            return Ok(found.mountpoint);
        }
        Err(absent(format!(
            "the files of the volume `{}` cannot be read from here",
            printable(volume)
        )))
    }

    /// A bind mount for the working directory, if the image lacks it: engines create it.
    fn directory(&self, body: &Value) -> Result<Option<Bind>, EnvError> {
        let directory = super::started(body, self.image).directory;
        if directory == "/" || directory.split('/').any(|part| part == "..") {
            return Ok(None);
        }
        let has_it = |layer: &String| {
            let place = Path::new(layer).join(directory.trim_start_matches('/'));
            files::kind(&place).is_ok()
        };
        if self.lower.iter().any(has_it) {
            return Ok(None);
        }
        let source = self.folder.join("own-directory");
        files::create_folder(&source)?;
        Ok(Some(Bind {
            source: source.display().to_string(),
            target: directory,
            read_only: false,
        }))
    }

    /// A layer above the image's with the mount points, so that no link in the image redirects a mount, and with the
    /// files of the removed mounts.
    fn laid(&self, binds: &[Bind], without: &[String], name: &str) -> Result<String, EnvError> {
        let layer = self.folder.join(format!("{name}-files"));
        let below = |path: &str| layer.join(path.trim_start_matches('/'));
        for place in MOUNTED {
            files::create_output_folder(&below(place))?;
        }
        files::show_to_all(&layer)?;
        for bind in binds {
            let place = below(&bind.target);
            let kind = files::kind(&files::canonical(Path::new(&bind.source))?)?;
            if matches!(kind, files::Kind::Folder { .. }) {
                files::create_output_folder(&place)?;
            } else {
                files::create_output_folder(place.parent().unwrap_or(&layer))?;
                files::write_output(&place, b"")?;
            }
        }
        for (copied, _) in self.template.copied_for(without) {
            let parent = Path::new(&copied.target).parent();
            let parent = parent.map_or(layer.clone(), |it| below(&it.display().to_string()));
            files::unpack(&copied.archive, &parent)?;
        }
        if layer.display().to_string().contains([',', ':', '\\', '"']) {
            return Err(absent(
                "Tare's own folder has a comma, a colon or a backslash in its path",
            ));
        }
        Ok(layer.display().to_string())
    }
}

/// Whether a folder has mounts below it that containers do not see: a bind mount here would include them.
fn hides_mounts(body: &Value) -> bool {
    entries_of(&body["HostConfig"]["Mounts"])
        .any(|mount| mount["BindOptions"]["NonRecursive"] == true)
}

/// Whether a path only leads down from the root, so that what is created for it stays in the layer's folder.
fn is_plain(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.next() == Some(Component::RootDir)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The variables of a container: the image's, extended or replaced by its own.
fn variables_of(body: &Value, image_env: &[String]) -> BTreeMap<String, String> {
    let usual = [("PATH", PATH), ("HOME", "/root"), ("HOSTNAME", "tare")];
    let usual = usual.map(|(name, text)| (name.to_owned(), Some(text.to_owned())));
    let mut all = BTreeMap::from(usual);
    all.extend(image_env.iter().map(|text| split(text)));
    all.extend(texts_of(&body["Env"]).map(split));
    let set = |(name, text): (String, Option<String>)| Some((name, text?));
    all.into_iter().filter_map(set).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use bollard::models::ImageConfig;

    use super::*;

    #[test]
    fn only_local_overlay2_layers_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (layer, link) in [("aa", "LA"), ("bb", "LB")] {
            std::fs::create_dir_all(at(layer).join("diff")).unwrap();
            std::fs::create_dir_all(at("l")).unwrap();
            std::fs::write(at(layer).join("link"), link).unwrap();
            #[cfg(unix)]
            std::os::unix::fs::symlink(format!("../{layer}/diff"), at("l").join(link)).unwrap();
        }
        let path = |name: &str| at(name).display().to_string();
        let driver = |name: &str, below: &str| DriverData {
            name: name.into(),
            data: HashMap::from([
                ("UpperDir".to_owned(), path("aa/diff")),
                ("LowerDir".to_owned(), below.to_owned()),
            ]),
        };
        let below = path("bb/diff");
        #[cfg(unix)]
        assert_eq!(
            layers_of(&driver("overlay2", &below)),
            Some(vec![path("l/LA"), path("l/LB")])
        );
        assert_eq!(layers_of(&driver("btrfs", &below)), None);
        assert_eq!(layers_of(&driver("overlay2", "/nowhere/diff")), None);
        let many = vec![below; 200].join(":");
        assert_eq!(layers_of(&driver("overlay2", &many)), None);
    }

    #[test]
    fn unsupported_bare_process_is_refused_with_reason() {
        let image = |user: &str, architecture: Option<&str>| ImageInspect {
            architecture: architecture.map(str::to_owned),
            config: Some(ImageConfig {
                user: Some(user.into()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let shown =
            |body: Value, image: &ImageInspect| check(&body, image).err().map(|it| it.to_string());
        assert_eq!(shown(json!({}), &image("", None)), None);
        assert_eq!(shown(json!({"User": "0:0"}), &image("app", None)), None);
        assert!(
            shown(json!({}), &image("app", None))
                .unwrap()
                .contains("`app`")
        );
        assert!(
            shown(json!({}), &image("", Some("s390x")))
                .unwrap()
                .contains("s390x")
        );
        let others = json!({"HostConfig": {"VolumesFrom": ["db"]}});
        assert!(
            shown(others, &image("root", None))
                .unwrap()
                .contains("another")
        );
    }

    #[test]
    fn nonrecursive_bind_mount_hides_inner_mounts() {
        let body = |options: Value| json!({"HostConfig": {"Mounts": [{"Type": "bind", "BindOptions": options}]}});
        assert!(hides_mounts(&body(json!({"NonRecursive": true}))));
        assert!(!hides_mounts(&body(
            json!({"ReadOnlyForceRecursive": true})
        )));
        assert!(!hides_mounts(&json!({"HostConfig": {"Mounts": null}})));
    }

    #[test]
    fn only_plain_absolute_paths_are_laid_out() {
        for path in ["/srv", "/srv/data/"] {
            assert!(is_plain(path), "{path}");
        }
        for path in ["/../../etc/cron.d", "/srv/../x", "srv", "", "."] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn container_variables_override_image_variables() {
        let image = ["A=1".to_owned(), "B=2".to_owned()];
        let all = variables_of(&json!({"Env": ["B", "C=x=y"]}), &image);
        let names: Vec<(&str, &str)> = all
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        assert_eq!(names[..2], [("A", "1"), ("C", "x=y")]);
        assert!(names.contains(&("PATH", PATH)) && !names.iter().any(|(name, _)| *name == "B"));
    }
}
