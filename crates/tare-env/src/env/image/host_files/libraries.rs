//! The libraries that programs need, as the host's own loader lists them.

use crate::env::prelude::*;

use super::{ASK_LIMIT, text};

/// The error for a program that does not run on the host either.
pub(super) fn without_library(program: &str, library: &str) -> EnvError {
    EnvError::absent(
        format!(
            "`{}` needs the library `{}`, which the host's loader does not find",
            program.escape_debug(),
            library.escape_debug()
        ),
        "install the library's package",
    )
}

/// What `ldd` prints about some files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needed {
    /// The libraries that they need, the loader included.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Each file that lacks a library, with the library's name.
    pub(super) missing: Vec<(String, String)>,
}

/// Returns the libraries that these ELF files need according to `ldd`.
pub(super) fn libraries(cx: &Context<'_>, files: &[PathBuf]) -> Result<Needed> {
    let arguments = files
        .iter()
        .map(|path| text(path))
        .collect::<Result<Vec<_>, _>>()?;
    let first = arguments.first().cloned().unwrap_or_default();
    // Fails if one of the files is static, but still prints the libraries of the others.
    let finished = cx
        .exec
        .run(&CommandLine::new("ldd", arguments), b"", ASK_LIMIT)?;
    Ok(needed(&finished.stdout_text(), &first))
}

/// Parses the output of `ldd`, which does not name the file if `first` is the only one.
fn needed(answer: &str, first: &str) -> Needed {
    let mut needed = Needed::default();
    let mut file = first;
    for line in answer.lines() {
        // A line without indentation names the file in question.
        if !line.starts_with(char::is_whitespace) {
            file = line.trim_end_matches(':');
            continue;
        }
        let line = line.trim();
        let (name, place) = line.split_once(" => ").unwrap_or((line, line));
        if place.starts_with("not found") {
            needed.missing.push((file.to_owned(), name.to_owned()));
        }
        // `linux-vdso.so.1 (0x…)` belongs to the kernel and is no file.
        let path = place.rsplit_once(" (0x").map_or(place, |(path, _)| path);
        if path.starts_with('/') {
            needed.paths.insert(PathBuf::from(path));
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_answer_is_read_in_all_its_forms() {
        let answer = "/usr/bin/a:\n\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86/libc.so.6 (0x00007f)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n/usr/bin/b:\n\tstatically linked\n\
                      /usr/bin/c:\n\tlibx y.so => /opt/a b/libx y.so (0x0000)\n\tnot a dynamic executable\n";
        let paths = needed(answer, "/usr/bin/a").paths;
        let expected = [
            "/lib/x86/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/opt/a b/libx y.so",
        ];
        assert_eq!(paths, expected.into_iter().map(PathBuf::from).collect());
        let lacks = |answer: &str| needed(answer, "/usr/bin/a").missing;
        let library = "libnone.so.1".to_owned();
        let alone = lacks("\tlibnone.so.1 => not found\n");
        assert_eq!(alone, [("/usr/bin/a".to_owned(), library.clone())]);
        let second =
            lacks("/usr/bin/a:\n\t/lib/b (0x1)\n/lib/p.so:\n\tlibnone.so.1 => not found\n");
        assert_eq!(second, [("/lib/p.so".to_owned(), library)]);
    }
}
