//! Finds the machine's fonts, for pictures with text in them.
//!
//! A plain sans-serif face and its bold one, of the first family of a fixed list that is installed, so that a machine
//! gives the same pictures whatever else is installed. Without any of them, the first face with `sans` in its name.
//! Limits: fonts outside the system's font folders are not found.

use std::path::{Path, PathBuf};

use super::files::{self, Kind};
use super::vars;

/// Files of a family, the regular face and the bold one; the first has every character that figures use.
const FAMILIES: &[[&str; 2]] = &[
    ["DejaVuSans.ttf", "DejaVuSans-Bold.ttf"],
    ["NotoSans-Regular.ttf", "NotoSans-Bold.ttf"],
    ["LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"],
    ["Arial.ttf", "Arial Bold.ttf"],
    ["arial.ttf", "arialbd.ttf"],
    ["segoeui.ttf", "segoeuib.ttf"],
];
/// Size limit of a font file; no face of a family is as large.
const LARGEST: u64 = 64 << 20;
/// Levels of nested font folders that are searched.
const DEEPEST: usize = 5;

/// Font folders of the system and of the user.
fn folders() -> Vec<PathBuf> {
    let fixed = [
        "/usr/share/fonts",
        "/usr/local/share/fonts",
        "/System/Library/Fonts",
        "/Library/Fonts",
        "C:\\Windows\\Fonts",
    ];
    let own = [".local/share/fonts", ".fonts", "Library/Fonts"];
    let home = vars::home();
    let own = own
        .iter()
        .filter_map(|folder| Some(home.as_ref()?.join(folder)));
    fixed.into_iter().map(PathBuf::from).chain(own).collect()
}

/// The bytes of the faces to draw text with; empty if the machine has none.
pub fn faces() -> Vec<Vec<u8>> {
    faces_in(&folders())
}

fn faces_in(folders: &[PathBuf]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for folder in folders {
        collect(folder, DEEPEST, &mut found);
    }
    let named = |name: &str| found.iter().find(|path| file_name(path) == name);
    let family = FAMILIES
        .iter()
        .find(|[regular, _]| named(regular).is_some());
    let chosen: Vec<&PathBuf> = match family {
        Some(names) => names.iter().filter_map(|name| named(name)).collect(),
        None => found
            .iter()
            .filter(|path| file_name(path).to_lowercase().contains("sans"))
            .take(1)
            .collect(),
    };
    chosen
        .into_iter()
        .filter_map(|path| files::read_plain(path, LARGEST).ok())
        .collect()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Collects the font files in a folder and its subfolders, sorted by name.
fn collect(folder: &Path, deepest: usize, found: &mut Vec<PathBuf>) {
    let mut names = files::names(folder).unwrap_or_default();
    names.sort_unstable();
    for name in names {
        let path = folder.join(&name);
        let is_font = [".ttf", ".otf"]
            .iter()
            .any(|ending| name.to_lowercase().ends_with(ending));
        if is_font {
            found.push(path);
        } else if deepest > 0 && matches!(files::kind(&path), Ok(Kind::Folder { .. })) {
            collect(&path, deepest - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test makes its own folder")]
    fn first_listed_font_family_is_used_with_bold() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        };
        let faces = || {
            let faces = faces_in(&[folder.path().join("absent"), folder.path().to_owned()]);
            let names = faces.into_iter().map(String::from_utf8);
            names.collect::<Result<Vec<String>, _>>().unwrap()
        };
        put("symbols.ttf");
        assert!(faces().is_empty(), "a font of symbols has no letters");
        put("other/SomeSans.otf");
        assert_eq!(faces(), ["other/SomeSans.otf"]);
        put("b/LiberationSans-Regular.ttf");
        put("a/b/DejaVuSans.ttf");
        put("a/b/DejaVuSans-Bold.ttf");
        assert_eq!(faces(), ["a/b/DejaVuSans.ttf", "a/b/DejaVuSans-Bold.ttf"]);
    }
}
