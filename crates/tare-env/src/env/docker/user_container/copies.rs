//! Copies the files below a container's mounts once, so that an arm can have them in its own layer instead, or have
//! its own copy where the command writes to them.
//!
//! The engine creates the archives, from a container that is created for this and never started. So it works the same
//! for an engine elsewhere, and nothing of the user's is opened here. The archives are in the run's private folder
//! and are removed with it. A mount with too much data stays on both sides.
//! Limits: holes of sparse files are filled; sockets are not in an archive.

use crate::env::prelude::*;

use bollard::models::{ContainerCreateBody, HostConfig, ImageInspect};

use super::super::api::Api;
use super::super::image;
use super::difference::{Copied, Holds, copyable, switchable};
use super::template::Template;
use super::temporary;
use crate::env::image::ImageTar;
use crate::env::user_container::ALIKE;
use crate::env::user_container::machine::Machine;
use crate::env::user_container::share::Share;
use crate::env::user_container::shared::{Copy, notes_on_copy};
use crate::env::user_container::{ChangedLine, Shares};

/// Maximum that is copied of one mount so that it can be removed, bytes: it is copied into every container without
/// the mount.
const SWITCHED_MOST: u64 = 32 << 20;
/// Maximum that is copied of one mount that the command writes to, bytes: it is copied into every container.
const WRITTEN_MOST: u64 = 256 << 20;

/// The inputs for copying files out of the mounts of a user's container.
pub(super) struct Copies<'a> {
    pub(super) cx: &'a Context<'a>,
    pub(super) api: &'a Api,
    /// The machine that has the mounted files.
    pub(super) machine: &'a dyn Machine,
    /// The folder for the archives.
    pub(super) folder: &'a Path,
}

impl Copies<'_> {
    /// Copies the files below every removable mount; returns a note of those that cannot be copied.
    ///
    /// # Errors
    /// No container can be created to copy them from.
    pub(super) fn take(
        &self,
        template: &mut Template,
        image: &ImageInspect,
    ) -> Result<Option<String>, EnvError> {
        let volumes = volumes_of(image);
        let (able, mut others) = switchable(&template.body, template.shares, &volumes);
        others.extend(self.copy(template, able, (SWITCHED_MOST, true))?);
        self.note_images(template)?;
        Ok(describe(&others).map(|notes| format!("{ALIKE}{notes}")))
    }

    /// Gives every arm its own copies of what the command could write to; reports the mounts that cannot be copied.
    /// `None` if there is nothing to copy.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    pub(super) fn stand_in(
        &self,
        template: &mut Template,
        image: &ImageInspect,
    ) -> Result<Option<Vec<ChangedLine>>, EnvError> {
        let mut wanted = copyable(&template.body, &volumes_of(image));
        wanted.retain(|share| self.machine.has(share));
        let has = |template: &Template, share: &Share| {
            let mut copied = template.copied.iter();
            copied.any(|it| it.target == share.target)
        };
        let missing = wanted.iter().filter(|share| !has(template, share));
        let missing = missing.cloned().collect();
        let others = self.copy(template, missing, (WRITTEN_MOST, false))?;
        wanted.retain(|share| has(template, share));
        if wanted.is_empty() {
            return Ok(None);
        }
        for copied in &mut template.copied {
            copied.stands_in = wanted.iter().any(|share| share.target == copied.target);
        }
        template.shares = Shares::Copied;
        let others = describe(&others).map(|notes| ChangedLine {
            before: None,
            now: format!("read-only still: {notes}"),
        });
        let lines = wanted
            .iter()
            .flat_map(|share| notes_on_copy(share, self.machine));
        let lines = lines.chain(others);
        Ok(Some(lines.collect()))
    }

    /// Copies the files of these shares, each up to a limit, and returns those that it could not copy, with the
    /// reason. `may_go`: whether the mounts can be removed.
    fn copy(
        &self,
        template: &mut Template,
        shares: Vec<Share>,
        (bytes_most, may_go): (u64, bool),
    ) -> Result<Vec<(String, &'static str)>, EnvError> {
        let mut others = Vec::new();
        if shares.is_empty() {
            return Ok(others);
        }
        let what = ("files", "create a container to copy mounted files from");
        let body = self.with_the_same_mounts(template)?;
        temporary::with(self.cx, self.api, what, body, |container| {
            for share in shares {
                let why = match self.archive_of(container, &share.target, bytes_most) {
                    Ok(Some(bytes)) => {
                        let number = template.copied.len();
                        let archive = self.folder.join(format!("own-mount-{number}.tar"));
                        files::write_working(&archive, &bytes)?;
                        template.copied.push(Copied {
                            is_slow: self.machine.slow_file_system(&share).is_some(),
                            target: share.target,
                            archive,
                            holds: if begins_with_folder(&bytes) {
                                Holds::Folder
                            } else {
                                Holds::File
                            },
                            may_go,
                            stands_in: false,
                        });
                        continue;
                    }
                    Ok(None) if bytes_most == WRITTEN_MOST => "it holds more than 256 MiB",
                    Ok(None) => "it holds more than 32 MiB",
                    Err(_) => "the engine makes no archive of its files",
                };
                others.push((share.target, why));
            }
            Ok(others)
        })
    }

    /// Notes which mounted files replace a file of the image.
    fn note_images(&self, template: &mut Template) -> Result<(), EnvError> {
        let is_file = |copied: &Copied| copied.may_go && copied.holds == Holds::File;
        if !template.copied.iter().any(is_file) {
            return Ok(());
        }
        let what = ("image", "create a container to look at the image's files");
        let body = ContainerCreateBody {
            image: Some(template.image().to_owned()),
            ..Default::default()
        };
        temporary::with(self.cx, self.api, what, body, |container| {
            for copied in template.copied.iter_mut().filter(|it| is_file(it)) {
                let archive = self.archive_of(container, &copied.target, SWITCHED_MOST);
                let archive = archive.ok().flatten();
                if archive.is_some_and(|bytes| !begins_with_folder(&bytes)) {
                    copied.holds = Holds::OverImages;
                }
            }
            Ok(())
        })
    }

    /// A container with the same mounts, to copy their files from; it is never started.
    fn with_the_same_mounts(&self, template: &Template) -> Result<ContainerCreateBody, EnvError> {
        let whole = template.body_of_copy(&[], self.machine, &mut Vec::new())?;
        let host = whole.host_config.unwrap_or_default();
        Ok(ContainerCreateBody {
            image: whole.image,
            host_config: Some(HostConfig {
                binds: host.binds,
                mounts: host.mounts,
                ..Default::default()
            }),
            ..Default::default()
        })
    }

    /// The engine's archive of a path; `None` if it exceeds the limit.
    fn archive_of(
        &self,
        container: &str,
        path: &str,
        bytes_most: u64,
    ) -> Result<Option<Vec<u8>>, EnvError> {
        let stream = temporary::archive(self.api, container, path);
        let mut bytes = Vec::new();
        let is_whole = temporary::receive(
            self.api,
            "copy mounted files",
            stream,
            bytes_most,
            &mut bytes,
        )?;
        Ok(is_whole.then_some(bytes))
    }
}

/// The mount points of an image's volumes.
fn volumes_of(image: &ImageInspect) -> Vec<String> {
    let config = image.config.as_ref();
    config.and_then(|it| it.volumes.clone()).unwrap_or_default()
}

/// The paths with the reasons, if there are any.
fn describe(others: &[(String, &'static str)]) -> Option<String> {
    let notes: Vec<String> = others
        .iter()
        .map(|(target, why)| format!("`{}` ({why})", printable(target)))
        .collect();
    (!notes.is_empty()).then(|| notes.join(", "))
}

/// Whether an archive is of a folder rather than of a single file.
fn begins_with_folder(archive: &[u8]) -> bool {
    let mut archive = tar::Archive::new(archive);
    let first = archive.entries().ok().and_then(|mut all| all.next());
    first.is_some_and(|entry| entry.is_ok_and(|entry| entry.header().entry_type().is_dir()))
}

/// Copies files into a container that has not been started: into its layer in place of a mount, or into the volume
/// that is mounted there.
///
/// # Errors
/// The run's copies are gone, or the engine rejects them.
pub(crate) fn lay_in(
    api: &Api,
    container: &str,
    copied: &[(Copied, Copy)],
) -> Result<(), EnvError> {
    for (copied, copy) in copied {
        if *copy == Copy::Layer {
            // An empty file replaces whatever the image has there, and creates the parent folders.
            let empty = ImageTar::new().with_file(&copied.target, 0o644, b"");
            image::upload(api, container, "/", empty.into_bytes())?;
        }
        let parent = Path::new(&copied.target).parent();
        let parent = parent.unwrap_or(Path::new("/")).display().to_string();
        image::upload(api, container, &parent, files::read(&copied.archive)?)?;
    }
    Ok(())
}
