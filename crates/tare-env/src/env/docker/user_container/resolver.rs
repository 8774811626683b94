//! Writes the `resolv.conf` of a bare process on a bridge, with the name servers that the engine would give a
//! container there.
//!
//! Limits: name servers in the engine's own configuration are not seen.

use tare_model::Value as Setting;

use crate::env::prelude::*;

/// This machine's name servers, and those behind a local resolver on the loopback.
const PLACES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// The engines' fallback.
const USUAL: [&str; 2] = ["8.8.8.8", "8.8.4.4"];

/// Whether a configuration has DNS settings.
pub(super) fn is_given(body: &Value) -> bool {
    let host = &body["HostConfig"];
    ["Dns", "DnsSearch", "DnsOptions"]
        .iter()
        .any(|name| entries_of(&host[name]).next().is_some())
}

/// Writes the `resolv.conf` for a configuration and returns the bind mount of it for a bare process.
pub(super) fn written(file: &Path, body: &Value) -> Result<Setting, EnvError> {
    let machines = PLACES.map(|path| files::read_text(Path::new(path)).unwrap_or_default());
    files::write_working(file, text(&body["HostConfig"], &machines).as_bytes())?;
    files::show_to_all(file)?;
    let bind = format!("{}:/etc/resolv.conf:ro", file.display());
    Ok(Setting::List(vec![Setting::Text(bind)]))
}

fn text(host: &Value, machines: &[String]) -> String {
    let list = |name: &str| -> Vec<String> { texts_of(&host[name]).map(str::to_owned).collect() };
    let of_machine = |key: &str, is_reached: fn(&str) -> bool| -> Vec<String> {
        let of = |text: &String| -> Vec<String> {
            let lines = text.lines().filter_map(|line| {
                let mut words = line.split_whitespace();
                (words.next() == Some(key)).then(|| words.collect::<Vec<_>>())
            });
            let mut values: Vec<&str> = lines.flatten().collect();
            values.retain(|value| is_reached(value));
            values.into_iter().map(str::to_owned).collect()
        };
        let mut found = machines.iter().map(of);
        found.find(|values| !values.is_empty()).unwrap_or_default()
    };
    let given = |name: &str, key: &str, is_reached: fn(&str) -> bool| {
        let given = list(name);
        if given.is_empty() {
            of_machine(key, is_reached)
        } else {
            given
        }
    };
    // The bridge reaches neither the host's loopback nor IPv6.
    let mut servers = given("Dns", "nameserver", |it| {
        !it.starts_with("127.") && !it.contains(':')
    });
    if servers.is_empty() {
        servers = USUAL.map(str::to_owned).to_vec();
    }
    let mut lines: Vec<String> = servers
        .iter()
        .map(|it| format!("nameserver {it}"))
        .collect();
    for (name, key) in [("DnsSearch", "search"), ("DnsOptions", "options")] {
        let words = given(name, key, |_| true);
        if !words.is_empty() {
            lines.push(format!("{key} {}", words.join(" ")));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn name_servers_are_those_that_an_engine_writes() {
        let stub = "nameserver 127.0.0.53\noptions edns0\nsearch lan\n".to_owned();
        let behind = "# a comment\nnameserver 192.0.2.53\nnameserver ::1\n".to_owned();
        for (host, machines, expected) in [
            (
                json!({}),
                [&stub, &behind],
                "nameserver 192.0.2.53\nsearch lan\noptions edns0\n",
            ),
            (
                json!({"Dns": ["198.51.100.1"], "DnsSearch": ["x", "y"]}),
                [&stub, &behind],
                "nameserver 198.51.100.1\nsearch x y\noptions edns0\n",
            ),
            (
                json!({"Dns": []}),
                [&stub, &String::new()],
                "nameserver 8.8.8.8\nnameserver 8.8.4.4\nsearch lan\noptions edns0\n",
            ),
        ] {
            let machines = machines.map(String::clone);
            assert_eq!(text(&host, &machines), expected);
        }
    }
}
