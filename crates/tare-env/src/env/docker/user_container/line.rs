//! Resolves a `docker run` line by the user's Docker client, pointed at a fake server that creates nothing.
//!
//! So every flag, env file and filter means what it means to that version of the client, and nothing is created,
//! named or published to find out. If the client rejects the line, its own message is shown.
//! Limits: what an engine would reject is not seen here; it reports that when an arm is started.

use crate::env::prelude::*;

use crate::cx::stand_in::{FakeRequest, FakeResponse, StandIn};
use crate::env::user_container::verb;

/// How long a client may take to send its request: it reads a few files.
const CLIENT_LIMIT: Duration = Duration::from_secs(20);
/// The answer to the client, which makes it stop there.
const NOTED: &str = "noted, and nothing was made";

/// A client's request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    /// The container's configuration.
    pub(super) body: Value,
    /// The platform, if one was named.
    pub(super) platform: Option<String>,
}

/// Gets the request that the client makes of `words`.
///
/// # Errors
/// There is no client, or it rejects the line.
pub(super) fn asked(
    cx: &Context<'_>,
    api_version: &str,
    words: &[String],
) -> Result<Request, EnvError> {
    let Some(place) = verb(words) else {
        return Err(EnvError::absent(
            "this is no `docker run` line",
            "`tare why -- docker run [FLAGS] IMAGE [CMD…]`; what stands between `docker` and `run` belongs into DOCKER_HOST or `--set context=NAME`",
        ));
    };
    let first = one_way(cx, api_version, words)?;
    let shown = match first {
        Ok(request) => return Ok(request),
        Err(said) => said,
    };
    // `run -t` requires a terminal before it sends anything; `create` does not, and takes the same flags.
    if words[place] == "run" && shown.contains("TTY") {
        let mut words = words.to_vec();
        "create".clone_into(&mut words[place]);
        if let Ok(request) = one_way(cx, api_version, &words)? {
            return Ok(request);
        }
    }
    Err(EnvError::refused(
        "Docker's client does not take this line",
        printable(shown.trim()),
    ))
}

/// The client's request, or its message.
fn one_way(
    cx: &Context<'_>,
    api_version: &str,
    words: &[String],
) -> Result<Result<Request, String>, EnvError> {
    let version = api_version.to_owned();
    let stand_in = StandIn::open(cx.scratch, move |heard| answer(heard, &version))
        .map_err(|error| EnvError::failed("opening a socket for Docker's client", &error))?;
    let command = CommandLine::new(words[0].as_str(), &words[1..])
        .at_home()
        .variable(
            "DOCKER_HOST",
            format!("unix://{}", stand_in.path().display()),
        )
        .variable("DOCKER_TLS_VERIFY", "")
        .variable("DOCKER_CLI_HINTS", "false");
    let finished = cx
        .exec
        .run(&command, b"", CLIENT_LIMIT)
        .map_err(|error| match error {
            // The line may contain secrets, and so would the error.
            CommandError::Timeout { limit, .. } => EnvError::Timeout {
                phase: "asking Docker's client what it makes of the line".into(),
                limit,
            },
            CommandError::Missing { program } => EnvError::absent(
                format!("`{}` is not installed", printable(&program)),
                "`sudo apt-get install docker.io`; or take a container that is there: `--like CONTAINER`",
            ),
            _ => EnvError::refused("asking Docker's client", "it could not be started"),
        })?;
    let heard = stand_in.heard();
    let created = heard
        .iter()
        .find(|heard| heard.method == "POST" && path(heard).ends_with("/containers/create"));
    let body = created.and_then(|heard| serde_json::from_slice(&heard.body).ok());
    Ok(match (created, body) {
        (Some(heard), Some(body)) => Ok(Request {
            body,
            platform: query(heard, "platform"),
        }),
        _ => Err(finished
            .stderr_text()
            .lines()
            .take(3)
            .collect::<Vec<_>>()
            .join("; ")),
    })
}

fn path(heard: &FakeRequest) -> &str {
    heard.target.split('?').next().unwrap_or_default()
}

/// The value of a query parameter, if it is not empty.
fn query(heard: &FakeRequest, name: &str) -> Option<String> {
    let (_, query) = heard.target.split_once('?')?;
    let value = query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then_some(value)
    })?;
    let value = value.replace("%2F", "/").replace("%2f", "/");
    (!value.is_empty()).then_some(value)
}

fn answer(heard: &FakeRequest, version: &str) -> FakeResponse {
    if path(heard).ends_with("/_ping") {
        return FakeResponse {
            status: 200,
            headers: vec![
                ("Api-Version", version.to_owned()),
                ("Ostype", "linux".to_owned()),
                ("Docker-Experimental", "false".to_owned()),
            ],
            body: "OK".to_owned(),
        };
    }
    FakeResponse {
        status: 500,
        headers: Vec::new(),
        body: format!("{{\"message\":\"{NOTED}\"}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_is_read_from_the_query() {
        let heard = |target: &str| FakeRequest {
            target: target.into(),
            ..FakeRequest::default()
        };
        let found = query(
            &heard("/v1/containers/create?name=a&platform=linux%2Farm64"),
            "platform",
        );
        assert_eq!(found.as_deref(), Some("linux/arm64"));
        assert_eq!(query(&heard("/x?platform="), "platform"), None);
        assert_eq!(query(&heard("/x"), "platform"), None);
    }
}
