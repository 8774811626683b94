//! Runs a command as the first process of a container like the user's, with input and output attached as the user's
//! client does.
//!
//! Nothing of Tare's is in it. Times are taken by this process's clock: until the engine reports that the command has
//! started, until its output has ended, until the container is removed.
//! Limits: the start of the client process is not included, some ten milliseconds.

use crate::env::prelude::*;

use bollard::container::AttachContainerResults;
use bollard::errors::Error as ApiError;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::WaitContainerOptions;
use futures_util::{StreamExt, TryStreamExt, join};
use tokio::io::AsyncWriteExt;

use super::DETECT_LIMIT;
use super::api::Api;
use super::channel::attached;
use super::environment::DockerEnvironment;
use super::errors::and_cleanup;
use super::user_container;
use crate::env::AsTyped;

impl DockerEnvironment {
    /// See [`crate::env::Environment::as_typed`].
    pub(super) fn run_as_typed(
        &mut self,
        cx: &Context<'_>,
        argv: &[String],
        input: &[u8],
        limit: Duration,
    ) -> Result<Option<AsTyped>, EnvError> {
        self.prepare_once(cx)?;
        let api = self.driver.connect(cx, DETECT_LIMIT)?;
        let belongings = self.next_belongings(cx);
        let Some(own) = self.like_the_users() else {
            return Ok(None);
        };
        let has_input = !input.is_empty();
        let body = ContainerCreateBody {
            entrypoint: Some(argv[..1].to_vec()),
            cmd: Some(argv[1..].to_vec()),
            labels: Some(self.labels(cx)),
            attach_stdin: Some(has_input),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(has_input),
            stdin_once: Some(has_input),
            ..own.body.clone()
        };
        let begun_ns = cx.clock.now_ns();
        self.create(cx, &api, &belongings, body)?;
        let name = belongings.name.as_str();
        let ran = user_container::lay_in(&api, name, &own.copied)
            .and_then(|()| self.run_attached(cx, &api, name, (input, limit)));
        let (started_ns, ended_ns, status, printed) = match ran {
            Ok(ran) => ran,
            Err(error) => return Err(and_cleanup(error, belongings.discard(cx, &api))),
        };
        belongings.discard(cx, &api)?;
        Ok(Some(AsTyped {
            start_ns: started_ns.saturating_sub(begun_ns),
            run_ns: ended_ns.saturating_sub(started_ns),
            end_ns: cx.clock.now_ns().saturating_sub(ended_ns),
            status,
            printed,
        }))
    }

    /// Runs the command; returns when it started, when its output ended, its exit status, and how many bytes it
    /// printed.
    fn run_attached(
        &self,
        cx: &Context<'_>,
        api: &Api,
        name: &str,
        (input, limit): (&[u8], Duration),
    ) -> Result<(u64, u64, i64, u64), EnvError> {
        let AttachContainerResults {
            mut output,
            input: mut way_in,
        } = attached(api, name, !input.is_empty())?;
        self.start_created(api, name)?;
        let started_ns = cx.clock.now_ns();
        let mut printed = 0;
        let fed = async {
            // Fails if the command closes its input early.
            if way_in.write_all(input).await.is_ok() {
                let _ = way_in.shutdown().await;
            }
        };
        let drained = async {
            while let Some(part) = output.next().await {
                printed += part?.into_bytes().len() as u64;
            }
            Ok::<(), ApiError>(())
        };
        let both = async { join!(fed, drained).1 };
        api.call("read what the container prints", limit, both)?;
        let ended_ns = cx.clock.now_ns();
        let waited = api
            .client
            .wait_container(name, None::<WaitContainerOptions>)
            .try_collect::<Vec<_>>();
        let status = match api.attempt(CONTROL_LIMIT, waited) {
            Ok(ended) => ended.first().map_or(0, |ended| ended.status_code),
            Err(ApiError::DockerContainerWaitError { code, .. }) => code,
            Err(error) => {
                return Err(api.explain("wait for the container's end", CONTROL_LIMIT, &error));
            }
        };
        Ok((started_ns, ended_ns, status, printed))
    }
}
