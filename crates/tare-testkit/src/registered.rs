//! Compares registered names with the files of a folder.

/// Asserts that each file of `folder` with this ending is registered under its name, with `-` for `_`, and nothing
/// else is; `is_helper` recognizes the names of files that must not be registered.
pub fn assert_registered<'a>(
    folder: &str,
    ending: &str,
    is_helper: impl Fn(&str) -> bool,
    ids: impl Iterator<Item = &'a str>,
) {
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(ending).map(|name| name.replace('_', "-"))
        })
        .filter(|name| !is_helper(name))
        .collect();
    let mut ids: Vec<String> = ids.map(|id| id.replace('.', "-")).collect();
    files.sort();
    ids.sort();
    assert_eq!(files, ids);
}
