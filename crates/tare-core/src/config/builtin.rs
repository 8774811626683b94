//! The studies that come with Tare.

/// One built-in study.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinStudy {
    /// Its name, which is that of its file in `studies/`.
    pub id: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

/// Includes studies by the names of their files.
macro_rules! studies {
    ($($id:literal)+) => {
        &[$(BuiltinStudy {
            id: $id,
            text: include_str!(concat!("../../../../studies/", $id, ".toml")),
        }),+]
    };
}

/// Every built-in study.
pub static STUDIES: &[BuiltinStudy] = studies! { "quick" "ram-disk" "os-micro" "python" "cluster" "storage" "classic" "web" "databases" };

/// Returns the built-in study of this name.
pub fn find(id: &str) -> Option<BuiltinStudy> {
    STUDIES.iter().copied().find(|study| study.id == id)
}
