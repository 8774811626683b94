//! Tests `ssh` against a separate server on loopback: the driver contract, and its special features.

use crate::prelude::*;

use tare::env::ssh::Ssh;

use crate::contract::contract;
use crate::talk::{LIMIT, null_trial};
pub(crate) use tare_testkit::ssh_server as server;
use tare_testkit::ssh_server::{Plan, Server, free_port, left};

mod killed;
mod mounted;

/// Starts a server; reports a skip and returns `None` if that is not possible.
pub(crate) fn started(plan: &Plan<'_>) -> Option<Server> {
    let started = Server::try_start(plan);
    started.inspect_err(|why| skip("ssh", why)).ok()
}

fn environment(settings: &Params) -> Box<dyn Environment> {
    Ssh.configure(arm_id("far"), settings).unwrap()
}

/// Prepares, says hello, removes, and checks that nothing is left.
fn works(world: &World, server: &Server, settings: &Params) -> Facts {
    let mut environment = environment(settings);
    environment.prepare(&world.cx()).unwrap();
    let mut instance = environment.resident(world);
    let reply = null_trial(instance.as_mut(), 1);
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    instance.stop(&world.cx()).unwrap();
    let shown = environment.describe(&world.cx());
    environment.remove(&world.cx()).unwrap();
    nothing_is_left(world, server);
    shown
}

/// Stops and removes, and checks that nothing is left.
#[track_caller]
fn end(
    world: &World,
    server: &Server,
    instance: Box<dyn Instance>,
    mut environment: Box<dyn Environment>,
) {
    environment.end(instance, &world.cx());
    nothing_is_left(world, server);
}

fn nothing_is_left(world: &World, server: &Server) {
    assert_eq!(server.left(), [""; 0]);
    assert_eq!(left(world.folder.path()), [""; 0]);
}

/// Returns why an arm cannot be prepared, as text, with the advice; nothing is left of the attempt.
fn refusal(world: &World, server: &Server, settings: &Params) -> (EnvError, String, String) {
    let mut environment = environment(settings);
    let error = environment.prepare(&world.cx()).unwrap_err();
    environment.remove(&world.cx()).unwrap();
    nothing_is_left(world, server);
    let fix = match &error {
        EnvError::Absent { fix, .. } | EnvError::Denied { fix, .. } => fix.clone(),
        _ => None,
    };
    let text = error.to_string();
    assert!(!text.contains(char::is_control), "{text:?}");
    (error, text, fix.unwrap_or_default())
}

/// Asserts that preparing an arm with this setting fails with the error `says` and the hint `advises`.
fn is_refused(world: &World, server: &Server, setting: (&str, &str), says: &str, advises: &str) {
    let (name, value) = setting;
    let (_, text, fix) = refusal(world, server, &server.settings().with(name, value));
    assert_says(&text, says);
    assert_says(&fix, advises);
}

#[test]
fn ssh_keeps_the_contract_of_drivers() {
    let Some(server) = started(&Plan::default()) else {
        return note_skipped_contract("ssh");
    };
    contract(&Ssh, &server.settings());
    assert_eq!(server.left(), [""; 0]);
}

#[test]
fn ssh_describes_remote_and_both_ends_have_addresses() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-facts");
    let mut environment = environment(&server.settings());
    let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
    let inside = inner_facts(instance.as_mut());
    assert!(inside.contains_key("kernel.boot_id"), "{inside:?}");
    assert!(
        instance
            .workdir()
            .starts_with(server.remote().to_str().unwrap())
    );
    for address in [instance.address_from_host(), instance.host_address()] {
        assert_eq!(address, Ok("127.0.0.1".parse().unwrap()));
    }
    let shown = environment.describe(&world.cx());
    assert_eq!(shown["ssh.host"], "server");
    assert_eq!(shown["ssh.address"], "127.0.0.1");
    assert_eq!(shown["ssh.port"], server.port.to_string());
    assert!(shown["ssh.same_machine"].starts_with("yes"), "{shown:?}");
    assert_eq!(shown["ssh.agent_sha256"], world.cx().agent.sha256);
    assert_eq!(shown["ssh.shared_connection"], "true");
    assert_eq!(shown["ssh.method"], "publickey");
    for name in ["ssh.version", "ssh.cipher", "ssh.host_key", "ssh.server"] {
        assert!(!shown[name].is_empty(), "{name}");
    }
    end(&world, &server, instance, environment);
}

#[test]
fn through_a_proxy_there_is_a_channel_but_no_path() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-proxy");
    // Another session of the same server is the proxy, like a jump host.
    let config = server.folder.path().join("config");
    let text = contents(&config);
    let text = text.replace("Host server", "Host jump server")
        + &format!(
            "Host server\n  ProxyCommand ssh -F {} -W %h:%p jump\n",
            config.display()
        );
    fs::write(&config, text).unwrap();
    let mut environment = environment(&server.settings());
    let instance = environment.resident(&world);
    for address in [instance.address_from_host(), instance.host_address()] {
        assert!(matches!(address, Err(Reason::NoPath(_))), "{address:?}");
    }
    let shown = environment.describe(&world.cx());
    assert_eq!(shown["ssh.address"], "through a proxy");
    end(&world, &server, instance, environment);
}

#[test]
fn ssh_default_folders_are_used_and_cleaned_up() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-default");
    let mut settings = server.settings();
    settings.0.remove("folder");
    let shown = works(&world, &server, &settings);
    let (folder, work) = (&shown["ssh.folder"], &shown["ssh.work"]);
    assert!(folder.starts_with("/tmp/tare-"), "{folder}");
    assert!(work.starts_with("/var/tmp/tare-"), "{work}");
    assert!(!Path::new(folder).exists() && !Path::new(work).exists());
}

#[test]
fn ssh_unshared_uses_one_connection_per_command() {
    let server = needed!(started(&Plan::default()));
    let mut world = World::new("ssh-alone");
    // A run's folder with a path too long for a socket.
    world.folder = tempfile::Builder::new()
        .prefix(&"long-".repeat(20))
        .tempdir()
        .unwrap();
    let shown = works(&world, &server, &server.settings());
    assert_eq!(shown["ssh.shared_connection"], "false");
}

#[test]
fn ssh_login_greeting_is_skipped() {
    let server = needed!(started(&Plan {
        startup: "printf 'Welcome!\\n\\ntare-begins-here ? no\\nno line break'\n",
        ..Plan::default()
    }));
    let shown = works(&World::new("ssh-greeting"), &server, &server.settings());
    let skipped: usize = shown["ssh.greeting_bytes"].parse().unwrap();
    assert!(skipped > 30, "the login shell printed nothing: {skipped}");
}

#[test]
fn a_users_own_configuration_does_not_come_in_the_way() {
    let server = needed!(started(&Plan::default()));
    let port = free_port();
    server.configure(&format!(
        "RequestTTY force\n  RemoteCommand echo no\n  LocalForward {port} localhost:1\n  \
         ControlMaster auto\n  ControlPath {}/%C\n  ControlPersist yes\n  LogLevel QUIET\n  ForwardX11 yes",
        server.folder.path().display()
    ));
    works(&World::new("ssh-config"), &server, &server.settings());
}

#[test]
fn ssh_host_asking_password_is_refused_with_advice() {
    let lines = ["PubkeyAuthentication no", "PasswordAuthentication yes"];
    let Some(server) = started(&Plan {
        lines: &lines,
        ..Plan::default()
    }) else {
        return;
    };
    let world = World::new("ssh-password");
    let (error, text, fix) = refusal(&world, &server, &server.settings());
    assert!(matches!(error, EnvError::Denied { .. }), "{error:?}");
    assert_says(&text, "asks for a password");
    assert_says(&fix, "ssh-copy-id");
    assert_says(&fix, "ssh-add");
}

#[test]
fn ssh_unknown_or_changed_host_key_is_refused() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-key");
    server.know("other");
    // Even a permissive configuration does not make a changed key a known one.
    for strictness in ["ask", "yes", "no"] {
        server.configure(&format!("StrictHostKeyChecking {strictness}"));
        let (_, text, fix) = refusal(&world, &server, &server.settings());
        assert_says(&text, "not the one that is known");
        let name = format!("[127.0.0.1]:{}", server.port);
        assert_says(&fix, &format!("ssh-keygen -R '{name}'"));
    }
    let known = server.folder.path().join("known");
    fs::write(&known, "").unwrap();
    server.configure("");
    let (_, text, fix) = refusal(&world, &server, &server.settings());
    assert_says(&text, "not known here");
    assert_says(&fix, "connect once by hand");
    assert_eq!(contents(&known), "");
}

#[test]
fn unreachable_ssh_host_is_reported_with_reason() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-nobody");
    let nobody = server.settings().with("port", i64::from(free_port()));
    let (error, text, fix) = refusal(&world, &server, &nobody);
    assert!(matches!(error, EnvError::Absent { .. }), "{error:?}");
    assert_says(&text, "Connection refused");
    assert_says(&fix, "port");

    for (name, value, says, advises) in tare_model::rows! {
        ("host", "tare-test.invalid", "no machine has the name `tare-test.invalid`", "ssh -G"),
        ("config", "/nonexistent/config", "/nonexistent/config", ""),
        ("identity", "/nonexistent/key", "/nonexistent/key", "identity"),
    } {
        is_refused(&world, &server, (name, value), says, advises);
    }
}

#[test]
fn silent_ssh_server_is_abandoned_within_limit() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-mute");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mute = server.settings().with("port", i64::from(port));
    let (error, text, _) = refusal(&world, &server, &mute);
    assert!(matches!(error, EnvError::Timeout { .. }), "{error:?}");
    assert_says(&text, "server");
}

#[test]
fn ssh_identity_key_is_used_or_refused_with_reason() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-identity");
    let key = |name: &str| server.folder.path().join(name);
    let config = key("config");
    let with_key = contents(&config);
    let lines = with_key.lines().filter(|line| !line.contains("Identit"));
    fs::write(&config, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let named = |name: &str| {
        let path = key(name).to_str().unwrap().to_owned();
        server.settings().with("identity", path)
    };
    works(&world, &server, &named("client"));
    let (error, text, _) = refusal(&world, &server, &named("other"));
    assert!(matches!(error, EnvError::Denied { .. }), "{error:?}");
    assert_says(&text, "takes none of the keys");
    // A key that other users can read is not used; another working key does not hide that.
    tare_testkit::account::set_mode(&key("other"), 0o644);
    let both = ["client.pub", "other.pub"].map(|name| contents(key(name)));
    fs::write(key("authorized"), both.concat()).unwrap();
    for text in [&contents(&config), &with_key] {
        fs::write(&config, text).unwrap();
        let (_, text, fix) = refusal(&world, &server, &named("other"));
        assert!(fix.contains("chmod 600"), "{text} / {fix}");
    }
}

#[test]
fn ssh_account_running_no_commands_is_recognized() {
    let world = World::new("ssh-shell");
    for (shell, words) in [
        ("/usr/sbin/nologin", "not available"),
        ("internal-sftp", ""),
        ("/bin/false", "status 1"),
        ("rbash -c \"$SSH_ORIGINAL_COMMAND\"", "restricted"),
    ] {
        let line = format!("ForceCommand {shell}");
        let Some(server) = started(&Plan {
            lines: &[&line],
            ..Plan::default()
        }) else {
            return;
        };
        let (_, text, fix) = refusal(&world, &server, &server.settings());
        assert!(text.contains("runs no command"), "{shell}: {text}");
        assert!(text.contains(words), "{shell}: {text}");
        assert!(fix.contains("ordinary shell"), "{shell}: {fix}");
    }
}

#[test]
fn forged_ssh_facts_and_addresses_are_not_trusted() {
    let world = World::new("ssh-forged");
    for named in [
        "0.0.0.0 1 0.0.0.0 22",
        "127.0.0.1 1 224.0.0.1 22",
        ":: 1 :: 22",
    ] {
        let mut server = needed!(started(&Plan::default()));
        server.down();
        let peer = server.folder.path().join("peer");
        let script = format!(
            "#!/bin/sh\nexport SSH_CONNECTION='{named}'\n\
             printf 'debug1: Server host key: forged\\nAuthenticated to server ([10.9.9.9]:22) using \"none\".\\n' >&2\n\
             exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n"
        );
        executable(&peer, script);
        server.force(&peer);
        server.up();
        let mut environment = environment(&server.settings());
        let instance = environment.resident(&world);
        for address in [instance.address_from_host(), instance.host_address()] {
            let is_refused = matches!(&address, Err(tare_model::Reason::NoPath(_)));
            // The loopback is this machine's, and so is the kernel that answers.
            let is_own = address.as_ref().is_ok_and(std::net::IpAddr::is_loopback);
            assert!(
                is_refused || is_own && named.starts_with("127"),
                "{named}: {address:?}"
            );
        }
        let shown = environment.describe(&world.cx());
        assert_eq!(shown["ssh.address"], "127.0.0.1");
        assert_ne!(shown["ssh.host_key"], "forged");
        assert_ne!(shown["ssh.method"], "none");
        environment.end(instance, &world.cx());
        assert_eq!(server.left(), [""; 0]);
    }
}

#[test]
fn ssh_full_noexec_or_read_only_folder_is_explained() {
    let world = World::new("ssh-folder");
    for (options, words, advice) in [
        ("size=64k", "No space left", "free space"),
        ("noexec", "Permission denied", "noexec"),
        ("ro", "Read-only file system", "folder ="),
    ] {
        let Some(server) = started(&Plan {
            mount: Some(options),
            ..Plan::default()
        }) else {
            return;
        };
        let (error, text, fix) = refusal(&world, &server, &server.settings());
        assert!(matches!(error, EnvError::Absent { .. }), "{error:?}");
        assert!(text.contains(words), "{options}: {text}");
        assert!(fix.contains(advice), "{options}: {fix}");
    }
    let server = needed!(started(&Plan::default()));
    let nowhere = "/nonexistent/folder";
    is_refused(&world, &server, ("folder", nowhere), nowhere, "folder =");
}

#[test]
fn agent_for_other_system_is_refused_before_ssh_copy() {
    let server = needed!(started(&Plan::default()));
    let mut world = World::new("ssh-agent");
    let foreign = tempfile::NamedTempFile::new().unwrap();
    fs::write(
        foreign.path(),
        "<tare-agent-build 0.1.0-ab-o3-riscv64gc-unknown-linux-musl>",
    )
    .unwrap();
    world.agents = tare::cx::Agents::only(foreign.path()).unwrap();
    let (_, text, fix) = refusal(&world, &server, &server.settings());
    assert_says(&text, "no static Linux agent");
    assert_says(&fix, "-unknown-linux-musl");
}

#[test]
fn dropped_ssh_connection_is_reported_arm_can_restart() {
    let mut server = needed!(started(&Plan::default()));
    let world = World::new("ssh-drop");
    let mut environment = environment(&server.settings());
    let mut instance = environment.resident(&world);
    server.drop_connections();
    let error = instance.channel().receive(LIMIT).unwrap_err();
    assert!(
        matches!(&error, ChannelError::Closed(why) if why.contains("connection to `server` is lost")),
        "{error}"
    );
    let again = instance
        .channel()
        .send(&Request::Hello { protocol: PROTOCOL })
        .and_then(|()| instance.channel().receive(LIMIT).map(drop));
    assert!(matches!(again, Err(ChannelError::Closed(_))), "{again:?}");
    instance.stop(&world.cx()).unwrap();

    let mut instance = environment.resident(&world);
    assert_eq!(environment.describe(&world.cx())["ssh.connections"], "2");

    // The server stops completely, so no connection is possible.
    server.down();
    assert!(instance.channel().receive(LIMIT).is_err());
    instance.stop(&world.cx()).unwrap();
    let Err(error) = environment.start(&world.cx(), StartMode::Resident) else {
        panic!("started without a server");
    };
    assert!(error.to_string().contains("Connection refused"), "{error}");
    // Whether anything is left there is unknown, so it is reported.
    let error = environment.remove(&world.cx()).unwrap_err();
    assert!(error.to_string().contains("Connection refused"), "{error}");
    server.up();
    environment.remove(&world.cx()).unwrap();
    nothing_is_left(&world, &server);
}

#[test]
fn ssh_connect_and_trial_times_are_printed() {
    let server = needed!(started(&Plan::default()));
    let world = World::new("ssh-times");
    let mut environment = environment(&server.settings());
    let show = |what: &str, mut times: Vec<Duration>| {
        times.sort();
        println!(
            "{what}: min {:?}, p50 {:?}, max {:?}",
            times[0],
            times[times.len() / 2],
            times[times.len() - 1]
        );
        times[times.len() / 2]
    };
    let begin = Instant::now();
    environment.prepare(&world.cx()).unwrap();
    show("connecting, copying, checking", vec![begin.elapsed()]);
    let mut starts = |mode| {
        let times = (0..10).map(|_| {
            let begin = Instant::now();
            let instance = environment.greeted(&world.cx(), mode);
            let time = begin.elapsed();
            instance.stop(&world.cx()).unwrap();
            time
        });
        times.collect()
    };
    let shared = show(
        "start to Hello, shared connection",
        starts(StartMode::Resident),
    );
    let own = show(
        "start to Hello, connection of its own",
        starts(StartMode::Once),
    );
    assert!(shared < own, "a shared connection saves nothing");
    let mut instance = environment.resident(&world);
    let trials = (0..100).map(|trial| {
        std::thread::sleep(Duration::from_millis(5));
        let begin = Instant::now();
        null_trial(instance.as_mut(), trial);
        begin.elapsed()
    });
    show("null trial, there and back", trials.collect());
    end(&world, &server, instance, environment);
}
