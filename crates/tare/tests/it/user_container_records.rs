//! Tests objects that are created in an engine only for inspection, if that engine fails halfway. The engine has
//! canned answers.

use crate::prelude::*;

use tare::cx::stand_in::{FakeRequest, FakeResponse, StandIn};
use tare::env::docker::Docker;

fn response(status: u16, body: &Value) -> FakeResponse {
    FakeResponse {
        status,
        body: body.to_string(),
        headers: Vec::new(),
    }
}

/// An engine with one container. It creates others but does not describe them, and answers a removal with this
/// status.
fn engine(folder: &Path, removal: u16) -> StandIn {
    let answer = move |heard: &FakeRequest| {
        let path = heard.target.split('?').next().unwrap_or_default();
        // Some clients prefix the API version.
        let path = path.strip_prefix("/v").map_or(path, |rest| {
            rest.find('/').map_or(path, |place| &rest[place..])
        });
        match (heard.method.as_str(), path) {
            ("GET", "/version") => response(
                200,
                &json!({"ApiVersion": "1.47", "Version": "27.1", "Os": "linux", "Arch": "amd64", "KernelVersion": "6.1.0"}),
            ),
            ("GET", "/info") => {
                response(200, &json!({"OSType": "linux", "Architecture": "x86_64"}))
            }
            ("GET", "/containers/web/json") => response(
                200,
                &json!({"Id": "0a1b2c", "Image": "sha256:ff", "Config": {"Cmd": ["true"]},
                        "HostConfig": {"NetworkMode": "bridge"}}),
            ),
            ("GET", "/containers/json") => response(200, &json!([])),
            ("GET", path) if path.starts_with("/images/") => response(
                200,
                &json!({"Id": "sha256:ff", "Architecture": "amd64", "Os": "linux", "Config": {}}),
            ),
            ("POST", "/containers/create") => {
                response(201, &json!({"Id": "1b2c3d", "Warnings": []}))
            }
            ("GET", _) => response(500, &json!({"message": "the disk is broken"})),
            ("DELETE", _) if removal == 204 => FakeResponse {
                status: 204,
                ..FakeResponse::default()
            },
            _ => response(removal, &json!({"message": "the disk is broken"})),
        }
    };
    StandIn::open(folder, answer).unwrap()
}

/// Returns the error of taking the container, whether the created object's removal was requested, and whether there
/// is a record.
fn taken(removal: u16) -> (EnvError, bool, bool) {
    let world = World::new("own-records");
    let engine = engine(world.folder.path(), removal);
    let driver = Docker::with_host(format!("unix://{}", engine.path().display()));
    let wish = ContainerRequest {
        source: Source::Container("web"),
        folder: world.folder.path(),
        shares: Shares::ReadOnly,
        with_dependencies: false,
        context: None,
        consent: tare::env::user_container::Consent::default(),
    };
    let error = driver.take(&world.cx(), &wish).unwrap_err();
    let made = format!("/containers/tare-{}-plain", world.run);
    let heard = engine.heard();
    let place = |method: &str, part: &str| {
        let mut heard = heard.iter();
        heard.position(|it| it.method == method && it.target.contains(part))
    };
    let (created, removed) = (place("POST", "/create"), place("DELETE", &made));
    assert!(created.is_some(), "{heard:?}");
    let record = world.folder.path().join("docker+own.places.json");
    (error, removed > created, record.exists())
}

#[test]
fn inspected_object_is_recorded_and_removed_on_error() {
    let (error, is_removed, is_recorded) = taken(204);
    assert!(error.to_string().contains("the disk is broken"), "{error}");
    assert!(!matches!(error, EnvError::AndCleanup { .. }), "{error}");
    // The sweep of the run handles the rest.
    assert!(is_removed && is_recorded);
    let (error, is_removed, is_recorded) = taken(500);
    assert!(matches!(error, EnvError::AndCleanup { .. }), "{error}");
    assert!(is_removed && is_recorded);
}

#[test]
fn sweep_of_failing_engine_is_an_error() {
    let world = World::new("own-records");
    let answer = |heard: &FakeRequest| {
        if heard.target.contains("/containers/json") {
            response(500, &json!({"message": "the disk is broken"}))
        } else {
            response(200, &json!({}))
        }
    };
    let engine = StandIn::open(world.folder.path(), answer).unwrap();
    let driver = Docker::with_host(format!("unix://{}", engine.path().display()));
    let error = driver.sweep(&world.cx(), world.run.as_str()).unwrap_err();
    assert!(error.to_string().contains("the disk is broken"), "{error}");
    // Without an engine there can be no leftovers.
    let nowhere = world.folder.path().join("none");
    let driver = Docker::with_host(format!("unix://{}", nowhere.display()));
    assert_eq!(
        driver.sweep(&world.cx(), world.run.as_str()).unwrap(),
        [""; 0]
    );
}
