//! Tests podman's user containers: taken by the line that created them, copied and never touched.

use crate::prelude::*;

use std::os::unix::fs::MetadataExt as _;

use serde_json::Value as Json;

use super::{PodmanWorld, absent, account, place};
use crate::user_container::notes_of_copies;
use crate::user_container_mounts::InMemory;

/// Returns the output of the podman under test; panics if it fails.
#[track_caller]
fn podman(place: &PodmanWorld, words: &str, rest: &[&str]) -> String {
    account::podman(place.account.name(), &line(words, rest)).unwrap()
}

fn inspected(place: &PodmanWorld, name: &str) -> Json {
    let text = podman(place, "container inspect", &[name]);
    serde_json::from_str::<Json>(&text).unwrap()[0].clone()
}

fn take(place: &PodmanWorld, source: Source<'_>) -> Result<UserContainer, EnvError> {
    // It is read when the arm is prepared.
    let folder = tempfile::tempdir().unwrap().keep();
    place.driver.take(&place.world.cx(), &wish(source, &folder))
}

fn wish<'a>(source: Source<'a>, folder: &'a Path) -> ContainerRequest<'a> {
    ContainerRequest {
        source,
        folder,
        shares: Shares::ReadOnly,
        with_dependencies: false,
        context: None,
        consent: tare::env::user_container::Consent::default(),
    }
}

/// Runs `work` with an image of a shell and a program, which is removed afterwards.
fn with_image(place: &PodmanWorld, work: impl FnOnce(&str)) {
    let cx = place.world.cx();
    let settings = params("programs = 'sh,sleep'");
    let arm = arm_id("packed");
    let mut packed = place.driver.configure(arm, &settings).unwrap();
    packed.prepare(&cx).unwrap();
    let image = packed.describe(&cx)["image.name"].clone();
    work(&image);
    packed.remove(&cx).unwrap();
}

/// Starts an arm like this and hands over podman's description of its container.
fn arm_of(place: &PodmanWorld, settings: &Params, look: impl FnOnce(Json)) {
    let cx = place.world.cx();
    let mut environment = place.environment("like", settings);
    environment.prepare(&cx).unwrap();
    let mut instance = environment.start(&cx, StartMode::Resident).unwrap();
    super::hello(instance.as_mut());
    look(inspected(
        place,
        &format!("tare-{}-like-1", place.world.run),
    ));
    environment.end(instance, &cx);
}

#[test]
fn podman_container_is_read_by_its_line_and_unchanged() {
    let place = needed!(place("own-podman"));
    let name = format!("tare-own-test-{}", std::process::id());
    with_image(&place, |image| {
        let volume = format!("{name}-data");
        podman(&place, "volume create", &[&volume]);
        let mount = format!("{volume}:/data");
        let flags =
            "-e PASSWORD=hush-hush --env=OTHER=1 --dns 192.0.2.1 --label a=b --entrypoint sh";
        let made = format!("create --name {name} {flags} -v {mount} --workdir=/tmp {image} -c");
        podman(&place, &made, &["sleep 1"]);
        let before = inspected(&place, &name);
        let containers = podman(&place, "ps --all --quiet", &[]);
        let own = take(&place, Source::Container(&name)).unwrap();
        assert_eq!(podman(&place, "ps --all --quiet", &[]), containers);
        assert_eq!(
            (own.argv.join(" ").as_str(), own.directory.as_str()),
            ("sh -c sleep 1", "/tmp")
        );
        let ids: Vec<&str> = own.differences.iter().map(|it| it.id.as_str()).collect();
        for id in ["dns", "env.OTHER", "env.PASSWORD", "engine.seccomp"] {
            assert!(ids.contains(&id), "{id} is none of {ids:?}");
        }
        assert!(!ids.contains(&"engine.network"), "{ids:?}");
        let shown = own.notes.join("\n");
        assert_says(&shown, "READ-ONLY");
        assert_says(&shown, "label");
        assert!(!format!("{own:?}").contains("hush"), "{own:?}");
        let less =
            tare::env::user_container::without(&own.settings, &["dns".into(), "env.OTHER".into()]);
        arm_of(&place, &own.settings, |arm| {
            assert_eq!(arm["HostConfig"]["Dns"][0], "192.0.2.1");
            assert_eq!(arm["Mounts"][0]["RW"], false, "{arm:#}");
            assert!(
                arm["Config"]["Env"].to_string().contains("OTHER=1"),
                "{arm:#}"
            );
        });
        arm_of(&place, &less, |arm| {
            assert_eq!(arm["HostConfig"]["Dns"].as_array().map_or(0, Vec::len), 0);
            assert!(
                !arm["Config"]["Env"].to_string().contains("OTHER=1"),
                "{arm:#}"
            );
            assert!(
                arm["Config"]["Env"].to_string().contains("PASSWORD="),
                "{arm:#}"
            );
        });
        assert_eq!(inspected(&place, &name), before);
        assert!(place.driver.has_container(&place.world.cx(), &name));
        podman(&place, "rm --force", &[&name]);
        podman(&place, "volume rm --force", &[&volume]);
    });
    place.assert_nothing_is_left();
}

#[test]
fn podman_writes_go_to_a_separate_layer_per_arm() {
    let place = needed!(place("own-copies"));
    let name = format!("tare-own-test-{}-copies", std::process::id());
    with_image(&place, |image| {
        podman(&place, "volume create", &[&name]);
        let mount = format!("{name}:/data");
        let line = ["podman", "run", "-v", &mount, image, "sleep", "9"].map(str::to_owned);
        let folder = tempfile::tempdir().unwrap();
        let wish = wish(Source::Line(&line), folder.path());
        let cx = place.world.cx();
        let run = |arm: &Json, script: &str| {
            let id = arm["Id"].as_str().unwrap();
            podman(&place, "exec", &[id, "sh", "-c", script])
        };
        let read = "read r </data/rows; echo $r";
        let shared = ContainerRequest {
            shares: Shares::Shared,
            ..wish
        };
        let own = place.driver.take(&cx, &shared).unwrap();
        arm_of(&place, &own.settings, |arm| {
            run(&arm, "echo rows >/data/rows");
        });
        let own = place.driver.take(&cx, &wish).unwrap();
        let shown = notes_of_copies(&place.driver, &cx, wish, &own).unwrap();
        assert_says(&shown, "`/data` is a COPY of");
        arm_of(&place, &own.settings, |arm| {
            assert_eq!(run(&arm, read), "rows");
            assert_eq!(run(&arm, &format!("echo x >/data/rows; {read}")), "x");
        });
        let own = place.driver.take(&cx, &wish).unwrap();
        arm_of(&place, &own.settings, |arm| {
            assert_eq!(run(&arm, read), "rows");
        });
        podman(&place, "volume rm --force", &[&name]);
        // A read-only mount needs no copy.
        let fixed = ["podman", "run", "-v", "/usr:/a:ro", image, "sleep", "9"].map(str::to_owned);
        let wish = ContainerRequest {
            source: Source::Line(&fixed),
            ..wish
        };
        let own = place.driver.take(&cx, &wish).unwrap();
        assert_eq!(notes_of_copies(&place.driver, &cx, wish, &own), None);
    });
    place.assert_nothing_is_left();
}

#[test]
fn podman_does_not_write_to_mounts_in_user_folder() {
    let place = needed!(place("own-below"));
    with_image(&place, |image| {
        let folder = tempfile::tempdir().unwrap();
        account::set_mode(folder.path(), 0o755);
        let _mounted = needed!(InMemory::mount(&folder.path().join("below")));
        let mount = format!("{}:/data:U,z", folder.path().display());
        let line = ["podman", "run", "-v", &mount, image, "sleep", "9"].map(str::to_owned);
        let own = take(&place, Source::Line(&line)).unwrap();
        let reported = own.notes.join("\n");
        assert_says(&reported, "is not shown at `/data`");
        arm_of(&place, &own.settings, |arm| {
            let id = arm["Id"].as_str().unwrap();
            let script =
                "echo theirs >/data/below/theirs || echo theirs >/data/theirs || echo kept";
            assert_eq!(podman(&place, "exec", &[id, "sh", "-c", script]), "kept");
        });
        let below = fs::read_dir(folder.path().join("below")).unwrap();
        assert_eq!(below.count(), 0);
        // The owner has not changed either.
        assert_eq!(fs::metadata(folder.path()).unwrap().uid(), 0);
    });
    place.assert_nothing_is_left();
}

#[test]
fn podman_refuses_uncopyable_source_with_hint() {
    let place = needed!(place("own-refused"));
    assert!(
        !place
            .driver
            .has_container(&place.world.cx(), "nobody-has-this")
    );
    let (why, fix) = absent(take(&place, Source::Container("nobody-has-this")).unwrap_err());
    assert_says(&why, "no container `nobody-has-this`");
    assert_says(&fix, "podman ps");
    let line = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    let (why, fix) =
        absent(take(&place, Source::Line(&line("podman run --pod mine x y"))).unwrap_err());
    assert_says(&why, "--pod");
    assert_says(&fix, "without it");
    let (why, _) =
        absent(take(&place, Source::Line(&line("podman run no/such:image y"))).unwrap_err());
    assert_says(&why, "Tare pulls nothing");
    let error = take(&place, Source::Line(&line("podman run --no-such-flag x"))).unwrap_err();
    assert!(error.to_string().contains("no-such-flag"), "{error}");
    let (why, fix) = absent(take(&place, Source::Inside("x")).unwrap_err());
    assert_says(&why, "only Docker");
    assert_says(&fix, "--like");
    place.assert_nothing_is_left();
}
