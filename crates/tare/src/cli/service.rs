//! The flags for servers: which requests are sent, and when the server is ready.
//!
//! Limits: the container's published ports are not known yet; they are looked up later.

use clap::Args;
use tare_model::command::Pick;
use tare_model::outcome::Bytes;

use std::path::Path;

use super::Failed;
use crate::compare::options;
use crate::config::units;
use crate::cx::files;
use crate::service::http::Request;
use crate::service::ready::Ready;
use crate::service::request_plan::RequestPlan;
use crate::service::user::{HOST, PORT, UserClient};
use crate::workload::user_command;

/// How a server is asked.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServiceFlags {
    /// Take the command as a server that answers this address, by the port that is published or the one inside:
    /// `http://:8080/path`.
    #[arg(long, value_name = "URL", conflicts_with_all = ["client", "inside"])]
    url: Option<String>,
    /// Send requests with this method.
    #[arg(long, value_name = "METHOD", requires = "url", default_value = "GET")]
    method: String,
    /// Send this header too.
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    headers: Vec<String>,
    /// Send this text, or the content of @FILE.
    #[arg(long, value_name = "TEXT|@FILE", requires = "url")]
    data: Option<String>,
    /// Ask over so many connections at once.
    #[arg(long, value_name = "N", requires = "url", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Send so many requests a second, whether or not earlier ones were answered (default: each connection waits for its
    /// answer). Of several rates, separated by commas, the highest is found that both sides keep up with.
    #[arg(long, value_name = "R", requires = "url", value_delimiter = ',')]
    rate: Vec<f64>,
    /// Open a new connection for each request.
    #[arg(long, requires = "url")]
    no_keep_alive: bool,
    /// Accept this status only (default: 200 to 299 and 304).
    #[arg(long, value_name = "STATUS", requires = "url", value_parser = clap::value_parser!(u16).range(100..=599))]
    expect: Option<u16>,
    /// Take the command as a server and ask it with this client on the host, once a trial; `{host}` and `{port}` stand
    /// for its address.
    #[arg(long, value_name = "CMD", conflicts_with = "inside")]
    client: Option<String>,
    /// Name the server's port: the one inside, or the one that is published for it.
    #[arg(long, value_name = "PORT", requires = "client")]
    port: Option<u16>,
    /// Wait until a GET of this path or URL is answered with a status below 400, until this port takes connections, or
    /// until the server has printed a line in which this regular expression is found (default: until `--url` is answered
    /// as expected, or its port takes connections).
    #[arg(long, value_name = "PATH|URL|PORT|REGEX")]
    ready: Option<String>,
    /// Limit the time until the server is ready (default: 30s).
    #[arg(long, value_parser = units::some_duration_ns, value_name = "TIME")]
    ready_timeout: Option<u64>,
}

impl ServiceFlags {
    /// Returns the given flag that makes the command a server, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        let url = self.url.as_ref().map(|_| "--url");
        url.or(self.client.as_ref().map(|_| "--client"))
    }

    /// Returns the request rates in ascending order, if there are several.
    pub(super) fn rates(&self) -> Vec<f64> {
        let mut rates = self.rate.clone();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        if rates.len() < 2 {
            rates.clear();
        }
        rates
    }

    /// Returns the client if the command is a server; with several rates, at the lowest. Its port may be the
    /// published one.
    pub(super) fn client(&self) -> Result<Option<UserClient>, Failed> {
        if let Some(url) = &self.url {
            return self.asked_by_url(url).map(Some);
        }
        let Some(text) = &self.client else {
            let is_ready = self.ready.is_some() || self.ready_timeout.is_some();
            return if is_ready {
                Err(Failed::usage("`--ready` is for a server, and none is asked").hint(EXAMPLE_URL))
            } else {
                Ok(None)
            };
        };
        let argv = shlex::split(text).filter(|words| !words.is_empty());
        let argv = argv.ok_or_else(|| {
            Failed::usage(format!(
                "`--client {text}` is no command: a quote is not closed, or it is empty"
            ))
            .hint(EXAMPLE)
        })?;
        let port = self.port.filter(|port| *port > 0).ok_or_else(|| {
            Failed::usage("`--client` does not say on which port the server listens").hint(EXAMPLE)
        })?;
        if !argv.iter().any(|word| word.contains(HOST))
            || !argv.iter().any(|word| word.contains(PORT))
        {
            return Err(Failed::usage(format!(
                "`--client {text}` would ask the same server for every arm: it names no `{HOST}` and `{PORT}`"
            ))
            .hint(EXAMPLE));
        }
        Ok(Some(UserClient {
            argv,
            port,
            ready: self.ready.as_deref().map_or(Ok(Ready::Connects), ready)?,
            ready_ns: self.ready_timeout.unwrap_or(READY_NS),
            ..UserClient::default()
        }))
    }

    fn asked_by_url(&self, url: &str) -> Result<UserClient, Failed> {
        let Target { host, port, path } = target(url)?;
        let is_rate = |rate: &f64| rate.is_finite() && *rate > 0.0;
        if let Some(rate) = self.rate.iter().find(|rate| !is_rate(rate)) {
            return Err(Failed::usage(format!(
                "`--rate {rate}` is no number of requests a second"
            ))
            .hint("for example `--rate 500`, or `--rate 100,200,400`"));
        }
        let rate = self.rate.iter().copied().reduce(f64::min);
        let mut request = Request {
            method: self.method.clone(),
            ..Request::get(&path)
        };
        for text in &self.headers {
            request.add_header(text).map_err(|problem| {
                Failed::usage(problem).hint("for example `--header 'Accept: text/html'`")
            })?;
        }
        request.body = Bytes(match self.data.as_deref() {
            None => Vec::new(),
            Some(text) => match text.strip_prefix('@') {
                Some(file) => files::read(Path::new(file))?,
                None => text.as_bytes().to_vec(),
            },
        });
        // Requests that may change state are not sent as readiness checks.
        let usual = if self.method == "GET" {
            Ready::Answers {
                path,
                host: host.clone(),
                status: self.expect,
            }
        } else {
            Ready::Connects
        };
        let asked = RequestPlan::closed_loop(request).map_err(|problem| {
            Failed::usage(problem)
                .hint("for example `--url http://:8080/path --method POST --data @FILE`")
        })?;
        Ok(UserClient {
            http: Some(RequestPlan {
                host: Some(host),
                connections: self.connections,
                rate,
                keep_alive: !self.no_keep_alive,
                expect: self.expect,
                ..asked
            }),
            trial_ns: rate.map_or(TRIAL_NS, |_| RATE_TRIAL_NS),
            port,
            ready: self.ready.as_deref().map_or(Ok(usual), ready)?,
            ready_ns: self.ready_timeout.unwrap_or(READY_NS),
            ..UserClient::default()
        })
    }

    /// Returns the metric for this `--metric`, and the number to pick if it is read from the output.
    pub(super) fn metric(
        &self,
        text: &str,
        more_is_better: bool,
    ) -> Result<(&'static str, Option<Pick>), Failed> {
        let line = |name: &str, metric: &'static str| {
            let pick = Pick {
                pattern: format!("^{name} ([0-9.]+)$"),
                more_is_better: metric == user_command::RATE,
                metric: Some(metric.to_owned()),
            };
            Ok((metric, Some(pick)))
        };
        let by_url = self.url.is_some();
        match text {
            "wall" if by_url => line("typical_ns", user_command::REQUEST),
            "mean" | "p50" | "p90" | "p99" if by_url => {
                line(&format!("{text}_ns"), user_command::REQUEST)
            }
            "throughput" if by_url => line("throughput", user_command::RATE),
            _ if by_url => Err(Failed::usage(format!(
                "`--metric {text}` is none that `--url` has"
            ))
            .hint("leave it out for the typical time of a request, or: mean, p50, p90, p99, throughput")),
            "cpu" if self.client.is_some() => Err(Failed::usage(
                "`--metric cpu` counts a command's own processor time, and the client is not what is asked about",
            )
            .hint("leave it out, or pick a number that the client prints with a regular expression")),
            "wall" => Ok((user_command::WALL, None)),
            "cpu" => Ok((user_command::CPU, None)),
            pattern => {
                let pick = options::pick(pattern, more_is_better).map_err(|failed| {
                    failed.hint("`wall`, `cpu`, or for example `--metric 'total: ([0-9.]+) s'`")
                })?;
                let metric = if more_is_better {
                    user_command::RATE
                } else {
                    user_command::COST
                };
                Ok((metric, Some(pick)))
            }
        }
    }
}

/// The default time limit for a server to become ready.
const READY_NS: u64 = 30_000_000_000;
/// How long requests are sent to each server in a trial: interleaved, and at a rate.
const TRIAL_NS: u64 = 100_000_000;
const RATE_TRIAL_NS: u64 = 300_000_000;

/// The parts of an address.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// What the server is called by its clients.
    host: String,
    port: u16,
    path: String,
}

/// Parses an address. Its host is only a name: each arm has its own address.
fn target(url: &str) -> Result<Target, Failed> {
    let Some(rest) = url.strip_prefix("http://") else {
        return Err(if url.starts_with("https://") {
            Failed::usage(format!("`--url {url}`: TLS is not spoken here")).hint(
                "ask with a client that does: `--client 'curl -sk https://{host}:{port}/' --port 443`",
            )
        } else {
            Failed::usage(format!("`--url {url}` is no http:// address")).hint(EXAMPLE_URL)
        });
    };
    let (address, path) = split(rest);
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
        _ => (address, Some(80)),
    };
    let port = port.filter(|port| *port > 0).ok_or_else(|| {
        Failed::usage(format!("`--url {url}` has no port that there is")).hint(EXAMPLE_URL)
    })?;
    if host.contains('@') {
        return Err(
            Failed::usage("`--url` holds a name or password, which is not sent")
                .hint("`--header 'Authorization: Basic …'`"),
        );
    }
    Ok(Target {
        host: or_local(host),
        port,
        path: path.to_owned(),
    })
}

/// Splits what follows `http://` into address and path.
fn split(rest: &str) -> (&str, &str) {
    let place = rest.find('/');
    place.map_or((rest, "/"), |place| rest.split_at(place))
}

fn or_local(host: &str) -> String {
    if host.is_empty() { "localhost" } else { host }.to_owned()
}

const EXAMPLE_URL: &str = "for example `tare why --url http://:8080/ -- docker run -p 8080:80 …`";

const EXAMPLE: &str = "for example `--client 'ab -n 1000 http://{host}:{port}/' --port 8080 -- docker run -p 8080:80 …`";

/// Parses a path, a URL (only its path is used), a port, or else a regular expression for the server's output.
fn ready(text: &str) -> Result<Ready, Failed> {
    if let Ok(port) = text.parse() {
        return Ok(Ready::Port { port });
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    let url = text.strip_prefix("http://");
    let (host, path) = url.map_or(("", text), split);
    let is_path = path.starts_with('/');
    if !is_path && !text.contains("://") {
        let why = match user_command::compiled(text) {
            Ok(_) if text.is_empty() => String::new(),
            Ok(_) => {
                return Ok(Ready::Prints {
                    pattern: text.to_owned(),
                });
            }
            Err(why) => format!(": {why}"),
        };
        return Err(Failed::usage(format!(
            "`--ready {text}` is neither a path nor an http:// URL nor a regular expression{why}"
        ))
        .hint("for example `--ready /health` or `--ready 'ready to accept connections'`"));
    }
    if !is_path || !is_plain {
        return Err(Failed::usage(format!("`--ready {text}` is no http:// URL"))
            .hint("for example `--ready /health`"));
    }
    Ok(Ready::Answers {
        path: path.to_owned(),
        host: or_local(host.split(':').next().unwrap_or_default()),
        status: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        flags: ServiceFlags,
        #[arg(long)]
        inside: Option<String>,
    }

    fn flags(words: &[&str]) -> Result<ServiceFlags, clap::Error> {
        let words = std::iter::once(&"why").chain(words);
        <Line as clap::Parser>::try_parse_from(words).map(|line| line.flags)
    }

    #[test]
    fn client_is_split_and_keeps_its_placeholders() {
        let given = [
            "--client",
            "ab -n 9 'http://{host}:{port}/a b'",
            "--port",
            "80",
        ];
        let client = flags(&given).unwrap().client().unwrap().unwrap();
        assert_eq!(client.argv, ["ab", "-n", "9", "http://{host}:{port}/a b"]);
        assert_eq!((client.port, client.ready), (80, Ready::Connects));
        assert_eq!(client.ready_ns, 30_000_000_000);
        assert_eq!(flags(&[]).unwrap().client().unwrap(), None);
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for (words, part) in [
            (&["--client", "ab {host} {port}"][..], "which port"),
            (
                &["--client", "ab {host} {port}", "--port", "0"],
                "which port",
            ),
            (&["--client", "", "--port", "80"], "no command"),
            (&["--client", "ab 'x", "--port", "80"], "no command"),
            (&["--client", "ab localhost", "--port", "80"], "same server"),
            (&["--client", "ab {host}", "--port", "80"], "same server"),
        ] {
            let failed = flags(words).unwrap().client().unwrap_err();
            assert!(failed.message.contains(part), "{failed}");
            assert!(failed.hint.unwrap().contains("--client"));
        }
        for words in [&["--port", "80"][..], &["--client", "x", "--inside", "y"]] {
            assert!(flags(words).is_err(), "{words:?}");
        }
        assert!(flags(&["--ready", "/"]).unwrap().client().is_err());
        for words in [["--client", "x"], ["--url", "http://:1/"]] {
            assert!(flags(&words).unwrap().metric("cpu", false).is_err());
        }
    }

    #[test]
    fn url_is_a_path_a_port_and_a_name_and_no_address() {
        for (url, host, port, path) in [
            ("http://:8080/a?b=c", "localhost", 8080, "/a?b=c"),
            ("http://shop.test", "shop.test", 80, "/"),
            ("http://[::1]:81/", "[::1]", 81, "/"),
        ] {
            let (host, path) = (host.to_owned(), path.to_owned());
            assert_eq!(target(url).unwrap(), Target { host, port, path });
        }
        for (url, part) in [
            ("https://:443/", "TLS"),
            ("localhost:80", "no http://"),
            ("http://:0/", "port"),
            ("http://:many/", "port"),
            ("http://me:secret@x:80/", "password"),
        ] {
            let failed = target(url).unwrap_err();
            assert!(failed.message.contains(part), "{failed}");
            assert!(!failed.message.contains("secret") && failed.hint.is_some());
        }
    }

    #[test]
    fn url_with_options_is_one_request() {
        let words = [
            "--url",
            "http://:8080/x",
            "--method",
            "POST",
            "--data",
            "a=b",
            "--header",
            "Accept: text/html",
        ];
        let client = flags(&words).unwrap().client().unwrap().unwrap();
        let request = &client.http.unwrap().requests[0];
        assert_eq!(
            (request.method.as_str(), &request.body.0[..]),
            ("POST", &b"a=b"[..])
        );
        assert_eq!(
            request.headers,
            [("Accept".to_owned(), "text/html".to_owned())]
        );
        assert_eq!((client.port, client.ready), (8080, Ready::Connects));
        for more in [
            ["--header", "none"],
            ["--header", "Host: x"],
            ["--rate", "0"],
            ["--method", "A B"],
            ["--data", "@/no/such/file"],
            ["--data", "a body of GET"],
        ] {
            let words = ["--url", "http://:8080/x"].into_iter().chain(more);
            let failed = flags(&words.collect::<Vec<_>>())
                .unwrap()
                .client()
                .unwrap_err();
            assert!(
                failed.hint.is_some() || more[1].starts_with('@'),
                "{failed}"
            );
        }
        for words in [
            &["--rate", "5"][..],
            &["--url", "http://:1/", "--client", "x"],
            &["--url", "http://:1/", "--connections", "0"],
            &["--url", "http://:1/", "--expect", "700"],
        ] {
            assert!(flags(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn ready_accepts_path_url_port_or_pattern() {
        let of = |text: &str| ready(text).map_err(|failed| failed.message);
        let answers = |path: &str, host: &str| Ready::Answers {
            path: path.to_owned(),
            host: host.to_owned(),
            status: None,
        };
        assert_eq!(of("/health").unwrap(), answers("/health", "localhost"));
        assert_eq!(
            of("http://:8080/a?b").unwrap(),
            answers("/a?b", "localhost")
        );
        assert_eq!(of("http://shop.test:1").unwrap(), answers("/", "shop.test"));
        assert_eq!(of("8080").unwrap(), Ready::Port { port: 8080 });
        let prints = |pattern: &str| Ready::Prints {
            pattern: pattern.to_owned(),
        };
        let line = "ready to accept (TCP )?connections";
        assert_eq!(of(line).unwrap(), prints(line));
        for text in ["https://x/", "/a b", "/a\r\nX: y", "", "(", "99999999("] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
