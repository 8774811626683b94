//! Mounts of the user's own containers: what is seen of their files where one is left away, and what that confirms.

use std::fs;

use serde_json::json;
use tare::env::own::{Source, without};

use crate::docker::world;
use crate::own::{Bench, arm_of, bench, printed, taken};
use crate::product::Product;

#[test]
fn where_a_mount_is_left_away_the_same_files_stand_in_the_layer() {
    let Some(world) = world("own-mounts") else {
        return;
    };
    let mut bench = Bench::new("mounts", "ENV OF_IMAGE=1");
    let volume = bench.name("volume", "mounts");
    let folder = world.folder.path().join("mine");
    fs::create_dir_all(folder.join("below")).unwrap();
    fs::write(folder.join("below/text"), "mine\n").unwrap();
    fs::write(folder.join("passwd"), "root:x:0:0:other:/root:/bin/sh\n").unwrap();
    printed(&["volume", "create", &volume]);
    let shown = folder.display().to_string();
    let (data, one) = (
        format!("{shown}:/data/deep"),
        format!("{shown}/passwd:/etc/passwd"),
    );
    let (kept, volume) = (format!("{shown}:/kept"), format!("{volume}:/empty"));
    let line = [
        "docker",
        "run",
        "-v",
        &data,
        "-v",
        &one,
        "-v",
        &kept,
        "-v",
        &volume,
        "-v",
        "/proc:/host",
        &bench.image,
        "sleep",
        "9",
    ];
    let line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
    let before = bench.objects();
    let mut own = taken(&world, Source::Line(&line));
    assert_eq!(
        bench.objects(),
        before,
        "what files were copied from is left"
    );
    let ids: Vec<&str> = own.differences.iter().map(|it| it.id.as_str()).collect();
    let away = [
        "mounted./data/deep",
        "mounted./etc/passwd",
        "mounted./empty",
    ];
    for id in away.iter().chain(&["mounted./kept"]) {
        assert!(ids.contains(id), "{id} is none of {ids:?}");
    }
    let told = own.told.join("\n");
    assert!(told.contains("`/host` (these are no files)"), "{told}");
    own.settings = without(&own.settings, &away.map(str::to_owned));
    arm_of(&world, &own, |arm| {
        let binds = arm["HostConfig"]["Binds"].to_string();
        assert!(
            binds.contains(":/kept") && !binds.contains("/data") && !binds.contains("/empty"),
            "{binds}"
        );
        let id = arm["Id"].as_str().unwrap();
        let read = |path: &str| printed(&["exec", id, "cat", path]);
        assert_eq!(read("/data/deep/below/text"), "mine");
        // In place of what the image has there.
        assert!(read("/etc/passwd").contains("other"));
        assert_eq!(read("/kept/below/text"), "mine");
        // What is written there is the container's own.
        printed(&["exec", id, "touch", "/data/deep/theirs", "/empty/theirs"]);
    });
    assert!(!folder.join("theirs").exists());
}

/// A file system in which every look for a name goes through many folders.
fn deep_volume(bench: &mut Bench, product: &Product) -> String {
    let folders: Vec<String> = (0..60)
        .map(|number| {
            let folder = product.folder().join(number.to_string());
            fs::create_dir_all(&folder).unwrap();
            folder.display().to_string()
        })
        .collect();
    fs::write(product.folder().join("0/mine"), "mine").unwrap();
    let layers = format!("o=lowerdir={}", folders.join(":"));
    let name = bench.name("volume", "deep");
    printed(&[
        "volume",
        "create",
        "--opt",
        "type=overlay",
        "--opt",
        "device=overlay",
        "--opt",
        &layers,
        &name,
    ]);
    name
}

#[test]
fn a_slow_file_system_below_a_mount_is_found_and_proved_by_its_own_switch() {
    let Some((mut bench, product)) = bench("deep") else {
        return;
    };
    let volume = deep_volume(&mut bench, &product);
    let mount = format!("{volume}:/data");
    let image = bench.image.clone();
    // Names that nobody has asked for before.
    let script = "read u </proc/sys/kernel/random/uuid; i=0; while [ $i -lt 1500 ]; do [ -e /data/$u$i ]; i=$((i+1)); done; cat /data/mine";
    let look = ["run", "--rm", "-v", &mount, &image, "sh", "-c", script];
    assert_eq!(printed(&look), "mine");
    let flags = ["-v", &mount, "-e", "MODE=1", "--shm-size", "32m"];
    let dossier = bench.cost(&product, &["--budget", "100s"], &flags, script);
    let findings = dossier["findings"].as_array().unwrap();
    let first = &findings[0];
    assert_eq!(first["cause"], "own.mounted./data", "{findings:#?}");
    assert_eq!(first["status"], "confirmed", "{first:#}");
    let advice = first["advice"].as_str().unwrap();
    assert!(
        advice.contains("COPY") && advice.contains(&mount),
        "{advice}"
    );
    let others = findings.iter().skip(1);
    let confirmed: Vec<_> = others
        .filter(|it| it["status"] == json!("confirmed"))
        .collect();
    assert!(confirmed.is_empty(), "{confirmed:#?}");
    product.assert_nothing_left();
}
