//! Tests servers in user containers, which `tare why` queries from outside.

use crate::product::{Product, assert_valid_dossier, cell, needs_container, needs_docker, words};
use crate::user_container::Bench;
use crate::why::confirmed;
use crate::world::{skip, turn};

/// Answers each connection with a line, after a pause if asked to.
const SERVER: &str = r#"socket(S,2,1,6) or die; setsockopt(S,1,2,pack("l",1)); bind(S,pack("S n N x8",2,80,0)) or die "bind: $!"; listen(S,64) or die; while(accept(C,S)){ select(undef,undef,undef,$ENV{PAUSE}) if $ENV{PAUSE}; syswrite C,"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"; close C }"#;
/// Sends this many requests, one connection each.
const CLIENT: &str = r#"($h,$p,$n)=@ARGV; for(1..$n){ socket(S,2,1,6) or die; connect(S,pack("S n C4 x8",2,$p,split /\./,$h)) or die "connect: $!"; $l=""; while(sysread(S,$b,99)){$l.=$b} $l=~/ok/ or die "no answer"; close S }"#;

fn bench(name: &str) -> Option<(Bench, Product)> {
    let has_perl = std::process::Command::new("perl")
        .arg("-v")
        .output()
        .is_ok();
    if !has_perl {
        skip("perl", "the host has no perl to serve with");
        return None;
    }
    needs_docker().then(|| {
        let bench = Bench::with_programs(name, "ENV OF_IMAGE=1", &["sh", "sleep", "perl"]);
        (bench, Product::new())
    })
}

#[test]
fn server_slowed_by_variable_is_explained() {
    let (bench, product) = needed!(bench("serve"));
    let _turn = turn();
    let before = bench.objects();
    let script = product.file("client.pl", CLIENT);
    let client = format!("perl {script} {{host}} {{port}} 4");
    let line = words("--port 8099 -- docker run --rm -p 8099:80 -e PAUSE=0.05");
    let image = [bench.image.as_str(), "perl", "-e", SERVER];
    let rest = [&[client.as_str()], line, &image].concat();
    let ask = "why --json - --budget 180s --client";
    let ended = product.tare(ask, &rest).expect(0);
    let dossier = ended.json();
    assert_valid_dossier(&dossier);
    assert_eq!(dossier["why"]["outcome"], "cost", "{:#}", dossier["why"]);
    confirmed(&dossier, "own.env.PAUSE");
    assert_eq!(bench.objects(), before);
}

#[test]
fn url_is_requested_by_tare_itself() {
    let (bench, product) = needed!(bench("serve-url"));
    let _turn = turn();
    let ask = "why --json - --budget 180s --url http://:8098/ --ready";
    let server = format!("$|=1; print qq(serving on 80\n); {SERVER}");
    let line = words("-- docker run --rm -p 8098:80 -e PAUSE=0.05");
    let image = [bench.image.as_str(), "perl", "-e", &server];
    let rest = [&["^serving on [0-9]+$"], line, &image].concat();
    let dossier = product.tare(ask, &rest).expect(0).json();
    let answer = dossier["why"]["answer"].as_str().unwrap_or_default();
    assert!(answer.starts_with("A request is "), "{answer}");
    confirmed(&dossier, "own.env.PAUSE");
}

#[test]
fn server_never_ready_is_reported_with_its_output() {
    let (bench, product) = needed!(bench("serve-bad"));
    let _turn = turn();
    let before = bench.objects();
    let line = words("--port 80 --ready-timeout 1s -- docker run --rm");
    let ask = [&["true {host} {port}"], line, &[&bench.image]].concat();
    for (command, words) in [
        (
            &["sh", "-c", "echo no config >&2; exit 3"][..],
            "exited with status 3 instead of serving: no config",
        ),
        (&["sleep", "1000"], "was not ready within 1 s"),
    ] {
        let rest = [&ask[..], command].concat();
        let ended = product.tare("why --budget 30s --client", &rest).expect(5);
        ended.complains(words);
        assert!(!ended.hint().is_empty());
    }
    let rest = [&ask[..], &["sh", "-c", "echo loading; sleep 1000"]].concat();
    product
        .tare("why --budget 30s --ready serving --client", &rest)
        .expect(5)
        .complains("it printed other lines, the last `loading`");
    assert_eq!(bench.objects(), before);
}

#[test]
fn server_in_environment_is_queried_from_host() {
    if !needs_container() {
        return;
    }
    let product = Product::new();
    let ask = |env: &'static str| {
        let ask = format!("why --json - --budget 15s --env {env} --url http://:80/ -- perl -e");
        product.tare(&ask, &[SERVER])
    };
    let dossier = ask("container").expect(0).json();
    assert_valid_dossier(&dossier);
    let request = cell(&dossier, "container", "command.request.time");
    assert!(request["n_blocks"].as_u64() >= Some(3), "{dossier:#}");
    ask("docker:network=host").expect(2).complains("network");
}
