//! Opens a page in a headless browser.

use std::path::Path;
use std::process::{Command, Stdio};

/// Returns a file's document after its scripts ran, in a browser of this width with additional options, and the
/// browser's messages; `None` if there is no browser.
pub fn opened(file: &Path, profile: &Path, width: u32, options: &[&str]) -> Option<[String; 2]> {
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .args(options)
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .output()
        .ok()?;
    Some([output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
