//! Tests `vm`: the driver contract in software emulation, and its special features.
//!
//! Emulated machines boot slowly, so each serves several checks.

use crate::prelude::*;

use std::net::IpAddr;

use tare::env::vm::Vm;
use tare_model::facts::emulation;

use crate::contract::contract;
use crate::talk::{self, call, report};

mod system;

/// A guest in software emulation on a loaded machine answers late.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Settings that need only the emulator, for a guest as small as the programs allow.
pub(crate) fn tcg() -> Params {
    params("accel = 'tcg', memory = '512m', cpus = 1")
        // Other tests may keep all processors busy meanwhile.
        .with("boot_limit", 180i64)
}

/// Whether a virtual machine can be created here; reports a skip if not.
fn is_available(world: &World) -> bool {
    is_ready(world, &Vm, "vm")
}

fn configure(settings: &Params) -> Box<dyn Environment> {
    Vm.configure(arm_id("arm"), settings).unwrap()
}

fn ask(instance: &mut dyn Instance, request: &Request) -> Reply {
    instance.channel().send(request).unwrap();
    instance.channel().receive(ANSWER_LIMIT).unwrap()
}

fn facts(instance: &mut dyn Instance) -> Facts {
    let paths = vec!["/".to_owned(), "/mnt".to_owned(), instance.workdir()];
    match ask(
        instance,
        &Request::Facts {
            paths,
            tools: Vec::new(),
        },
    ) {
        Reply::Facts { facts } => facts,
        other => panic!("no facts but {other:?}"),
    }
}

fn run(instance: &dyn Instance, trial: u64, probe: &str, args: Params) -> Request {
    let target = Duration::from_millis(20);
    talk::run(instance, trial, call(probe, args), target, ANSWER_LIMIT)
}

/// Runs a probe, which must be done.
fn is_run(instance: &mut dyn Instance, trial: u64, probe: &str) {
    let request = run(instance, trial, probe, Params::new());
    assert_eq!(report(ask(instance, &request)).probe, probe);
}

#[test]
fn vm_keeps_driver_contract_in_software_emulation() {
    contract(&Vm, &tcg());
}

#[test]
fn vm_runs_ten_probes_reports_facts_and_is_removed() {
    let (_turn, world) = needed!(turn_where("ten", is_available));
    let before = Snapshot::take(&world);
    let mut environment = configure(&tcg().with("cpu", "qemu64"));
    environment.prepare(&world.cx()).unwrap();
    let begin = Instant::now();
    let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
    let Reply::Hello { probes, .. } =
        ask(instance.as_mut(), &Request::Hello { protocol: PROTOCOL })
    else {
        panic!("no Hello");
    };
    println!("from start to Hello: {:.1?}", begin.elapsed());
    let shown = environment.describe(&world.cx());
    if Path::new("/root").join(".").read_dir().is_ok() {
        assert_eq!(
            shown["vm.user"], "its own",
            "root keeps an emulator of its own"
        );
    }
    let help = Command::new("qemu-system-x86_64").arg("-help").output();
    let knows_filter = help.is_ok_and(|help| lossy(&help.stdout).contains("-sandbox on"));
    if knows_filter {
        assert_eq!(shown["vm.seccomp"], "2");
    }
    let kernels = [
        "null", "integer", "float", "getppid", "clock", "stat", "files", "pipe", "spawn", "touch",
    ];
    for (trial, name) in (1..).zip(kernels) {
        assert!(probes.iter().any(|(known, _)| known == name), "{name}");
        let begun = Instant::now();
        is_run(instance.as_mut(), trial, name);
        println!("{name}: {:.1?}", begun.elapsed());
    }
    let inside = facts(instance.as_mut());
    println!("ten probes run after {:.1?}", begin.elapsed());
    let emulators = running(&world, "/qemu-system");
    assert_eq!(emulators.len(), 1);
    assert!(signal("KILL", emulators[0]));
    let answer = instance.channel().receive(ANSWER_LIMIT);
    assert!(matches!(answer, Err(ChannelError::Closed(_))), "{answer:?}");
    instance.stop(&world.cx()).unwrap();

    let described = environment.describe(&world.cx());
    assert_eq!(
        emulation(&described),
        Some("software emulation (TCG): not a VM's cost")
    );
    assert_eq!(described["vm.accelerator"], "tcg");
    assert_eq!(described["vm.cpu"], "qemu64");
    assert_eq!(described["vm.workdir_filesystem"], "tmpfs");
    assert_eq!(inside["kernel.release"], described["vm.kernel_release"]);
    assert_eq!(inside["cpu.count"], "1");
    assert!(inside.contains_key("clocksource.current"), "{inside:?}");
    environment.remove(&world.cx()).unwrap();
    before.assert_restored(&world, "remove");
}

#[test]
fn vm_tap_connects_host_and_guest_both_ways() {
    let (_turn, world) = needed!(turn_where("tap", is_available));
    let before = Snapshot::take(&world);
    let mut environment = configure(&tcg().with("network", "tap"));
    let mut instance = match environment.start(&world.cx(), StartMode::Resident) {
        Ok(instance) => instance,
        Err(EnvError::Denied { what, fix }) => {
            assert!(fix.is_some());
            environment.remove(&world.cx()).unwrap();
            return skip("root", &what);
        }
        Err(error) => panic!("{error}"),
    };
    let (arm, host) = (
        instance.address_from_host().unwrap(),
        instance.host_address().unwrap(),
    );
    assert!(arm.to_string().starts_with("198.1"), "{arm}");

    // The guest as the server: a connection from the host arrives.
    let server = run(
        instance.as_ref(),
        1,
        "tcp-echo",
        Params::new().with("bind", arm.to_string()),
    );
    let port = match ask(instance.as_mut(), &server) {
        Reply::Listening { port, .. } => port,
        other => panic!("does not listen: {other:?}"),
    };
    TcpStream::connect_timeout(&(arm, port).into(), Duration::from_secs(10)).unwrap();
    ask(instance.as_mut(), &Request::Cancel { trial: 1 });

    // The guest as the client: its connection reaches the host.
    let listener = TcpListener::bind((host, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || listener.accept().unwrap().1.ip());
    let client = Params::new()
        .with("address", host.to_string())
        .with("port", i64::from(port));
    let request = run(instance.as_ref(), 2, "tcp-round-trip", client);
    // The bytes are not answered, so only the connection counts, not the trial's result.
    instance.channel().send(&request).unwrap();
    assert_eq!(heard.join().unwrap(), arm);

    assert_eq!(
        environment.describe(&world.cx())["vm.nic_driver"],
        "virtio_net"
    );
    environment.end(instance, &world.cx());
    before.assert_restored(&world, "remove");
}

#[test]
fn vm_disk_bus_holds_work_and_user_net_has_no_inbound() {
    let (_turn, world) = needed!(turn_where("disk", is_available));
    let before = Snapshot::take(&world);
    // Two of the four buses, each with another cache mode: the others differ in a word.
    for (disk, cache) in [("virtio", "writeback"), ("ide", "unsafe")] {
        let settings = tcg()
            .with("disk", disk)
            .with("cache", cache)
            .with("disk_size", "64m")
            .with("network", "user");
        let mut environment = configure(&settings);
        let mut instance = match environment.start(&world.cx(), StartMode::Once) {
            Ok(instance) => instance,
            Err(EnvError::Absent { why, .. }) => {
                environment.remove(&world.cx()).unwrap();
                skip("vm", &why);
                continue;
            }
            Err(error) => panic!("{disk}: {error}"),
        };
        is_run(instance.as_mut(), 1, "fsync");
        let inside = facts(instance.as_mut());
        let found = inside
            .iter()
            .find(|(name, value)| name.contains("/work") && value.as_str() == "ext4");
        assert!(found.is_some(), "{disk}: {inside:?}");
        assert_eq!(instance.host_address(), Ok(IpAddr::from([10, 0, 2, 2])));
        assert!(matches!(
            instance.address_from_host(),
            Err(Reason::NoPath(_))
        ));
        if disk == "virtio" {
            // Like the machine of a dead run.
            let swept = Vm.sweep(&world.cx(), world.run.as_str()).unwrap();
            let is_found = swept.iter().any(|line| line.contains("qemu-system"));
            assert!(is_found, "{swept:?}");
            wait_until("the emulator is gone", || {
                running(&world, "/qemu-system").is_empty()
            });
        }
        // Whatever it returns after a sweep, nothing may be left.
        let stopped = instance.stop(&world.cx());
        assert!(stopped.is_ok() || disk == "virtio", "{stopped:?}");
        let described = environment.describe(&world.cx());
        assert_eq!(described["vm.cache"], cache);
        assert_eq!(described["vm.network"], "user");
        environment.remove(&world.cx()).unwrap();
    }
    before.assert_restored(&world, "remove");
}

/// Returns the error of a start with these settings; nothing is left.
fn refused(world: &World, settings: &Params) -> EnvError {
    let before = Snapshot::take(world);
    let mut environment = configure(settings);
    let error = environment
        .start(&world.cx(), StartMode::Once)
        .err()
        .unwrap_or_else(|| panic!("started with {settings:?}"));
    // Immediately: after the error the caller may start the next one.
    assert_eq!(labelled(world.run.as_str()), [].into());
    environment.remove(&world.cx()).unwrap();
    before.assert_restored(world, "a refused start");
    println!("{error}");
    error
}

#[test]
fn unbootable_vm_is_refused_with_reason_and_cleanup() {
    let (_turn, world) = needed!(turn_where("bad", is_available));
    let shown = |settings: &Params| refused(&world, settings).to_string();

    let folder = tempfile::Builder::new()
        .prefix("tare it's, \u{1b}[31m")
        .tempdir()
        .unwrap();
    let text = folder.path().join("vmlinuz-text");
    fs::write(&text, "no kernel").unwrap();
    let text = text.to_str().unwrap();
    let error = refused(&world, &tcg().with("kernel", text));
    assert!(matches!(&error, EnvError::Absent { fix: Some(_), .. }));
    assert!(
        error.to_string().contains("is not a Linux kernel"),
        "{error}"
    );
    assert!(!error.to_string().contains('\u{1b}'));

    let unknown = shown(&tcg().with("cpu", "pentium17"));
    assert_says(&unknown, "pentium17");
    let unknown = shown(&tcg().with("machine", "abacus"));
    assert_says(&unknown, "machine type");
    let disk = tcg().with("disk", "virtio").with("disk_size", "512t");
    let full = shown(&disk);
    assert_says(&full, "disk image");
    assert_says(&full, "No space");
}

#[test]
fn vm_boot_timeout_shows_last_console_lines() {
    let (_turn, world) = needed!(turn_where("never", is_available));
    let error = refused(&world, &tcg().with("boot_limit", 0.3));
    let EnvError::Timeout { phase, limit } = &error else {
        panic!("{error}");
    };
    assert_eq!(*limit, Duration::from_millis(300));
    assert_says(phase, "console");
}

#[test]
fn requested_kvm_boots_or_is_refused_with_reason() {
    let (_turn, world) = needed!(turn_where("kvm", is_available));
    let mut environment = configure(&params("accel = 'kvm'"));
    let begin = Instant::now();
    let prepared = environment.prepare(&world.cx());
    println!("asked KVM for {:.1?}: {prepared:?}", begin.elapsed());
    let described = environment.describe(&world.cx());
    environment.remove(&world.cx()).unwrap();
    match prepared {
        Ok(()) => assert_eq!(emulation(&described), None),
        Err(EnvError::Absent { why, fix }) => {
            assert!(why.contains("KVM") && fix.is_some(), "{why}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the run's processes whose command contains this, without their sandbox processes.
fn running(world: &World, program: &str) -> Vec<u32> {
    labelled(world.run.as_str())
        .into_iter()
        .filter(|(_, command)| command.contains(program) && !command.contains(" sandbox "))
        .map(|(pid, _)| pid)
        .collect()
}

#[test]
fn vm_shared_folder_exit_reported_unservable_refused() {
    let (_turn, world) = needed!(turn_where("shared", is_available));
    let before = Snapshot::take(&world);
    let mut environment = configure(&tcg());
    environment.gather(2);
    let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
    match instance.shared() {
        Ok(folder) => assert_eq!(folder, "/tare-shared"),
        Err(reason) => {
            // Skips before any query of the guest: this test checks nothing else.
            environment.end(instance, &world.cx());
            return skip("virtiofsd", &reason.to_string());
        }
    }
    let paths = vec!["/tare-shared".to_owned()];
    let tools = Vec::new();
    let Reply::Facts { facts } = ask(instance.as_mut(), &Request::Facts { paths, tools }) else {
        panic!("no facts");
    };
    let is_shared = |(name, value): (&String, &String)| {
        name.contains("/tare-shared") && ["virtiofs", "fuse"].contains(&value.as_str())
    };
    assert!(facts.iter().any(is_shared), "{facts:?}");
    let servers = running(&world, "virtiofsd");
    assert_eq!(servers.len(), 1);
    assert!(signal("KILL", servers[0]));
    wait_until("it is told", || {
        let answer = instance.channel().receive(Duration::from_millis(50));
        matches!(answer, Err(ChannelError::Closed(why)) if why.contains("shared folder"))
    });
    instance.stop(&world.cx()).unwrap();

    // A file is in the place of the folder.
    let folder = world.cx().scratch.join("vm-arm/shared");
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "in the way").unwrap();
    let Err(error) = environment.start(&world.cx(), StartMode::Resident) else {
        panic!("started");
    };
    assert!(error.to_string().contains("shared"), "{error}");
    environment.remove(&world.cx()).unwrap();
    before.assert_restored(&world, "a served folder");
}

#[test]
fn vm_files_on_shared_folder_inner_container_or_both() {
    let (_turn, world) = needed!(turn_where("inner", is_available));
    let before = Snapshot::take(&world);
    let served = tcg().with("disk", "shared");
    let own = tcg().with("disk", "virtio").with("disk_size", "64m");
    for (settings, fstype, is_inside) in [
        (served.clone(), "virtiofs", false),
        (own.with("inner", "container"), "overlay", true),
        (served.with("inner", "container"), "virtiofs", true),
    ] {
        let mut environment = configure(&settings);
        let mut instance = match environment.start(&world.cx(), StartMode::Resident) {
            Ok(instance) => instance,
            Err(EnvError::Absent { why, fix }) => {
                assert!(fix.is_some());
                environment.remove(&world.cx()).unwrap();
                return skip("virtiofsd", &why);
            }
            Err(error) => panic!("{error}"),
        };
        is_run(instance.as_mut(), 1, "files");
        let inside = facts(instance.as_mut());
        let workdir = instance.workdir();
        assert_eq!(
            inside[&format!("mount.{workdir}.fstype")],
            fstype,
            "{inside:?}"
        );
        assert_eq!(inside["mount./.fstype"] == "overlay", is_inside);
        assert_eq!(inside["status.Seccomp"], if is_inside { "2" } else { "0" });
        instance.stop(&world.cx()).unwrap();
        let left = world.cx().scratch.join("vm-arm/shared").read_dir();
        assert!(left.is_ok_and(|mut left| left.next().is_none()) || fstype == "overlay");
        if fstype == "overlay" {
            // The next machine gets the disk, with what the first one's container left.
            let mut next = environment.start(&world.cx(), StartMode::Resident).unwrap();
            assert_eq!(facts(next.as_mut())["mount./.fstype"], "overlay");
            next.stop(&world.cx()).unwrap();
        }
        environment.remove(&world.cx()).unwrap();
    }
    before.assert_restored(&world, "remove");
}

/// The sandbox alone, around a program that would sleep for long: its parent is killed without warning.
#[test]
fn sandboxed_program_ends_with_its_caller() {
    let (_turn, world) = needed!(turn_where("sandbox", is_available));
    let agent = world.agents.host().path.clone();
    let mut parent = Command::new("sh")
        .args(["-c", "\"$0\" sandbox -- sleep 600 & wait"])
        .arg(agent)
        .env("TARE_RUN", world.run.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let sleeps = || {
        labelled(world.run.as_str())
            .values()
            .any(|command| command.ends_with("bin/sleep 600"))
    };
    wait_until("the program starts", sleeps);
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("everything is gone", || {
        labelled(world.run.as_str()).is_empty()
    });
}
