//! Tests images packed from the host's files: programs inside are the same bytes as outside.

use super::*;

use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use futures_util::StreamExt;

/// Returns the stdout of a command in a container of this run.
fn output_inside(world: &World, name: &str, command: &[&str]) -> String {
    of_engine(async |client| {
        let name = format!("tare-{}-{name}", world.run);
        let config = ExecConfig {
            attach_stdout: Some(true),
            cmd: Some(command.iter().map(|word| (*word).to_owned()).collect()),
            ..Default::default()
        };
        let exec = client.create_exec(&name, config).await.unwrap();
        let StartExecResults::Attached { mut output, .. } =
            client.start_exec(&exec.id, None).await.unwrap()
        else {
            panic!("detached")
        };
        let mut text = String::new();
        while let Some(Ok(part)) = output.next().await {
            text.push_str(&part.to_string());
        }
        text
    })
}

fn output_here(command: &[&str]) -> String {
    let output = std::process::Command::new(command[0])
        .args(&command[1..])
        .output()
        .unwrap();
    lossy(&output.stdout)
}

#[test]
fn a_packed_program_runs_inside_as_the_same_bytes() {
    let world = needed!(world("packed"));
    let programs = ["bash", "sha256sum", "python3"];
    if let Some(missing) = programs
        .iter()
        .find(|program| output_here(&["which", program]).is_empty())
    {
        return crate::world::skip("packed", &format!("`{missing}` is not installed"));
    }
    // The fewest files that the interpreter opens by name.
    let encodings = output_here(&[
        "python3",
        "-c",
        "import encodings; print(encodings.__path__[0])",
    ]);
    let library = std::path::Path::new(encodings.trim()).parent().unwrap();
    let names = [
        "encodings",
        "codecs.py",
        "io.py",
        "abc.py",
        "os.py",
        "site.py",
        "stat.py",
    ];
    let rest = [
        "posixpath.py",
        "genericpath.py",
        "_collections_abc.py",
        "_sitebuiltins.py",
    ];
    let mut listed: Vec<Value> = names
        .iter()
        .chain(&rest)
        .map(|name| library.join(name).to_str().unwrap().into())
        .collect();
    // A link that points out of its folder.
    listed.push("/etc/os-release".into());
    // Not a wrapper that looks for one of several interpreters at run time.
    let script = "import os, sys; print(os.path.realpath(sys.executable))";
    let python = output_here(&["python3", "-c", script]);
    let python = python.trim();
    let settings = Params::new()
        .with("programs", format!("bash,sha256sum,{python}"))
        .with("files", Value::List(listed));
    let mut environment = environment(&DOCKER, "arm", &settings);
    environment.prepare(&world.cx()).unwrap();
    let facts = environment.describe(&world.cx());
    assert_eq!(fact(&facts, "image.content_sha256").len(), 64);
    let bash = output_here(&["sha256sum", "/usr/bin/bash"]);
    assert!(
        bash.starts_with(fact(&facts, "program.bash.sha256")),
        "{facts:?}"
    );
    let instance = environment.resident(&world);
    for command in [
        &["sha256sum", "/usr/bin/bash", python][..],
        &[
            "bash",
            "-c",
            "read -r line < /etc/os-release; echo \"$line\"",
        ],
        &[python, "-c", "import sys; print(sys.version)"],
    ] {
        let here = output_here(command);
        assert!(!here.is_empty());
        assert_eq!(output_inside(&world, "arm-1", command), here, "{command:?}");
    }
    end(&world, instance, environment);
}

#[test]
fn unpackable_item_is_named_before_setup() {
    let world = needed!(world("notpacked"));
    for (name, value, says) in [
        ("programs", "tare-test-none", "not installed"),
        ("packages", "tare-test-none", "not installed"),
        ("files", "/nonexistent/x", "/nonexistent/x"),
        ("files", "/dev/null", "neither a file nor a folder"),
    ] {
        let settings = Params::new().with(name, value);
        let mut environment = environment(&DOCKER, "arm", &settings);
        let error = environment.prepare(&world.cx()).unwrap_err();
        assert!(error.to_string().contains(says), "{name}: {error}");
        environment.remove(&world.cx()).unwrap();
    }
    assert_eq!(leftovers(&world, &DOCKER), [""; 0]);
}
