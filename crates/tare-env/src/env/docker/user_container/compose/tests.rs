//! Tests of turning the plugin's output into lines.

use super::*;

/// Output of `docker compose config --format json` for a file with two services.
const PRINTED: &str = include_str!("printed.json");

fn parse(service: &str) -> Service {
    line(&serde_json::from_str(PRINTED).unwrap(), service, None).unwrap()
}

/// The client's request after the merge.
fn completed(service: &Service) -> Value {
    let mut body = json!({"Cmd": null, "Env": ["UNSET"], "HostConfig": {"LogConfig": {"Type": "x", "Config": {}}}});
    service.complete(&mut body);
    body
}

/// Asserts that a text contains all of these.
#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn service_parts_map_to_equivalent_flags() {
    let web = parse("web");
    let text = web.words.join(" ");
    assert!(text.starts_with("docker create "), "{text}");
    assert!(
        text.ends_with(" --entrypoint /entry --workdir /srv own/web:1"),
        "{text}"
    );
    let flags = [
        "--cpus 0.5",
        "--memory 268435456",
        "--shm-size 134217728",
        "--cap-drop NET_RAW",
        "--sysctl net.core.somaxconn=1024",
        "--ulimit core=0",
        "--ulimit nofile=1000:2000",
        "--log-driver json-file",
        "--add-host db:192.0.2.2",
        "--publish 127.0.0.1:8080:80/tcp",
        "--volume /srv/conf:/etc/web:ro",
        "--volume shop_data:/data",
        "--tmpfs /scratch",
        "--tmpfs /cache:size=1048576",
        "--volume /srv/token.txt:/run/secrets/token:ro",
        "--stop-timeout 90",
        "--init",
        "--user 1000:1000",
    ];
    assert_says(&text, &flags);
    // A password is never an argument.
    assert!(!text.contains("hush"), "{text}");
    let expected = json!({
        "Cmd": ["-q", "serve", "cost=$HOME"], "Env": ["UNSET", "LOG_LEVEL=info", "PASSWORD=hush$"],
        "HostConfig": {"LogConfig": {"Type": "x", "Config": {"max-size": "1m"}}}
    });
    assert_eq!(completed(&web), expected);
    let notes = web.notes.join("\n");
    assert_says(&notes, &["shop_default", "`credential_spec`"]);
    assert_eq!(web.notes.len(), 2, "{notes}");
}

/// Output of the plugin's library for a file with profiles, `extends`, secrets, configurations, a `build` section and
/// `env_file`s.
const CAPTURED: &str = include_str!("captured.json");

#[test]
fn real_compose_output_is_mapped_or_noted() {
    let config: Value = serde_json::from_str(CAPTURED).unwrap();
    let web = line(&config, "web", None).unwrap();
    let text = web.words.join(" ");
    let flags = [
        "--ulimit core=0:0",
        "--ulimit nofile=1000:2000",
        "--cpus 0.5",
        "--memory 268435456",
        "--memory-swap 536870912",
        "--memory-reservation 67108864",
        "--pids-limit 99",
        "--cpu-shares 512",
        "--blkio-weight 300",
        "--device-read-bps /dev/sda:12582912",
        "--device /dev/null:/dev/zip:r",
        "--publish 127.0.0.1:8080:80/tcp",
        "--publish 9001:91/tcp",
        "--add-host db2:192.0.2.2",
        "--cap-drop NET_RAW",
        "--security-opt no-new-privileges:true",
        "--network outer",
        "--tmpfs /x:size=1m",
        "--volume /srv/shop/token.txt:/run/secrets/token:ro",
        "--volume shop_data:/data",
        "--stop-timeout 90",
    ];
    assert_says(&text, &flags);
    assert!(!text.contains("null:null"), "{text}");
    assert!(text.ends_with("own/web:1"), "{text}");
    // Those of `extends` and of the `env_file` are included.
    let variables = ["BASE=1", "FROM_FILE=2", "LOG_LEVEL=info", "PASSWORD=hush$"];
    assert_eq!(web.unsaid["Env"], json!(variables));
    assert_eq!(web.unsaid["Cmd"], json!(["-q", "serve", "cost=$HOME"]));
    let notes = web.notes.join("\n");
    assert_says(
        &notes,
        &[
            "shop_default",
            "secret `key`",
            "configuration `app`",
            "`post_start`",
        ],
    );
    assert_eq!(web.notes.len(), 4, "{notes}");
    // Behind a profile, built, with the network and the volumes of another service.
    let job = line(&config, "job", None).unwrap();
    assert_eq!(job.words.last().map(String::as_str), Some("shop-job"));
    assert!(is_built(&job.section));
    assert_eq!(job.unsaid["Env"], json!(["FROM_FILE=2"]));
    let notes = job.notes.join("\n");
    assert!(
        notes.contains("network of another service") && notes.contains("`volumes_from`"),
        "{notes}"
    );
}

#[test]
fn compose_command_text_is_split_into_words() {
    for (command, words) in [
        (
            json!("serve -q 'a b' $$HOME"),
            json!(["serve", "-q", "a b", "$HOME"]),
        ),
        (json!(["serve", "a b"]), json!(["serve", "a b"])),
        (json!("it's"), json!(["it's"])),
    ] {
        let config = json!({"services": {"web": {"image": "x", "command": command}}});
        let web = line(&config, "web", None).unwrap();
        assert_eq!(web.unsaid["Cmd"], words);
        let config = json!({"services": {"web": {"image": "x", "entrypoint": command}}});
        let web = line(&config, "web", None).unwrap();
        assert_eq!(web.words[3], words[0].as_str().unwrap());
    }
}

#[test]
fn a_health_check_becomes_the_flags_of_the_client() {
    for (check, test, flags) in [
        (
            json!({"test": ["CMD", "ask", "it's"], "interval": "5s", "timeout": "1s"}),
            "'ask' 'it'\\''s'",
            "--health-interval 5s --health-timeout 1s ",
        ),
        (json!({"test": ["CMD-SHELL", "a | b $$X"]}), "a | b $X", ""),
        (json!({"test": "a"}), "a", ""),
        (json!({"test": ["NONE"]}), "", "--no-healthcheck "),
        (json!({"disable": true}), "", "--no-healthcheck "),
        (json!({"interval": "2s"}), "", "--health-interval 2s "),
    ] {
        let config = json!({"services": {"web": {"image": "x", "healthcheck": check}}});
        let web = line(&config, "web", None).unwrap();
        assert_eq!(web.words.join(" "), format!("docker create {flags}x"));
        let laid = web.unsaid.get("Healthcheck");
        let laid = laid.map(|check| check["Test"][1].as_str().unwrap());
        assert_eq!(laid.unwrap_or_default(), test);
    }
}

#[test]
fn port_without_host_number_is_chosen_by_engine() {
    let config = json!({"services": {"web": {
        "image": "x", "ports": [{"mode": "ingress", "target": 80, "protocol": "tcp"}]
    }}});
    let web = line(&config, "web", None).unwrap();
    assert!(web.words.join(" ").contains("--publish 80/tcp"), "{web:?}");
}

#[test]
fn built_service_has_image_name_of_plugin() {
    let job = parse("job");
    assert_eq!(job.words.last().map(String::as_str), Some("shop-job"));
    assert!(job.unsaid.is_empty() && job.words.contains(&"--network".to_owned()));
}

#[test]
fn unknown_service_error_lists_available_ones() {
    let config = serde_json::from_str(PRINTED).unwrap();
    let problem = line(&config, "wbe", None).unwrap_err();
    assert!(problem.to_string().contains("`wbe`"), "{problem:?}");
    assert_eq!(problem.hint().as_deref(), Some("it has: job, web"));
}

#[test]
fn missing_compose_plugin_differs_from_invalid_file() {
    for said in [
        "docker: 'compose' is not a docker command.\nSee 'docker --help'",
        "unknown shorthand flag: 'f' in -f\n\nUsage:  docker [OPTIONS] COMMAND",
        "docker: unknown command: docker compose\n\nRun 'docker --help' for more information",
        "Validate and view the Compose file.\n\nUsage: config [options]\n\nOptions:\n",
    ] {
        assert!(refused(CLIENTS[0], "a.yml", said).is_none(), "{said}");
    }
    let error = refused(
        CLIENTS[0],
        "a.yml",
        "open /a.yml: no such file or directory\n",
    )
    .unwrap();
    assert!(
        error.to_string().contains("no such file") && error.hint().is_none(),
        "{error}"
    );
}

#[test]
fn dependency_network_replaces_project_networks() {
    let config: Value = serde_json::from_str(CAPTURED).unwrap();
    let of = |service: &str, network: &str| line(&config, service, Some(network)).unwrap();
    let web = of("web", "tare-r1-services");
    let text = web.words.join(" ");
    assert!(text.contains("--network tare-r1-services "), "{text}");
    assert_eq!(text.matches("--network").count(), 1, "{text}");
    let notes = web.notes.join("\n");
    assert!(
        notes.contains("`outer`") && !notes.contains("shop_default"),
        "{notes}"
    );
    // In another service's network.
    let job = of("job", "container:tare-r1-service-web");
    assert!(
        job.words
            .contains(&"container:tare-r1-service-web".to_owned()),
        "{job:?}"
    );
    assert!(!job.notes.join("").contains("network"), "{:?}", job.notes);
}

#[test]
fn unstarted_dependencies_are_named_with_the_flag() {
    let config: Value = serde_json::from_str(CAPTURED).unwrap();
    assert_eq!(
        alone(&config, "job").unwrap(),
        "NOT started: `db`, `web`, which `job` depends on; `--with-dependencies` starts them for the time of the question"
    );
    assert_eq!(alone(&config, "db"), None);
}

#[test]
fn lengths_of_time_are_read_as_they_are_written() {
    let of = |text: &str| nanoseconds(text).map(|length| length / 1_000_000);
    assert_eq!(of("1m30s"), Some(90_000));
    assert_eq!(of("1.5s"), Some(1500));
    assert_eq!(of("500ms"), Some(500));
    assert_eq!(of("1h0m0s"), Some(3_600_000));
    assert_eq!(of("10"), None);
    assert_eq!(of("soon"), None);
    assert_eq!(of(""), None);
}
