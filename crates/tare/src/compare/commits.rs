//! Checks out and builds two revisions of the repository before anything is measured.
//!
//! Git hooks of the repository do not run, and both worktrees are removed at the end. Revision names from the command
//! line are never parsed as options. Limits: submodules are not checked out; the build command may do that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cx::exec::{CommandLine, Exec, Finished};
use crate::cx::{Context, files, vars};
use crate::failed::Failed;
use crate::output;
use crate::service::program;

/// Time limit of git commands other than a checkout.
const GIT_LIMIT: Duration = Duration::from_secs(60);
/// Time limit of a checkout or build.
const BUILD_LIMIT: Duration = Duration::from_secs(3_600);
/// Most bytes of a failed build's output that are shown.
const SAID_LIMIT: usize = 2_000;

/// One revision.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) arm: &'static str,
    pub(crate) sha: String,
    subject: String,
    worktree: PathBuf,
    /// Working directory of commands in this revision.
    pub(crate) directory: String,
}

impl Commit {
    /// `8f3c2d1 "Reuse the buffer"`.
    pub(crate) fn label(&self) -> String {
        format!(
            "{} \"{}\"",
            &self.sha[..self.sha.len().min(8)],
            self.subject
        )
    }
}

/// Both revisions, base first.
#[derive(Debug)]
pub(crate) struct Commits([Commit; 2]);

impl Commits {
    pub(crate) fn all(&self) -> &[Commit] {
        &self.0
    }

    /// Checks out both revisions below `cx.scratch`.
    ///
    /// # Errors
    /// This is not a repository, or a revision does not exist.
    pub(crate) fn checked_out(
        cx: &Context<'_>,
        base: Option<&str>,
        head: Option<&str>,
    ) -> Result<Self, Failed> {
        let top = git(cx, &["rev-parse", "--show-prefix"]).map_err(|failed| {
            failed.hint("start from a folder of the repository whose revisions are compared")
        })?;
        let head_sha = resolved(cx, head.unwrap_or("HEAD"))?;
        let base_sha = match base {
            Some(base) => resolved(cx, base)?,
            None => default_base(cx, &head_sha)?,
        };
        if head.is_none()
            && !git(cx, &["status", "--porcelain", "--untracked-files=no"])?.is_empty()
        {
            output::tell("note: changes that are not committed are not compared: `--head` is HEAD");
        }
        let make = |arm: &'static str, sha: String| {
            // `cx.scratch` has folders named after the arms already.
            let worktree = cx.scratch.join(format!("tree-{arm}"));
            let path = text(&worktree)?;
            git_for(
                cx,
                BUILD_LIMIT,
                &["worktree", "add", "--quiet", "--detach", &path, &sha],
            )?;
            let subject = git(cx, &["log", "-1", "--format=%s", &sha])?;
            if arm == "head" && files::kind(&worktree.join(".gitmodules")).is_ok() {
                output::tell(
                    "note: submodules are not checked out; `--build 'git submodule update --init && make'` does that",
                );
            }
            Ok::<_, Failed>(Commit {
                arm,
                sha,
                subject,
                directory: text(&worktree.join(&top))?.trim_end_matches('/').to_owned(),
                worktree,
            })
        };
        let base = make("base", base_sha)?;
        match make("head", head_sha) {
            Ok(head) => Ok(Self([base, head])),
            Err(failed) => {
                removed(cx, &base.worktree);
                Err(failed)
            }
        }
    }

    /// Whether both are the same commit.
    pub(crate) fn are_one(&self) -> bool {
        self.0[0].sha == self.0[1].sha
    }

    /// Builds both revisions, base first, with the same command and variables.
    ///
    /// # Errors
    /// A build fails.
    pub(crate) fn build(&self, cx: &Context<'_>, build: &str) -> Result<(), Failed> {
        for commit in &self.0 {
            output::tell(&format!("building {} {}", commit.arm, commit.label()));
            let line = in_folder(&commit.directory, build);
            let finished = cx
                .exec
                .run(&line, &[], BUILD_LIMIT)
                .map_err(Failed::failure)?;
            if finished.status != Some(0) {
                return Err(Failed::failure(format!(
                    "the build of {} {} failed:\n{}",
                    commit.arm,
                    commit.label(),
                    last_words(&finished)
                ))
                .hint("try the command of `--build` in a fresh clone"));
            }
        }
        Ok(())
    }

    /// Removes both worktrees.
    pub(crate) fn remove(&self, cx: &Context<'_>) {
        for commit in &self.0 {
            removed(cx, &commit.worktree);
        }
    }
}

/// A shell command in a folder. Both are passed as arguments, so neither can inject text into the other.
fn in_folder(folder: &str, command: &str) -> CommandLine {
    CommandLine::new(
        "sh",
        ["-c", "cd \"$0\" && exec sh -c \"$1\"", folder, command],
    )
}

/// Runs a shell command in the working directory; the error is how it failed.
pub(crate) fn shell(exec: &dyn Exec, command: &str, limit: Duration) -> Result<(), String> {
    match exec.run(&in_folder(".", command), &[], limit) {
        Ok(finished) if finished.status == Some(0) => Ok(()),
        Ok(finished) => Err(last_words(&finished)),
        Err(error) => Err(error.to_string()),
    }
}

/// The end of a program's output.
fn last_words(finished: &Finished) -> String {
    let text = program::tail(&finished.stderr, &finished.stdout, SAID_LIMIT);
    if text.is_empty() {
        return match finished.status {
            Some(status) => format!("it exited with status {status} and said nothing"),
            None => "it was killed and said nothing".to_owned(),
        };
    }
    let lines: Vec<String> = text.lines().map(output::printable).collect();
    lines.join("\n")
}

fn removed(cx: &Context<'_>, worktree: &Path) {
    if let Ok(path) = text(worktree)
        && let Err(failed) = git(cx, &["worktree", "remove", "--force", &path])
    {
        output::tell(&format!("note: {failed}; `git worktree prune` forgets it"));
    }
}

fn text(path: &Path) -> Result<String, Failed> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Failed::usage(format!("`{}` is not UTF-8", path.display())))
}

/// The commit where this branch diverged from its merge target.
fn default_base(cx: &Context<'_>, head: &str) -> Result<String, Failed> {
    if let Some(sha) = vars::text("CI_MERGE_REQUEST_DIFF_BASE_SHA") {
        return resolved(cx, &sha);
    }
    let named = vars::text("GITHUB_BASE_REF").map(|branch| format!("origin/{branch}"));
    let origin = || {
        let branch = git(cx, &["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]);
        branch.ok().filter(|branch| !branch.is_empty())
    };
    let usual = || {
        let names = ["origin/main", "origin/master", "main", "master"];
        names
            .into_iter()
            .find(|name| resolved(cx, name).is_ok())
            .map(str::to_owned)
    };
    let branch = named.or_else(origin).or_else(usual).ok_or_else(|| {
        Failed::usage("there is no branch to compare with").hint("`--base REV` names the revision")
    })?;
    let branch = resolved(cx, &branch).map_err(|failed| {
        failed.hint(format!(
            "fetch it with its history: `git fetch origin {}`",
            branch.trim_start_matches("origin/")
        ))
    })?;
    git(cx, &["merge-base", head, &branch]).map_err(|_| {
        Failed::usage("HEAD and the branch it will be merged into have no common commit here")
            .hint("fetch the whole history (`fetch-depth: 0`), or name the base with `--base REV`")
    })
}

fn resolved(cx: &Context<'_>, revision: &str) -> Result<String, Failed> {
    let commit = format!("{revision}^{{commit}}");
    git(
        cx,
        &[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &commit,
        ],
    )
    .map_err(|_| {
        Failed::usage(format!("there is no revision `{revision}` here"))
            .hint("`git log --oneline` lists them; a shallow clone holds few")
    })
}

fn git(cx: &Context<'_>, arguments: &[&str]) -> Result<String, Failed> {
    git_for(cx, GIT_LIMIT, arguments)
}

fn git_for(cx: &Context<'_>, limit: Duration, arguments: &[&str]) -> Result<String, Failed> {
    // Hooks are programs of the repository's author.
    let first = ["-c", "core.hooksPath=/dev/null"];
    let line = CommandLine::new("git", first.iter().chain(arguments).copied()).at_home();
    let finished = cx.exec.run(&line, &[], limit).map_err(Failed::usage)?;
    if finished.status != Some(0) {
        return Err(Failed::usage(format!(
            "`git {}` failed: {}",
            arguments[0],
            last_words(&finished)
        )));
    }
    let text = String::from_utf8_lossy(&finished.stdout);
    Ok(text.trim().to_owned())
}
