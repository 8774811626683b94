//! What an engine makes only to be looked at, where that engine fails halfway: an engine of canned answers.

use crate::prelude::*;

use tare::cx::stand_in::{Heard, Said, StandIn};
use tare::env::docker::Docker;

fn said(status: u16, body: &Value) -> Said {
    Said {
        status,
        body: body.to_string(),
        headers: Vec::new(),
    }
}

/// An engine with one container, which makes others and does not tell of them; it ends a removal with this status.
fn engine(folder: &Path, removal: u16) -> StandIn {
    let answer = move |heard: &Heard| {
        let path = heard.target.split('?').next().unwrap_or_default();
        // Some clients put a version in front.
        let path = path.strip_prefix("/v").map_or(path, |rest| {
            rest.find('/').map_or(path, |place| &rest[place..])
        });
        match (heard.method.as_str(), path) {
            ("GET", "/version") => said(
                200,
                &json!({"ApiVersion": "1.47", "Version": "27.1", "Os": "linux", "Arch": "amd64", "KernelVersion": "6.1.0"}),
            ),
            ("GET", "/info") => said(200, &json!({"OSType": "linux", "Architecture": "x86_64"})),
            ("GET", "/containers/web/json") => said(
                200,
                &json!({"Id": "0a1b2c", "Image": "sha256:ff", "Config": {"Cmd": ["true"]},
                        "HostConfig": {"NetworkMode": "bridge"}}),
            ),
            ("GET", "/containers/json") => said(200, &json!([])),
            ("GET", path) if path.starts_with("/images/") => said(
                200,
                &json!({"Id": "sha256:ff", "Architecture": "amd64", "Os": "linux", "Config": {}}),
            ),
            ("POST", "/containers/create") => said(201, &json!({"Id": "1b2c3d", "Warnings": []})),
            ("GET", _) => said(500, &json!({"message": "the disk is broken"})),
            ("DELETE", _) if removal == 204 => Said {
                status: 204,
                ..Said::default()
            },
            _ => said(removal, &json!({"message": "the disk is broken"})),
        }
    };
    StandIn::open(folder, answer).unwrap()
}

/// How taking the container ends, whether what was made was to be removed, and whether a place is on record.
fn taken(removal: u16) -> (EnvError, bool, bool) {
    let world = World::new("own-records");
    let engine = engine(world.folder.path(), removal);
    let driver = Docker::at(format!("unix://{}", engine.path().display()));
    let wish = Wish {
        source: Source::Container("web"),
        folder: world.folder.path(),
        shares: Shares::ReadOnly,
        with_dependencies: false,
        context: None,
        consent: tare::env::own::Consent::default(),
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
fn what_is_made_to_be_looked_at_is_on_record_and_removed_also_where_it_cannot_be_looked_at() {
    let (error, is_removed, is_recorded) = taken(204);
    assert!(error.to_string().contains("the disk is broken"), "{error}");
    assert!(!matches!(error, EnvError::AndCleanup { .. }), "{error}");
    // The sweep of the run takes it from there.
    assert!(is_removed && is_recorded);
    let (error, is_removed, is_recorded) = taken(500);
    assert!(matches!(error, EnvError::AndCleanup { .. }), "{error}");
    assert!(is_removed && is_recorded);
}

#[test]
fn an_engine_that_is_there_and_does_not_answer_a_sweep_is_told() {
    let world = World::new("own-records");
    let answer = |heard: &Heard| {
        if heard.target.contains("/containers/json") {
            said(500, &json!({"message": "the disk is broken"}))
        } else {
            said(200, &json!({}))
        }
    };
    let engine = StandIn::open(world.folder.path(), answer).unwrap();
    let driver = Docker::at(format!("unix://{}", engine.path().display()));
    let error = driver.sweep(&world.cx(), world.run.as_str()).unwrap_err();
    assert!(error.to_string().contains("the disk is broken"), "{error}");
    // Where there is none, nothing can be left.
    let nowhere = world.folder.path().join("none");
    let driver = Docker::at(format!("unix://{}", nowhere.display()));
    assert_eq!(
        driver.sweep(&world.cx(), world.run.as_str()).unwrap(),
        Vec::<String>::new()
    );
}
