//! Tests servers in arms, queried by the client outside.

use crate::prelude::*;

/// A server in Perl: answers every request on a connection, until it is closed.
const SERVER: &str = r#"
use IO::Socket::INET;
my ($port, $bind, $answer) = @ARGV;
my $server = IO::Socket::INET->new(LocalAddr => $bind, LocalPort => $port, Listen => 16, ReuseAddr => 1) or die $!;
while (my $client = $server->accept) {
    $client->autoflush(1);
    while (1) {
        my $lines = 0;
        while (my $line = <$client>) { $lines++; last if $line eq "\r\n" }
        last unless $lines;
        print $client "HTTP/1.1 $answer\r\nContent-Length: 3\r\n\r\nok\n";
    }
}
"#;

fn workload(server: &str, more: &str) -> String {
    format!(
        "[[workload]]\nid = \"service\"\npath = \"host→arm\"\n[workload.params]\n\
         server = \"{server}\"\nconfig = '''{SERVER}'''\n{more}\n"
    )
}

#[test]
fn servers_are_compared_in_turns_and_at_a_rate() {
    if !needs_container() {
        return;
    }
    let server = "perl {folder}/config {port} {bind} '200 OK'";
    let dying = "sh -c 'echo out of cheese >&2; exit 3'";
    let study = [
        "id = \"served\"\ntitle = \"Served\"\nbaseline = \"host\"\n\
         [design]\ntrial = \"30ms\"\nblocks_min = 2\nblocks_max = 2\n\
         [[arm]]\nid = \"host\"\n[[arm]]\nid = \"container\"\n"
            .to_owned(),
        workload(server, ""),
        workload(server, "rate = 200"),
        workload(dying, ""),
    ];
    let product = Product::new();
    let path = product.file("served.toml", study.concat());
    let dossier = product.dossier(["run", &path]);
    assert_valid_dossier(&dossier);
    product.assert_nothing_left();
    for (metric, rate) in [
        ("service.latency.typical", 0),
        ("service.request.throughput", 0),
        ("service.start.ready", 0),
        ("service.request.cpu", 0),
        ("service.latency.typical", 200),
        ("service.request.cpu", 200),
    ] {
        let mut cells = dossier["cells"].as_array().unwrap().iter();
        let is_wanted = |cell: &&Value| {
            cell["arm"] == "container"
                && cell["metric"] == metric
                && cell["params"]["rate"] == rate
                && cell["params"]["server"] == server
        };
        let cell = cells.find(is_wanted);
        let cell = cell.unwrap_or_else(|| panic!("no {metric}: {dossier:#}"));
        assert_eq!(cell["n_blocks"], 2, "{cell:#}");
        let value = cell["env"]["point"].as_f64();
        assert!(value.is_some_and(|value| value > 0.0), "{cell:#}");
        assert_eq!(cell["in_turn"] == true, rate == 0, "{cell:#}");
    }
    let expected = "before it listened: out of cheese";
    let failures = dossier["failures"].to_string();
    assert_says(&failures, expected);
}

/// Queries a database in its protocol: `good` must be answered, and `bad` refused. Returns the message about the
/// latter.
fn assert_answers(server: &str, good: &str, bad: Option<&str>) -> String {
    let product = Product::new();
    let study = "id = \"kept\"\ntitle = \"Kept\"\nbaseline = \"host\"\n\
         [design]\ntrial = \"30ms\"\nblocks_min = 2\nblocks_max = 2\n\
         [[arm]]\nid = \"host\"\n[[arm]]\nid = \"container\"\n\
         [[workload]]\nid = \"service\"\npath = \"host→arm\"\n[workload.params]\n";
    let asked = |lines: &str| {
        let text = format!("{study}{server}{lines}");
        product.dossier(["run", &product.file("kept.toml", text)])
    };
    let dossier = asked(good);
    assert_valid_dossier(&dossier);
    for metric in ["service.latency.typical", "service.request.cpu"] {
        let cell = cell(&dossier, "container", metric);
        assert_eq!(
            (cell["n_blocks"].as_u64(), &cell["in_turn"]),
            (Some(2), &true.into())
        );
    }
    let refused = bad.map(|bad| asked(&format!("ready_ms = 2000\n{bad}"))["failures"].to_string());
    product.assert_nothing_left();
    refused.unwrap_or_default()
}

#[test]
fn redis_service_is_queried_in_redis_protocol() {
    if !needs_container() {
        return;
    }
    let has_redis = std::process::Command::new("redis-server")
        .arg("--version")
        .output();
    if has_redis.is_err() {
        skip("tools", "there is no redis-server here");
        return;
    }
    let server =
        "server = \"redis-server --port {port} --bind {bind} --save '' --protected-mode no\"\n";
    let good = "commands = '''\nSET page 'two words'\nGET page\n'''\n";
    let failures = assert_answers(server, good, Some("commands = 'GOT page'\n"));
    assert_says(
        &failures,
        "GOT is answered with status 500: `-ERR unknown command",
    );
}

#[test]
fn postgres_service_is_queried_in_postgres_protocol() {
    if !needs_container() {
        return;
    }
    // The server and its files are those of the study that comes with Tare.
    let study = include_str!("../../../../studies/databases.toml");
    let study: toml::Value = toml::from_str(study).unwrap();
    let workloads = study["workload"].as_array().unwrap().iter();
    let mut params = workloads.map(|it| it["params"].clone());
    let mut params = params.find(|it| it.get("queries").is_some()).unwrap();
    params.as_table_mut().unwrap().remove("queries");
    let server = toml::to_string(&params).unwrap();
    let folders = std::fs::read_dir("/usr/lib/postgresql");
    if folders.map_or(true, |mut it| it.next().is_none()) {
        skip("tools", "there is no PostgreSQL here");
        return;
    }
    let good = "queries = '''\nCREATE TABLE IF NOT EXISTS kept (page text)\nSELECT count(*) FROM kept\n'''\n";
    // No refused query, because the server starts slowly; the reader of answers has a separate test.
    assert_answers(&server, good, None);
}
