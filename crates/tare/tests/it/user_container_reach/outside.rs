//! Tests that a command that needs the outside network has it as a bare process too, like a container on a bridge,
//! and nothing else. Arms of a study join no user's network.

use crate::prelude::*;

use std::process::ChildStdout;

use super::{Oracle, assert_ran, perl_bench};
use crate::docker::{leftovers, world};
use crate::user_container::{Bench, container_of, inspected, printed};

/// Answers at a port and prints the client's address.
const SERVER: &str = "socket L,2,1,0;setsockopt L,1,2,1;bind L,pack('S n C4 x8',2,7777,0,0,0,0);listen L,99;$|=1;print\"up\\n\";\
while($a=accept C,L){syswrite C,\"hello\\n\";print join('.',(unpack'S n C4',$a)[2..5]),\"\\n\";close C}";

/// A network namespace behind a veth pair that plays the outside, with a server in it and a route back only to this
/// machine's end.
struct Outside {
    name: String,
    near: String,
    far: String,
    server: Child,
    said: BufReader<ChildStdout>,
}

#[track_caller]
fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status();
    assert!(status.unwrap().success(), "ip {words}");
}

impl Outside {
    fn new() -> Self {
        let id = std::process::id();
        let name = format!("tare-outside-{id}");
        let block = 4 * (id % 63);
        let (near, far) = (
            format!("203.0.113.{}", block + 1),
            format!("203.0.113.{}", block + 2),
        );
        ip(&format!("netns add {name}"));
        ip(&format!(
            "link add to{id} type veth peer name eth0 netns {name}"
        ));
        ip(&format!("address add {near}/30 dev to{id}"));
        ip(&format!("link set to{id} up"));
        ip(&format!("-n {name} address add {far}/30 dev eth0"));
        ip(&format!("-n {name} link set eth0 up"));
        let mut server = Command::new("ip")
            .args(["netns", "exec", &name, "perl", "-e", SERVER])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout_text = BufReader::new(server.stdout.take().unwrap());
        let mut line = String::new();
        stdout_text.read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        Self {
            name,
            near,
            far,
            server,
            said: stdout_text,
        }
    }

    /// Stops the server and returns the clients' addresses.
    fn asked_by(mut self) -> Vec<String> {
        self.server.kill().unwrap();
        let lines = self.said.by_ref().lines();
        lines.map(|line| line.unwrap()).collect()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        ip(&format!("netns delete {}", self.name));
    }
}

/// A bench with `perl`, if network namespaces can be created.
fn outside_bench(name: &str) -> Option<Bench> {
    if !rustix::process::geteuid().is_root() {
        skip("root", "no network namespace can play the outside");
        return None;
    }
    perl_bench(name)
}

#[test]
fn outside_is_reached_by_a_bare_process_and_no_more() {
    let bench = needed!(outside_bench("reach-out"));
    let outside = Outside::new();
    let product = Product::new();
    let mut oracle = Oracle::new("out");
    let ask = format!(
        "socket S,2,1,0;connect S,pack('S n C4 x8',2,7777,split/\\./,'{}') or exit 9;print scalar<S>;{}",
        outside.far,
        oracle.script("127.0.0.1")
    );
    let command = [bench.image.as_str(), "perl", "-e", &ask];
    let ended = product.tare("why --budget 9s -- docker run", &command);
    assert_ran(&ended);
    let mut lines = ended.stderr.lines();
    let compared = lines.find(|line| line.contains("compared with: ")).unwrap();
    assert!(
        compared.contains("as a bare process") && !compared.contains("could not be"),
        "{ended}"
    );
    assert_eq!(oracle.touched(), [""; 0], "{ended}");
    // Every client has this machine's address: there is no other route back.
    let near = outside.near.clone();
    let asked = outside.asked_by();
    assert!(asked.len() > 2, "{asked:?}: {ended}");
    assert!(asked.iter().all(|it| *it == near), "{near}: {asked:?}");
    product.assert_nothing_left();
}

#[test]
fn arms_of_a_study_join_networks_on_demand_only() {
    let world = needed!(world("own-study-net"));
    let mut bench = Bench::new("study-net", "ENV OF_IMAGE=1");
    let network = bench.name("network", "mine");
    printed("network create", &[&network]);
    let line = format!("docker run --network {network} {} sleep 9", bench.image);
    let networks = |settings: &Params| -> Vec<String> {
        let mut environment = DOCKER.configure(arm_id("like"), settings).unwrap();
        environment.prepare(&world.cx()).unwrap();
        let instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
        let found = inspected(&container_of(&world));
        let on = found["NetworkSettings"]["Networks"].as_object().cloned();
        environment.end(instance, &world.cx());
        on.into_iter()
            .flatten()
            .map(|(name, _): (String, Value)| name)
            .collect()
    };
    let settings = Params::new().with("run", line.as_str());
    let own = format!("tare-{}-like-own", world.run);
    assert_eq!(networks(&settings), [own]);
    assert_eq!(networks(&settings.with("join_networks", true)), [network]);
    assert_eq!(leftovers(&world, &DOCKER), [""; 0]);
}
