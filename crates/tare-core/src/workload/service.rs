//! `service`: runs a server in every arm, with one client outside that sends HTTP, Redis or PostgreSQL requests.
//!
//! The client is Tare itself ([`crate::service`]); the arm only runs the server, which listens on the given address
//! and port. Inside the timed region: one request, from its first byte to the last byte of the response, and
//! connecting if a connection is opened. Outside: the start of the server, its warm-up.
//! Limits: a closed loop sends fewer requests while a server stalls; `rate` does not. A server that forks away from
//! its first process is not ended with it.

use tare_model::command::{READY_MS, Transport};
use tare_model::course::Course;
use tare_model::{
    CommandCall, MetricSpec, Params, Path, ProbeCall, RawOutput, Recipe, Sample, Unit, metrics,
};

use super::declared::declared;
use super::sanity::{NOT_STEADY, OTHER_ANSWERS, RECONNECTS};
use super::{DecodeError, ParamError, Remark, Tool, Workload, probe_output, tool_text};
use crate::service::request_plan::{self, RequestPlan};

/// The workload.
#[derive(Debug)]
pub struct Service;

/// The file in the server's folder with the text of the parameter `config`.
const CONFIG: &str = "config";
/// The file with the text of the parameter `page`.
const PAGE: &str = "page.txt";

/// The typical time of a request.
pub const TYPICAL: &str = "service.latency.typical";
/// Requests per second.
pub const RATE: &str = "service.request.throughput";
/// CPU time per request.
pub const CPU: &str = "service.request.cpu";
/// Time from the start of the server until it is ready.
pub const READY: &str = "service.start.ready";
/// How the typical time changed within a trial of one slice: a series of the raw output, not a metric.
pub const COURSE: &str = "service.latency.course";
/// Percentile metrics, each with its share of requests.
pub const PERCENTILES: [(&str, f64); 4] = [
    ("service.latency.p50", 0.5),
    ("service.latency.p90", 0.9),
    ("service.latency.p99", 0.99),
    ("service.latency.p999", 0.999),
];

const METRICS: &[MetricSpec] = metrics! {
    Nanosecond, Lower, Network {
        TYPICAL: "Median time from the first byte of a request to the last byte of its answer, of each slice; with `rate` from the intended time of sending.";
    }
    OperationPerSecond, Higher, Network {
        RATE: "Requests answered per second over `connections` connections.";
    }
    Nanosecond, Lower, StartUp {
        READY: "From the request to start the server until its first answer as expected.";
    }
    Nanosecond, Lower, Network {
        CPU: "Processor time of the server per request: of its container's cgroup, on the host of the process that listens.";
        "service.latency.p50": "Latency that 50 % of a block's requests do not exceed; reported where at least 50 requests took longer.";
        "service.latency.p90": "Latency that 90 % of a block's requests do not exceed; reported where at least 50 requests took longer.";
        "service.latency.p99": "Latency that 99 % of a block's requests do not exceed; reported where at least 50 requests took longer.";
        "service.latency.p999": "Latency that 99.9 % of a block's requests do not exceed; reported where at least 50 requests took longer.";
    }
};

impl Workload for Service {
    declared! {
        "service": "a server in every arm, asked over HTTP, as Redis or as PostgreSQL, by one client outside";
        params {
            "server" = Text("python3 -m http.server {port} --bind {bind}"): "the server's command; {port}, {bind} and {folder} are filled in";
            "programs" = Text(""): "further programs that the server's command starts, to have them in every arm; separated by spaces";
            "packages" = Text(""): "packages of this machine whose files it opens, the same; those that are not installed are left out";
            "config" = Text(""): "text of the file {folder}/config, placeholders filled in; none if empty";
            "page" = Text(""): "text of the file {folder}/page.txt; none if empty";
            "url" = Text("/"): "path and query of the request";
            "urls" = Text(""): "several instead: one a line, or lines of an access log, of which GET is taken";
            "commands" = Text(""): "commands for a Redis server instead of requests of HTTP, one a line, sent in turn";
            "queries" = Text(""): "queries for a PostgreSQL server instead, one a line, sent in turn as the user `postgres`";
            "method" = Text("GET"): "GET, HEAD, POST …";
            "headers" = Text(""): "further headers, one a line";
            "data" = Text(""): "body of the request";
            "connections" = Int(1), Between(1, 1_000): "connections at once, 1 to 1000";
            "rate" = Int(0), Between(0, 1_000_000): "requests a second, sent whether or not earlier ones were answered; 0: each connection waits for its answer";
            "keep_alive" = Text("on"), OneOf(&["on", "off"]): "on: connections stay open; off: one for each request";
            "expect" = Int(0), Between(0, 599): "status of the answers; 0: 200 to 299, and 304";
            "ready_ms" = Int(10_000), Between(1, 600_000): "how long the server may take until it answers, milliseconds";
        }
        metrics METRICS;
    }

    fn paths(&self) -> &'static [Path] {
        &[
            Path::HostToArm,
            Path::PublishedLoopback,
            Path::PublishedBridge,
        ]
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        RequestPlan::from_params(&params).map_err(|wrong| ParamError {
            param: wrong.param.to_owned(),
            problem: wrong.problem,
            hint: None,
        })?;
        let words = words(&params)?;
        let mut server = CommandCall {
            listens: Some(Transport::Tcp),
            ..CommandCall::new(&words[0], &words[1..])
        };
        for (param, name) in [("config", CONFIG), ("page", PAGE)] {
            let text = tool_text::text(&params, param);
            if !text.is_empty() {
                server = server.with_file(name, text);
            }
        }
        let mut server = server.to_probe();
        if let Some(ms) = params.value(READY_MS) {
            server.args.0.insert(READY_MS.to_owned(), ms.clone());
        }
        Ok(Recipe::Pair {
            server,
            client: ProbeCall {
                name: request_plan::CLIENT.to_owned(),
                args: request_plan::only(&params),
            },
        })
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        let Some(server) = words(params).ok().and_then(|it| it.into_iter().next()) else {
            return Vec::new();
        };
        let named = |name| params.text(name).unwrap_or_default().split_whitespace();
        let server = Tool {
            packages: named("packages").map(str::to_owned).collect(),
            ..Tool::new(&server, &[])
        };
        let further = named("programs").map(|program| Tool::new(program, &[]));
        std::iter::once(server).chain(further).collect()
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let mut report = probe_output::report(raw)?;
        probe_output::of_probe(request_plan::CLIENT, &report.probe)?;
        report.series.retain(|series| series.metric != COURSE);
        let is_there = |id: &str| report.series.iter().any(|series| series.metric == id);
        let may_lack =
            |id: &str| id == CPU || PERCENTILES.iter().any(|(percentile, _)| *percentile == id);
        let metrics = METRICS
            .iter()
            .filter(|metric| is_there(metric.id) || !may_lack(metric.id));
        probe_output::samples(&report, &metrics.copied().collect::<Vec<_>>())
    }

    fn course(&self, raw: &RawOutput) -> Option<Course> {
        let report = probe_output::report(raw).ok()?;
        let of = |id: &str| report.series.iter().find(|series| series.metric == id);
        let (axis, series, step) = match of(COURSE) {
            Some(series) => ("request", series, series.batch as f64),
            None => ("slice", of(TYPICAL)?, 1.0),
        };
        (series.values.len() > 1).then(|| Course {
            metric: TYPICAL,
            unit: Unit::Nanosecond,
            axis,
            step,
            values: series.values.clone(),
        })
    }

    fn remarks(&self, raw: &RawOutput) -> Vec<Remark> {
        let Ok(report) = probe_output::report(raw) else {
            return Vec::new();
        };
        let notes = report.series.into_iter().flat_map(|series| series.notes);
        let remark = |note: String| {
            let (id, detail) = note.split_once(": ")?;
            let ids = [NOT_STEADY, OTHER_ANSWERS, RECONNECTS];
            let id = ids.into_iter().find(|known| *known == id)?;
            Some(Remark::new(id, detail))
        };
        notes.filter_map(remark).collect()
    }
}

/// The words of the server's command.
fn words(params: &Params) -> Result<Vec<String>, ParamError> {
    let given = params.text("server").unwrap_or_default();
    let words = shlex::split(given).filter(|words| words.first().is_some_and(|it| !it.is_empty()));
    words.ok_or_else(|| {
        ParamError::refused(
            "server",
            params.value("server"),
            "use a command such as `php -S {bind}:{port}`",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(params: &Params) -> Result<Recipe, ParamError> {
        Service.recipe(params, Some(Path::HostToArm))
    }

    #[test]
    fn recipe_has_the_server_and_the_request() {
        let params = Params::new()
            .with("server", "nginx -c '{folder}/config'".to_owned())
            .with("config", "listen {bind}:{port};".to_owned())
            .with("url", "/a".to_owned());
        let Recipe::Pair { server, client } = recipe(&params).unwrap() else {
            panic!("no pair");
        };
        let server = CommandCall::from_args(&server.args).unwrap();
        assert_eq!(server.argv, ["nginx", "-c", "{folder}/config"]);
        assert_eq!(server.files["config"], "listen {bind}:{port};");
        assert_eq!(client.name, request_plan::CLIENT);
        assert_eq!(client.args.text("url"), Some("/a"));
        assert_eq!(client.args.text("server"), None);
    }

    #[test]
    fn server_tools_include_its_programs_and_packages() {
        let params = Params::new()
            .with("server", "sh {folder}/config".to_owned())
            .with("programs", "setpriv  initdb".to_owned())
            .with("packages", "postgresql-15".to_owned());
        let tools = Service.tools(&params);
        let programs: Vec<&str> = tools.iter().map(|it| it.program.as_str()).collect();
        assert_eq!(programs, ["sh", "setpriv", "initdb"]);
        assert_eq!(tools[0].packages, ["postgresql-15"]);
    }

    #[test]
    fn bad_parameters_are_named() {
        for (param, value) in [
            ("server", "'"),
            ("server", ""),
            ("url", "page"),
            ("urls", "POST\n"),
            ("commands", "GET 'x"),
            ("queries", "SELECT '\0'"),
            ("headers", "no colon"),
            ("headers", "Host: x"),
            ("method", "GET /"),
            ("data", "x"),
        ] {
            let params = Params::new().with(param, value.to_owned());
            let error = recipe(&params).unwrap_err();
            assert_eq!(error.param, param, "{error}");
        }
    }
}
