//! `php-pages`: requests a page of a small PHP application, with and without OPcache.
//!
//! A published comparison of storage (2025) set out to explain this and did not measure it: how long a page takes
//! depending on where its sources are, and what OPcache saves. PHP's built-in server serves an application that is
//! created for the trial; a page includes all of its source files. `page-load` measures the file reads alone.
//! Inside the timed region: one request, from connecting to the end of the response. Outside: creating the
//! application, starting the server, three requests as warm-up.
//! Known bias: the server serves one request at a time, and client and server share the machine.
//! Limits: does not include a database, a framework or a web server in front.

use serde::Deserialize;
use tare_model::{CommandCall, Params, Path, RawOutput, Reason, Recipe, Sample, metrics};

use super::declared::declared;
use super::tool_text::{self, garbled, text, whole};
use super::{DecodeError, ParamError, Tool, Workload, command_output};

/// The format of the program's output.
const FORMAT: &str = "tare-php-pages/1";
/// The program's name in the trial's folder.
const FILE: &str = "pages.php";
/// Prints the interpreter's path, OPcache's file if it is separate, and the time zones, without which Debian's PHP
/// starts with a warning.
const FILES: &str = "echo PHP_BINARY, \"\\n\";
foreach ([PHP_EXTENSION_DIR . '/opcache.so', '/usr/share/zoneinfo'] as $path) {
    if (file_exists($path)) { echo realpath($path), \"\\n\"; }
}";

metrics! {
    METRIC = "php.page.time", Nanosecond, Lower, Disk: "One request for the page: connecting, including all source files, reading the answer.";
}

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct PhpPages;

impl Workload for PhpPages {
    declared! {
        "php-pages": "a page of a small application of PHP, with and without its cache of compiled code";
        params {
            "opcache" = Text("off"), OneOf(&["off", "on", "checked"]): "off: sources are read and compiled for every page; on: the cache of compiled code is used; checked: the same, and every page looks whether a source has changed, as while developing";
            "files" = Int(200), Between(1, 100_000): "source files of the application, 1 to 100000, in folders of 50";
            "bytes" = Int(4096), Between(1, 1 << 20): "bytes of each, at least, 1 to 1048576";
            "requests" = Int(10), Between(1, 10_000): "timed requests, 1 to 10000";
            "php" = Text("php"): "the interpreter, by its name on the arm's search path or by its path";
        }
        metrics &[METRIC];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let numbers = ["files", "bytes", "requests"];
        let [files, bytes, requests] = numbers.map(|name| whole(&params, name));
        let opcache = text(&params, "opcache");
        let arguments = ["-n", FILE, &files, &bytes, &requests, opcache];
        let call = CommandCall::new(program(&params)?, arguments)
            .with_file(FILE, include_str!("php/pages.php"));
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        vec![Tool {
            files_told_by: vec!["-n".to_owned(), "-r".to_owned(), FILES.to_owned()],
            ..Tool::new(program(params).unwrap_or("php"), &["--version"])
        }]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let printed: ProgramOutput = tool_text::printed(raw, FORMAT)?;
        if printed.sum != printed.wanted_sum {
            return Err(garbled(
                FORMAT,
                format!(
                    "the page says {} instead of {}",
                    printed.sum, printed.wanted_sum
                ),
            ));
        }
        match (printed.wanted_cache.as_str(), printed.cache.as_str()) {
            (wanted, found) if wanted == found => {}
            ("on", _) => {
                return Err(DecodeError::Unavailable(Reason::Unsupported(
                    "this PHP has no OPcache".to_owned(),
                )));
            }
            _ => return Err(garbled(FORMAT, "the cache was on, and should not be")),
        }
        Ok(vec![command_output::sample(&METRIC, printed.ns)?])
    }
}

/// The interpreter.
fn program(params: &Params) -> Result<&str, ParamError> {
    tool_text::program(
        params,
        "php",
        "use a name such as `php` or a path such as `/usr/bin/php8.2`",
    )
}

/// The parts of the program's output that are read.
#[derive(Deserialize)]
struct ProgramOutput {
    sum: u64,
    wanted_sum: u64,
    cache: String,
    wanted_cache: String,
    ns: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::super::command_output::tests::raw;
    use super::*;

    fn printed(sum: u32, cache: &str, wanted: &str) -> RawOutput {
        let text = format!(
            r#"{{"format":"tare-php-pages/1","php":"8.2.1","sum":{sum},"wanted_sum":6,"cache":"{cache}","wanted_cache":"{wanted}","ns":[3000,2000]}}"#
        );
        raw(0, text.as_bytes(), b"")
    }

    #[test]
    fn partial_page_is_garbled_missing_cache_unavailable() {
        assert!(matches!(
            PhpPages.decode(&printed(5, "on", "on")),
            Err(DecodeError::Garbled { .. })
        ));
        assert!(matches!(
            PhpPages.decode(&printed(6, "off", "on")),
            Err(DecodeError::Unavailable(Reason::Unsupported(_)))
        ));
        assert!(PhpPages.decode(&printed(6, "on", "off")).is_err());
    }

    #[test]
    fn php_script_contains_no_placeholders() {
        let script = include_str!("php/pages.php");
        for placeholder in tare_model::command::PLACEHOLDERS {
            assert!(!script.contains(placeholder), "{placeholder}");
        }
    }
}
