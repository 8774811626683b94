//! Tare's folder in a user's running container: its contents, and its removal.

use crate::env::prelude::*;

use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use bollard::query_parameters::ContainerArchiveInfoOptions;
use futures_util::StreamExt;
use tare_model::launch::GUEST_FOLDER;

use super::super::image::{AGENT_PATH, ImageTar};
use super::api::Api;
use super::errors::is_missing;

/// How much of the agent's last output is kept, in bytes or nearly so.
const SAID_LIMIT: usize = 4096;

/// Tare's folder in a user's container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guest {
    pub(super) container: String,
    pub(super) folder: String,
}

impl Guest {
    pub(super) fn new(cx: &Context<'_>, arm: &ArmId, container: &str) -> Self {
        Self {
            container: container.to_owned(),
            folder: format!("{GUEST_FOLDER}{}-{arm}", cx.run),
        }
    }

    pub(super) fn agent(&self) -> String {
        format!("{}{AGENT_PATH}", self.folder)
    }

    pub(super) fn workdir(&self) -> String {
        format!("{}/work", self.folder)
    }

    pub(super) fn archive(&self, agent: &[u8]) -> Vec<u8> {
        ImageTar::new()
            .with_folder(&self.folder, 0o755)
            .with_folder(&self.workdir(), 0o1777)
            .with_file(&self.agent(), 0o755, agent)
            .into_bytes()
    }

    /// The request that runs the agent's `serve`. It starts in `/` because the container's working directory may be
    /// gone.
    pub(super) fn serving(&self, run: &RunId) -> ExecConfig {
        ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            working_dir: Some("/".to_owned()),
            env: Some(vec![format!("TARE_RUN={run}")]),
            cmd: Some(vec![self.agent(), "serve".into()]),
            ..Default::default()
        }
    }

    /// The request that removes the folder and the agent in it. It starts in `/`, too.
    pub(super) fn leaving(&self) -> ExecConfig {
        ExecConfig {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            user: Some("0".to_owned()),
            working_dir: Some("/".to_owned()),
            cmd: Some(vec![self.agent(), "leave".into(), self.folder.clone()]),
            ..Default::default()
        }
    }

    /// Whether the engine reports that the folder is not in the container, or that the container is gone.
    fn is_gone(&self, api: &Api) -> bool {
        let options = ContainerArchiveInfoOptions {
            path: self.folder.clone(),
        };
        let asked = &api.client;
        let asked = asked.get_container_archive_info(&self.container, Some(options));
        matches!(api.attempt(CONTROL_LIMIT, asked), Err(error) if is_missing(&error))
    }

    /// Runs the agent in the folder to remove it. Does nothing if the container is gone, and the folder with it.
    pub(super) fn leave(&self, api: &Api) -> Result<(), EnvError> {
        const WHAT: &str = "remove the agent from the container";
        let config = self.leaving();
        let done = api.attempt(CONTROL_LIMIT, async {
            let exec = api.client.create_exec(&self.container, config).await?;
            let mut shown = String::new();
            if let StartExecResults::Attached { mut output, .. } =
                api.client.start_exec(&exec.id, None).await?
            {
                while let Some(part) = output.next().await {
                    let part = part?.to_string();
                    shown.extend(part.chars().take(SAID_LIMIT.saturating_sub(shown.len())));
                }
            }
            let ended = api.client.inspect_exec(&exec.id).await?;
            Ok((ended.exit_code, shown))
        });
        let failure = match done {
            Ok((Some(0), _)) => return Ok(()),
            // A missing folder need not be removed, and its agent cannot be started.
            _ if self.is_gone(api) => return Ok(()),
            Ok((_, said)) => EnvError::refused(
                format!("removing `{}` from the container", self.folder),
                printable(said.trim()),
            ),
            Err(error) => api.explain(WHAT, CONTROL_LIMIT, &error),
        };
        if !has_ended(api, &self.container) {
            return Err(failure);
        }
        Err(EnvError::absent(
            format!(
                "the container `{}` does not run any more, and `{}` still lies in it",
                printable(&self.container),
                self.folder
            ),
            "`docker start` it, then `tare clean`; it also goes with the container",
        ))
    }
}

/// Whether a container has ended; an engine may take a moment to notice.
fn has_ended(api: &Api, container: &str) -> bool {
    const LOOKS: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(100);
    let looks = async {
        for _ in 0..LOOKS {
            let found = api.client.inspect_container(container, None).await?;
            let is_running = found.state.and_then(|state| state.running);
            if is_running != Some(true) {
                return Ok(true);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(false)
    };
    api.attempt(CONTROL_LIMIT, looks).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest() -> Guest {
        Guest {
            container: "web".into(),
            folder: format!("{GUEST_FOLDER}r1-look"),
        }
    }

    #[test]
    fn guest_folder_is_per_run_and_arm_and_holds_all() {
        let guest = guest();
        assert_eq!(guest.agent(), "/tare-inside-r1-look/tare-agent");
        let archive = guest.archive(b"agent");
        let mut names: Vec<String> = tar::Archive::new(archive.as_slice())
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        names.sort();
        let all = names.iter();
        let is_ours = |name: &String| name.starts_with("tare-inside-r1-look");
        assert!(names.len() == 3 && all.clone().all(is_ours), "{names:?}");
    }

    #[test]
    fn guest_agent_starts_in_root_folder() {
        let run = RunId::new("r1").unwrap();
        for config in [guest().serving(&run), guest().leaving()] {
            assert_eq!(config.working_dir.as_deref(), Some("/"));
        }
    }
}
