//! The studies that come with Tare.

/// One built-in study.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinStudy {
    /// Its name: that of its file in `studies/`.
    pub id: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// Every built-in study.
pub static STUDIES: &[BuiltinStudy] = &[BuiltinStudy {
    id: "quick",
    text: include_str!("../../../../studies/quick.toml"),
}];

/// The built-in study of this name.
pub fn find(id: &str) -> Option<BuiltinStudy> {
    STUDIES.iter().copied().find(|study| study.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Adjustments, parse};

    #[test]
    fn every_file_in_the_studies_folder_is_registered_and_valid() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .into_string()
                    .unwrap()
                    .strip_suffix(".toml")
                    .map(str::to_owned)
            })
            .collect();
        let mut ids: Vec<&str> = STUDIES.iter().map(|study| study.id).collect();
        files.sort();
        ids.sort_unstable();
        assert_eq!(files, ids);
        for builtin in STUDIES {
            let study = parse(builtin.id, builtin.text, &Adjustments::default())
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(study.id, builtin.id);
        }
    }
}
