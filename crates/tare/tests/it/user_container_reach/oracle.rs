//! Listeners on the host's loopback, on a user's network and in a shared folder that report whether they were
//! reached.

use crate::prelude::*;

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::SocketAddr;

use crate::user_container::{Bench, inspected, printed};
use crate::user_container_ways::started;

/// Listeners that must not be reached, and a folder with a socket, a named pipe and a file.
pub(super) struct Oracle {
    tcp: TcpListener,
    udp: UdpSocket,
    named: UnixListener,
    placed: UnixListener,
    pipe: fs::File,
    folder: tempfile::TempDir,
    name: String,
}

impl Oracle {
    pub(super) fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("tare-oracle-{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let oracle = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            named: UnixListener::bind_addr(&address).unwrap(),
            placed: UnixListener::bind(folder.path().join("socket")).unwrap(),
            pipe: fs::OpenOptions::new()
                .read(true)
                .custom_flags(i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap())
                .open(pipe)
                .unwrap(),
            folder,
            name,
        };
        fs::write(oracle.file(), "mine").unwrap();
        oracle.tcp.set_nonblocking(true).unwrap();
        oracle.udp.set_nonblocking(true).unwrap();
        oracle.named.set_nonblocking(true).unwrap();
        oracle.placed.set_nonblocking(true).unwrap();
        oracle
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    pub(super) fn shown(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// Returns a script that tries all of it, and `peer`, another container's address; it continues after failures.
    pub(super) fn script(&self, peer: &str) -> String {
        let (tcp, udp) = (
            self.tcp.local_addr().unwrap().port(),
            self.udp.local_addr().unwrap().port(),
        );
        let (folder, name) = (self.shown(), &self.name);
        let peer = peer.replace('.', ",");
        format!(
            "$SIG{{ALRM}}=sub{{}};sub at{{pack'S n C4 x8',2,@_}}\
             socket A,2,1,0;connect A,at({tcp},127,0,0,1);socket B,2,2,0;send B,'x',0,at({udp},127,0,0,1);\
             socket C,1,1,0;connect C,pack('S a*',1,\"\\0{name}\");socket D,1,1,0;connect D,pack('S a*',1,'{folder}/socket');\
             if(sysopen E,'{folder}/pipe',2049){{syswrite E,'x'}}if(open F,'>>','{folder}/file'){{syswrite F,'x'}}\
             socket G,2,2049,0;connect G,at(7777,{peer});select undef,undef,undef,0.02;for(1..200000){{}}"
        )
    }

    /// Returns what was reached, in words.
    pub(super) fn touched(&mut self) -> Vec<&'static str> {
        let would_block = |kind: ErrorKind| kind == ErrorKind::WouldBlock;
        let mut byte = [0];
        let untouched = [
            (
                "TCP",
                self.tcp.accept().is_err_and(|it| would_block(it.kind())),
            ),
            (
                "UDP",
                self.udp
                    .recv(&mut byte)
                    .is_err_and(|it| would_block(it.kind())),
            ),
            (
                "abstract socket",
                self.named.accept().is_err_and(|it| would_block(it.kind())),
            ),
            (
                "socket in a folder",
                self.placed.accept().is_err_and(|it| would_block(it.kind())),
            ),
            (
                "named pipe",
                !self.pipe.read(&mut byte).is_ok_and(|length| length > 0),
            ),
            ("file", contents(self.file()) == "mine"),
        ];
        let touched = untouched
            .into_iter()
            .filter(|(_, is_untouched)| !is_untouched);
        touched.map(|(what, _)| what).collect()
    }
}

/// Listens at a container's port and prints when it was reached.
const PEER: &str = "socket L,2,1,0;bind L,pack('S n C4 x8',2,7777,0,0,0,0);listen L,9;$|=1;print\"up\n\";while(accept C,L){print\"reached\n\";close C}";

/// A user's network with a listener in it.
pub(super) struct Peer {
    pub(super) network: String,
    name: String,
    pub(super) address: String,
}

impl Peer {
    pub(super) fn new(bench: &mut Bench) -> Self {
        let network = bench.name("network", "peers");
        printed("network create", &[&network]);
        let name = started(
            bench,
            "peer",
            &["--network", &network],
            &["perl", "-e", PEER],
        );
        wait_until("the listener is up", || {
            printed("logs", &[&name]).contains("up")
        });
        let found = inspected(&name);
        let address = found["NetworkSettings"]["Networks"][&network]["IPAddress"].as_str();
        Self {
            address: address.unwrap().to_owned(),
            network,
            name,
        }
    }

    pub(super) fn is_reached(&self) -> bool {
        !self.reached().is_empty()
    }

    /// Whether it is reached although the engine keeps its network apart from others. While the engine makes another
    /// network, for whomever, it removes the rules for that for a moment.
    pub(super) fn is_reached_from_other_network(&self) -> bool {
        let until = format!("--until={}", jiff::Timestamp::now());
        let made =
            "events --since=1h --filter=type=network --filter=event=create --format={{.TimeNano}}";
        let made = printed(made, &[&until]);
        let made: Vec<i128> = made.lines().map(|line| line.parse().unwrap()).collect();
        // The event comes after the rules are back.
        let is_soon = |at: i128| {
            made.iter()
                .any(|made| (0..5_000_000_000).contains(&(made - at)))
        };
        !self.reached().into_iter().all(is_soon)
    }

    /// When it was reached, in nanoseconds since 1970.
    fn reached(&self) -> Vec<i128> {
        let logged = printed("logs --timestamps", &[&self.name]);
        let times = logged
            .lines()
            .filter_map(|line| line.strip_suffix(" reached"));
        let times = times.map(|time| time.parse::<jiff::Timestamp>().unwrap());
        times.map(jiff::Timestamp::as_nanosecond).collect()
    }
}
