//! The studies that come with Tare.

/// One built-in study.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinStudy {
    /// Its name: that of its file in `studies/`.
    pub id: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// Studies by the names of their files.
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

/// The built-in study of this name.
pub fn find(id: &str) -> Option<BuiltinStudy> {
    STUDIES.iter().copied().find(|study| study.id == id)
}
