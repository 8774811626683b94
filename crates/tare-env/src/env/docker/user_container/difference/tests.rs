//! Tests of the differences of configurations, one by one and all together.

use super::*;

fn body() -> Value {
    json!({
        "Image": "web", "User": "1000", "Env": ["LD_PRELOAD=/slow.so", "PASSWORD=hush", "N=3"],
        "Cmd": ["sh", "-c", "echo $N"],
        "HostConfig": {
            "CpuShares": 2, "NanoCpus": 500_000_000, "Memory": 1 << 26, "MemorySwap": 1 << 27,
            "SecurityOpt": ["seccomp={\"a\":1}", "no-new-privileges"],
            "Sysctls": {"net.core.somaxconn": "5"}, "Ulimits": [{"Name": "nofile", "Soft": 1, "Hard": 2}],
            "NetworkMode": "mine", "Dns": [], "PidsLimit": 0, "AutoRemove": true, "Newest": 5,
            "RestartPolicy": {"Name": "always"}
        },
        "NetworkingConfig": {"EndpointsConfig": {"mine": {}}}
    })
}

const IMAGE: &str = "OMP_NUM_THREADS=1";

pub(super) fn pair<'a>(body: &'a Value, plain: &'a Value, image_env: &'a [String]) -> Pair<'a> {
    Pair {
        body,
        plain,
        image_env,
        images_check_ns: None,
        copied: &[],
        limits: &[],
    }
}

/// The configuration without one part.
pub(super) fn less(pair: Pair<'_>, id: &str) -> Value {
    without(pair, &[id.to_owned()]).unwrap()
}

fn ids(pair: Pair<'_>) -> Vec<String> {
    let parts = parts(pair).into_iter();
    let mut ids: Vec<String> = parts.map(|part| part.difference.id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn period_is_named_with_its_quota() {
    let body = json!({"HostConfig": {"CpuQuota": 100_000, "CpuPeriod": 400_000}});
    let parts = parts(pair(&body, &json!({"HostConfig": {}}), &[]));
    let named = "`--cpu-quota 100000 --cpu-period 400000`";
    assert_eq!(parts[0].difference.what, named);
    assert!(parts[0].difference.advice.contains(named));
    let periods = parts
        .iter()
        .filter(|it| it.difference.what.contains("period"));
    assert_eq!(periods.count(), 1);
}

#[test]
fn running_health_check_is_a_removable_difference() {
    let check = json!({"Test": ["CMD-SHELL", "hush"], "Interval": 1});
    let ordinary = json!({"Test": ["CMD-SHELL", "hush"]});
    let none = || json!({"Test": ["NONE"]});
    let plain = json!({"HostConfig": {}});
    for (given, images_check_ns, expected) in [
        (check.clone(), None, Some((1, json!({})))),
        (check, Some(2), Some((1, none()))),
        (ordinary, None, Some((30_000_000_000, json!({})))),
        (json!({"Interval": 1}), Some(2), Some((2, none()))),
        (json!({"Interval": 1}), None, None),
        (none(), Some(2), None),
        (Value::Null, None, None),
    ] {
        let body = json!({"Healthcheck": given, "HostConfig": {}});
        let pair = Pair {
            images_check_ns,
            ..pair(&body, &plain, &[])
        };
        let parts = parts(pair);
        let health = parts.iter().find(|part| part.difference.id == "health");
        assert_eq!(health.is_some(), expected.is_some(), "{body}");
        assert!(!format!("{parts:?}").contains("hush"));
        if let (Some(health), Some((every_ns, rest))) = (health, expected) {
            assert_eq!(health.difference.every_ns, Some(every_ns), "{body}");
            assert_eq!(less(pair, "health")["Healthcheck"], rest);
        }
    }
}

#[test]
fn exactly_the_non_plain_parts_are_differences() {
    let (body, plain) = (
        body(),
        json!({"HostConfig": {"NetworkMode": "default", "ShmSize": 0}}),
    );
    let image_env = [IMAGE.to_owned(), "PATH=/bin".to_owned()];
    let pair = pair(&body, &plain, &image_env);
    assert_eq!(
        ids(pair),
        [
            "Newest",
            "cpu-shares",
            "cpus",
            "engine.apparmor",
            "engine.log",
            "engine.network",
            "env.LD_PRELOAD",
            "env.OMP_NUM_THREADS",
            "env.PASSWORD",
            "memory",
            "network",
            "security-opt.no-new-privileges",
            "security-opt.seccomp",
            "sysctl.net.core.somaxconn",
            "ulimit.nofile",
            "user"
        ]
    );
    assert!(
        !format!("{:?}", parts(pair)).contains("hush"),
        "a password is shown"
    );
    assert_eq!(
        ids(super::tests::pair(&plain, &plain, &[])),
        [
            "engine.apparmor",
            "engine.log",
            "engine.network",
            "engine.seccomp"
        ]
    );
}

#[test]
fn each_part_is_removed_alone_and_completely() {
    let (body, plain) = (body(), json!({"HostConfig": {"NetworkMode": "default"}}));
    let image_env = [IMAGE.to_owned()];
    let pair = pair(&body, &plain, &image_env);
    let all = ids(pair);
    for id in &all {
        let body = &less(pair, id);
        let left = ids(Pair { body, ..pair });
        assert!(!left.contains(id), "{id}: {left:?}");
        // Its settings go with the namespace.
        let with: &[&str] = match id.as_str() {
            "engine.network" => &["sysctl.net.core.somaxconn"],
            _ => &[],
        };
        let gone = all.iter().filter(|it| *it != id && !left.contains(it));
        assert_eq!(gone.collect::<Vec<_>>(), with, "{id}");
    }
    let bare = without(pair, &all).unwrap();
    assert_eq!(bare["HostConfig"]["NetworkMode"], "host");
    assert_eq!(
        bare["HostConfig"]["SecurityOpt"],
        json!(["apparmor=unconfined"])
    );
    assert_eq!(bare["Env"], json!(["N=3", "OMP_NUM_THREADS"]));
    assert_eq!(bare["HostConfig"]["CpuShares"], Value::Null);
}

#[test]
fn optional_missing_parts_are_skipped_unless_all() {
    let (body, plain) = (body(), json!({}));
    let pair = pair(&body, &plain, &[]);
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let less = without(pair, &names(&["cpus?", "cpu-quota?"])).unwrap();
    assert_eq!(less["HostConfig"]["NanoCpus"], Value::Null);
    assert!(
        without(pair, &names(&["shm-size?"]))
            .unwrap_err()
            .contains("shm-size")
    );
    assert!(without(pair, &names(&["shm-size"])).is_err());
}

#[test]
fn path_variables_differ_only_if_line_changes_them() {
    let plain = json!({"HostConfig": {}});
    let image_env = ["PATH=/bin", "HOME=/app", "PYTHONPATH=/lib"].map(str::to_owned);
    let env = [
        "PATH=/slow:/bin",
        "HOME=/app",
        "PYTHONPATH=/lib",
        "LD_LIBRARY_PATH=/slow",
    ];
    let body = json!({"Env": env, "HostConfig": {}});
    let pair = pair(&body, &plain, &image_env);
    let mut ids = ids(pair);
    ids.retain(|id| id.starts_with("env."));
    assert_eq!(ids, ["env.LD_LIBRARY_PATH", "env.PATH", "env.PYTHONPATH"]);
    // The image's value comes back, rather than none.
    assert_eq!(
        less(pair, "env.PATH")["Env"],
        json!(["HOME=/app", "PYTHONPATH=/lib", "LD_LIBRARY_PATH=/slow"])
    );
    // A path list of the image is unset.
    assert_eq!(
        less(pair, "env.PYTHONPATH")["Env"],
        json!([
            "PATH=/slow:/bin",
            "HOME=/app",
            "LD_LIBRARY_PATH=/slow",
            "PYTHONPATH"
        ])
    );
}

#[test]
fn ulimits_tty_and_client_variables_are_differences() {
    let body = json!({
        "Tty": true, "Env": ["HTTP_PROXY=http://p", "A=1"],
        "HostConfig": {"Ulimits": [{"Name": "stack", "Soft": 1, "Hard": 2}]}
    });
    let plain = json!({"Env": ["HTTP_PROXY=http://p"], "HostConfig": {}});
    let limits = ["nofile", "stack"].map(|name| Ulimit {
        name: name.to_owned(),
        soft: 1024,
        hard: 4096,
    });
    let pair = Pair {
        limits: &limits,
        ..pair(&body, &plain, &[])
    };
    let parts = parts(pair);
    let ids = ids(pair);
    // A limit that the line sets is a separate part.
    let has = |id: &str| ids.iter().any(|it| it == id);
    assert!(
        has("tty") && has("engine.ulimit.nofile") && has("ulimit.stack"),
        "{ids:?}"
    );
    assert!(!has("engine.ulimit.stack"), "{ids:?}");
    let proxy = parts
        .iter()
        .find(|part| part.difference.id == "env.HTTP_PROXY");
    let proxy = &proxy.unwrap().difference;
    assert!(proxy.what.contains("the client adds") && proxy.advice.contains("config.json"));
    assert_eq!(less(pair, "tty")["Tty"], Value::Null);
    let limit = json!({"Name": "nofile", "Soft": 1024, "Hard": 4096});
    assert_eq!(
        less(pair, "engine.ulimit.nofile")["HostConfig"]["Ulimits"][1],
        limit
    );
}
