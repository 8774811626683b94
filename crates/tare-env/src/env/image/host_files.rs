//! Finds the host files that a program needs: itself, its interpreter, its libraries, and listed files.
//!
//! A file is taken with every folder and symbolic link on its path, as they are on the host. So an image of a host
//! with a merged `/usr` has the same links `/bin` → `usr/bin`, and no real folder next to a link of the same name.
//! The host's own loader (`ldd`) lists the libraries of each ELF file, because only the loader knows its search path.
//! Limits: files opened by name at run time, such as locales, plug-ins and modules, must be listed as files or
//! packages.

use crate::env::prelude::*;

use std::collections::VecDeque;
use std::path::Component;

use crate::cx::Finished;
use crate::cx::files::{self, Kind};
use crate::env::error::succeed;

mod libraries;

use libraries::{libraries, without_library};

/// Time limit for one call of `ldd` or of the package manager.
const ASK_LIMIT: Duration = Duration::from_secs(60);
/// More links than this on one path are a loop (Linux's own limit).
const LINKS_LIMIT: u32 = 40;
/// Limit for all files together, bytes; they are held in memory.
const SIZE_LIMIT: u64 = 1 << 30;
/// Files per call of `ldd`.
const FILES_PER_QUESTION: usize = 200;

/// A file, folder or link of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFile {
    /// Absolute path, without a link among its folders.
    pub path: String,
    /// Kind and content.
    pub entry: HostEntry,
}

/// The kind of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEntry {
    /// A folder.
    Folder {
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Target as written in the link.
        target: String,
    },
    /// A regular file.
    File {
        /// Permission bits.
        mode: u32,
        /// Its content.
        bytes: Vec<u8>,
    },
}

/// The host files to pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileRequest {
    /// Programs by name on PATH or by absolute path, with their libraries.
    pub programs: Vec<String>,
    /// Packages of the host's package manager (dpkg or rpm): all files that they installed.
    pub packages: Vec<String>,
    /// Files and folders by absolute path; a folder with all its contents.
    pub files: Vec<String>,
    /// Commands that print further files and folders, one absolute path per line.
    pub told_by: Vec<Vec<String>>,
}

impl FileRequest {
    /// Whether nothing is to be packed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what is in `other` and not yet in this one.
    pub fn add(&mut self, other: &Self) {
        add_new(&mut self.programs, &other.programs);
        add_new(&mut self.packages, &other.packages);
        add_new(&mut self.files, &other.files);
        add_new(&mut self.told_by, &other.told_by);
    }
}

fn add_new<T: Clone + PartialEq>(own: &mut Vec<T>, others: &[T]) {
    for other in others {
        if !own.contains(other) {
            own.push(other.clone());
        }
    }
}

/// Returns the part of `wanted` that this host has. Programs of a study's workloads are packed if they are installed;
/// if one is missing, only its workload cannot be measured, and the arm's agent reports that.
pub fn present(cx: &Context<'_>, wanted: &FileRequest) -> FileRequest {
    let is_here = |program: &&String| on_path(program).is_ok_and(|path| path.is_file());
    FileRequest {
        programs: wanted.programs.iter().filter(is_here).cloned().collect(),
        packages: wanted
            .packages
            .iter()
            .filter(|package| files_of(cx, package).is_ok())
            .cloned()
            .collect(),
        files: wanted.files.clone(),
        told_by: wanted
            .told_by
            .iter()
            .filter(|command| printed_paths(cx, command).is_ok())
            .cloned()
            .collect(),
    }
}

/// The files found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFiles {
    /// Sorted by path.
    pub files: Vec<HostFile>,
    /// Each wanted program with the file that its path resolves to.
    pub programs: BTreeMap<String, String>,
}

/// Finds the wanted files and everything that they need.
///
/// # Errors
/// `Absent` names the missing program, package, file or library.
pub fn find(cx: &Context<'_>, wanted: &FileRequest) -> Result<HostFiles> {
    let mut collector = Collector::default();
    for program in &wanted.programs {
        let path = on_path(program)?;
        let file = collector.take_program(&path)?;
        collector.programs.insert(program.clone(), file);
    }
    for package in &wanted.packages {
        for path in files_of(cx, package)? {
            collector.take_if_there(&path)?;
        }
    }
    for path in &wanted.files {
        collector.take_tree(Path::new(path)).map_err(|error| {
            EnvError::absent(
                format!("`{}` is to be packed: {error}", path.escape_debug()),
                "take it out of `files`, or name what is there",
            )
        })?;
    }
    for command in &wanted.told_by {
        for path in printed_paths(cx, command)? {
            collector.take_tree(&path)?;
        }
    }
    // The loader finds libraries in folders that only its cache names, such as /usr/local/lib.
    collector.take_if_there(Path::new("/etc/ld.so.cache"))?;
    collector.take_libraries(cx)?;
    collector.finish()
}

#[derive(Default)]
struct Collector {
    kinds: BTreeMap<PathBuf, Kind>,
    /// ELF files not yet passed to `ldd`.
    unasked: Vec<PathBuf>,
    programs: BTreeMap<String, String>,
}

impl Collector {
    /// Takes a path with all folders and links on it; returns the file that it resolves to.
    fn take(&mut self, path: &Path) -> Result<PathBuf> {
        let mut rest: VecDeque<PathBuf> = parts(path).collect();
        let mut done = PathBuf::from("/");
        let mut n_links = 0;
        while let Some(part) = rest.pop_front() {
            if part.as_os_str() == ".." {
                done.pop();
                continue;
            }
            let next = done.join(&part);
            let kind = files::kind(&next)?;
            if let Kind::Link { target } = &kind {
                n_links += 1;
                if n_links > LINKS_LIMIT {
                    return Err(absent(format!(
                        "`{}` leads through more than {LINKS_LIMIT} links",
                        path.display()
                    )));
                }
                if target.is_absolute() {
                    done = PathBuf::from("/");
                }
                for part in parts(target).collect::<Vec<_>>().into_iter().rev() {
                    rest.push_front(part);
                }
                self.kinds.insert(next, kind);
                continue;
            }
            if matches!(kind, Kind::Other) {
                return Err(absent(format!(
                    "`{}` is neither a file nor a folder and cannot be packed",
                    next.display()
                )));
            }
            let is_new = self.kinds.insert(next.clone(), kind.clone()).is_none();
            if is_new && matches!(kind, Kind::File { .. }) && is_elf(&next) {
                self.unasked.push(next.clone());
            }
            done = next;
        }
        Ok(done)
    }

    /// Like `take`, but skips files that a package lists and that were removed since, and device nodes.
    fn take_if_there(&mut self, path: &Path) -> Result<()> {
        match files::kind(path) {
            Ok(Kind::File { .. } | Kind::Folder { .. }) => self.take(path).map(drop),
            // A link may be dangling, as for files that a setup script makes.
            Ok(Kind::Link { .. }) => {
                let _ = self.take(path);
                Ok(())
            }
            Ok(Kind::Other) | Err(_) => Ok(()),
        }
    }

    /// Takes a program and the interpreter that its first line names.
    fn take_program(&mut self, path: &Path) -> Result<String> {
        let file = self.take(path)?;
        let head = files::head(&file, 256)?;
        for program in interpreters(&head) {
            let path = on_path(&program)?;
            self.take(&path)?;
        }
        text(&file)
    }

    /// Takes a file, or a folder with all its contents. Links inside are taken with their targets.
    fn take_tree(&mut self, path: &Path) -> Result<()> {
        let file = self.take(path)?;
        if !matches!(self.kinds.get(&file), Some(Kind::Folder { .. })) {
            return Ok(());
        }
        for name in files::names(&file)? {
            let inner = file.join(name);
            match files::kind(&inner)? {
                Kind::Folder { .. } => self.take_tree(&inner)?,
                _ => self.take_if_there(&inner)?,
            }
        }
        Ok(())
    }

    /// Takes the libraries of every ELF file.
    fn take_libraries(&mut self, cx: &Context<'_>) -> Result<()> {
        let mut asked = BTreeSet::new();
        while !self.unasked.is_empty() {
            let mut question: Vec<PathBuf> = std::mem::take(&mut self.unasked);
            question.retain(|path| asked.insert(path.clone()));
            for files in question.chunks(FILES_PER_QUESTION) {
                let needed = libraries(cx, files)?;
                let mut missing = needed.missing.into_iter();
                // A plug-in that lacks a library is not loaded on the host either.
                if let Some((file, library)) = missing.find(|(file, _)| self.is_program(file)) {
                    return Err(without_library(&file, &library));
                }
                for library in needed.paths {
                    // `ldd` lists libraries recursively, so a library need not be passed to it again.
                    let file = self.take(&library)?;
                    asked.insert(file);
                }
            }
        }
        Ok(())
    }

    /// Whether this is one of the programs that were named.
    fn is_program(&self, file: &str) -> bool {
        self.programs.values().any(|program| program == file)
    }

    fn finish(self) -> Result<HostFiles> {
        let size = |kind: &Kind| match kind {
            Kind::File { length, .. } => *length,
            _ => 0,
        };
        let total: u64 = self.kinds.values().map(size).sum();
        if total > SIZE_LIMIT {
            return Err(absent(format!(
                "the files to be packed have {total} bytes together, more than {SIZE_LIMIT}"
            )));
        }
        let mut found = HostFiles {
            files: Vec::new(),
            programs: self.programs,
        };
        for (path, kind) in self.kinds {
            let entry = match kind {
                Kind::Folder { mode } => HostEntry::Folder { mode },
                Kind::Link { target } => HostEntry::Link {
                    target: text(&target)?,
                },
                Kind::File { mode, .. } => HostEntry::File {
                    mode,
                    bytes: files::read(&path)?,
                },
                Kind::Other => continue,
            };
            found.files.push(HostFile {
                path: text(&path)?,
                entry,
            });
        }
        Ok(found)
    }
}

fn absent(why: String) -> EnvError {
    EnvError::unavailable(why)
}

fn text(path: &Path) -> Result<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| absent(format!("the name `{}` is not UTF-8", path.display())))
}

/// Returns the components of a path, without the root and `.`.
fn parts(path: &Path) -> impl Iterator<Item = PathBuf> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn is_elf(path: &Path) -> bool {
    files::head(path, 4).is_ok_and(|head| head == b"\x7fELF")
}

/// Returns the path of a program: from PATH, or as given if absolute.
fn on_path(program: &str) -> Result<PathBuf> {
    if program.starts_with('/') {
        return Ok(PathBuf::from(program));
    }
    files::on_search_path(program, &[]).ok_or_else(|| not_installed("", program, "programs"))
}

/// Returns the interpreter that a script's first line names, and the program that `env` would start.
fn interpreters(head: &[u8]) -> Vec<String> {
    let Some(line) = head
        .strip_prefix(b"#!")
        .and_then(|rest| rest.split(|byte| *byte == b'\n').next())
        .and_then(|line| std::str::from_utf8(line).ok())
    else {
        return Vec::new();
    };
    let mut words = line.split_ascii_whitespace();
    let Some(first) = words.next() else {
        return Vec::new();
    };
    let mut programs = vec![first.to_owned()];
    if first.ends_with("/env") {
        programs.extend(
            words
                .find(|word| !word.starts_with('-') && !word.contains('='))
                .map(str::to_owned),
        );
    }
    programs
}

/// Returns the files and folders that a command prints.
fn printed_paths(cx: &Context<'_>, command: &[String]) -> Result<Vec<PathBuf>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(Vec::new());
    };
    let command = CommandLine::new(program, arguments.iter().map(String::as_str));
    let what = format!(
        "`{}` was asked which files it needs inside",
        program.escape_debug()
    );
    Ok(paths_in(&succeed(cx, &command, ASK_LIMIT, what)?))
}

/// Returns the files that a package has installed, according to its package manager.
fn files_of(cx: &Context<'_>, package: &str) -> Result<Vec<PathBuf>> {
    for (program, option) in [("dpkg", "-L"), ("rpm", "-ql")] {
        let command = CommandLine::new(program, [option, package]);
        if let Ok(finished) = cx.exec.run(&command, b"", ASK_LIMIT)
            && finished.succeeded()
        {
            return Ok(paths_in(&finished));
        }
    }
    Err(not_installed("the package ", package, "packages"))
}

fn not_installed(kind: &str, name: &str, setting: &str) -> EnvError {
    EnvError::absent(
        format!("{kind}`{name}` is to be packed and is not installed here"),
        format!("install `{name}`, or take it out of `{setting}`"),
    )
}

/// Returns the absolute paths that a program has printed, one a line.
fn paths_in(finished: &Finished) -> Vec<PathBuf> {
    let list = finished.stdout_text();
    let paths = list.lines().filter(|line| line.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_interpreter_is_found_through_env() {
        let of = |text: &str| interpreters(text.as_bytes());
        assert_eq!(of("#!/bin/sh -e\necho"), ["/bin/sh"]);
        assert_eq!(
            of("#!/usr/bin/env -S LANG=C python3 -u\n"),
            ["/usr/bin/env", "python3"]
        );
        assert!(of("\x7fELF").is_empty());
        assert!(of("#!\n").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_preserved_and_link_cycles_are_errors() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        files::create_folder(&root.join("usr/bin")).unwrap();
        files::write(&root.join("usr/bin/tool"), b"#!x").unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        symlink("../bin/tool", root.join("usr/alias")).unwrap();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        let mut collector = Collector::default();
        let end = collector.take(&root.join("usr/alias")).unwrap();
        assert_eq!(end, root.join("usr/bin/tool"));
        let is_link = |path: &str| {
            matches!(
                collector.kinds.get(&root.join(path)),
                Some(Kind::Link { .. })
            )
        };
        assert!(is_link("bin") && is_link("usr/alias"));
        assert!(!collector.kinds.contains_key(&root.join("bin/tool")));
        let error = Collector::default().take(&root.join("a")).unwrap_err();
        assert!(error.to_string().contains("links"), "{error}");
    }
}
