//! Servers in arms, asked by the client outside.

use serde_json::Value;

use crate::product::{Product, assert_valid_dossier, has_container};
use crate::world::skip;

/// A server in Perl: the answer to every request on a connection, until it is closed.
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

fn run(product: &Product, budget: &str, workloads: &[String]) -> Value {
    let study = format!(
        "id = \"served\"\ntitle = \"Served\"\nbaseline = \"host\"\n[design]\ntrial = \"60ms\"\nlimit = \"10s\"\n\
         [[arm]]\nid = \"host\"\ndriver = \"host\"\n[[arm]]\nid = \"container\"\ndriver = \"container\"\n{}",
        workloads.concat()
    );
    let path = product.file("served.toml", &study);
    let dossier = product.dossier(["run", &path, "--budget", budget]);
    assert_valid_dossier(&dossier);
    product.assert_nothing_left();
    dossier
}

#[test]
fn servers_are_compared_in_turns_and_at_a_rate() {
    if !has_container() {
        skip("root", "no container can be made here");
        return;
    }
    let server = "perl {folder}/config {port} {bind} '200 OK'";
    let dossier = run(
        &Product::new(),
        "12s",
        &[workload(server, ""), workload(server, "rate = 200")],
    );
    let cells = dossier["cells"].as_array().unwrap();
    let of = |metric: &str, rate: i64| {
        cells
            .iter()
            .find(|cell| {
                cell["arm"] == "container"
                    && cell["metric"] == metric
                    && cell["params"]["rate"] == rate
            })
            .unwrap_or_else(|| panic!("no {metric}: {dossier:#}"))
    };
    for (metric, rate) in [
        ("service.latency.typical", 0),
        ("service.request.throughput", 0),
        ("service.start.ready", 0),
        ("service.latency.typical", 200),
    ] {
        let cell = of(metric, rate);
        assert!(
            cell["ratio"]["estimate"]
                .as_f64()
                .is_some_and(|it| it > 0.0),
            "{cell:#}"
        );
        assert_eq!(cell["in_turn"], rate == 0, "{cell:#}");
    }
}
