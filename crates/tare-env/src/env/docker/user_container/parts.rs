//! Copies files of an image from a container that is created for this and never started.

use crate::env::prelude::*;

use bollard::models::ContainerCreateBody;

use super::super::Docker;
use super::super::api::Api;
use super::super::image;
use super::temporary;
use crate::env::user_container::ImageParts;

impl Docker {
    /// See [`Driver::image_parts`](crate::env::Driver::image_parts).
    pub(crate) fn parts(
        &self,
        cx: &Context<'_>,
        settings: &Params,
        paths: &[String],
        folder: &Path,
    ) -> Result<ImageParts, EnvError> {
        let (api, _) = self.identify_linux(cx)?;
        let name = settings
            .text("image")
            .ok_or_else(|| EnvError::unavailable("no image is named"))?;
        let image = image::inspect(&api, name)?;
        let variables = image.config.and_then(|config| config.env);
        let variables = variables.into_iter().flatten().filter_map(|text| {
            let (name, text) = text.split_once('=')?;
            Some((name.to_owned(), text.to_owned()))
        });
        let body = ContainerCreateBody {
            image: Some(name.to_owned()),
            ..Default::default()
        };
        let what = (
            "parts",
            "create a container to copy files of the image from",
        );
        let copied = temporary::with(cx, &api, what, body, |container| {
            let mut copied = BTreeMap::new();
            for (number, path) in paths.iter().enumerate() {
                let place = folder.join(format!("{number:03}"));
                copied.insert(path.clone(), copy(&api, container, path, &place)?);
            }
            Ok(copied)
        })?;
        Ok(ImageParts {
            files: copied,
            variables: variables.collect(),
        })
    }
}

/// Copies one file of a container into a folder and returns the copy's path.
fn copy(api: &Api, container: &str, path: &str, folder: &Path) -> Result<PathBuf, EnvError> {
    files::create_folder(folder)?;
    let archive = folder.join("copied.tar");
    let stream = temporary::archive(api, container, path);
    temporary::receive_file(api, "copy a file of the image", stream, u64::MAX, &archive)?;
    let unpacked = folder.join("file");
    files::unpack(&archive, &unpacked)?;
    files::remove(&archive)?;
    let name = Path::new(path).file_name().unwrap_or_default();
    Ok(unpacked.join(name))
}
