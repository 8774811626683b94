//! `benchmark-dotnet`: runs one benchmark of a .NET program that uses BenchmarkDotNet.
//!
//! The user builds the program beforehand; it passes its arguments to BenchmarkDotNet's switcher. Nothing is compiled
//! in an arm, because the benchmarks run in the program's process. Of the output only the results of the wanted
//! benchmark count, not pilots, warm-ups and the loop overhead. The filter of some versions matches prefixes, so
//! other benchmarks may run too; the heading before the results identifies them.
//! The program needs the major version of .NET that it was built for. If only others are installed, the .NET host
//! prints a page that ends in a link; the error here states the relevant part.
//! Limits: does not separate the effect of the runtime's decisions on recompilation.

use tare_model::command::Pick;
use tare_model::{CommandCall, CommandReport, Params, Path, RawOutput, Recipe, Sample, metrics};

use super::declared::declared;
use super::tool_text::{agreeing, garbled, number, program, text, whole};
use super::{DecodeError, ParamError, Tool, Workload, command_output, probe_output};

const ID: &str = "benchmark-dotnet";
/// The lines before a benchmark runs, and before and after the statistics.
const HEADING: &str = "// Benchmark: ";
const DETAILS: &str = "// * Detailed results *";
const SUMMARY: &str = "// * Summary *";

metrics! {
    TIME = "dotnet.operation.time", Nanosecond, Lower, Compute: "Time of one operation of the benchmark, averaged by BenchmarkDotNet over one iteration, warm-ups, outliers and the loop's own cost left out.";
}

#[derive(Debug)]
pub(super) struct BenchmarkDotnet;

impl Workload for BenchmarkDotnet {
    declared! {
        ID: "one benchmark of a .NET program that is made with BenchmarkDotNet";
        params {
            "program" = Text("MicroBenchmarks.dll"): "the program's assembly, by its path; it hands its arguments to BenchmarkSwitcher";
            "benchmark" = Text("Perf_Random.Next_int"): "class and method";
            "case" = Text(""): "parameters of the benchmark as its heading prints them, such as `size=1000`; empty where it has one case";
            "iterations" = Int(0), Between(0, 1000): "iterations that are measured, 0 to 1000; 0 lets BenchmarkDotNet choose";
            "warmups" = Int(0), Between(0, 1000): "iterations before them, 0 to 1000; 0 lets BenchmarkDotNet choose";
            "dotnet" = Text("dotnet"): "the runtime's command, by name or path";
        }
        metrics &[TIME];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let given = |name, hint| program(&params, name, hint);
        let program = given(
            "program",
            "use the path of an assembly, such as `/opt/benchmarks/benchmarks.dll`",
        )?;
        let benchmark = given(
            "benchmark",
            "use a class and a method, such as `Perf_Random.Next_int`",
        )?;
        let dotnet = given("dotnet", "use a name such as `dotnet` or a path")?;
        let mut arguments = vec![
            program.to_owned(),
            format!("--filter=*{benchmark}*"),
            "--inProcess".to_owned(),
            "--artifacts=artifacts".to_owned(),
        ];
        for (name, option) in [
            ("iterations", "--iterationCount"),
            ("warmups", "--warmupCount"),
        ] {
            if params.int(name) != Some(0) {
                arguments.push(format!("{option}={}", whole(&params, name)));
            }
        }
        let call = CommandCall {
            // The benchmark's heading, unchanged.
            pick: Some(Pick {
                pattern: heading(benchmark, text(&params, "case")),
                more_is_better: false,
                metric: None,
            }),
            ..CommandCall::new(dotnet, arguments)
        };
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        let dotnet = params.text("dotnet").unwrap_or("dotnet");
        // `--version` is the SDK's, which need not be installed.
        vec![Tool::new(dotnet, &["--list-runtimes"])]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report =
            command_output::report(raw).map_err(|error| other_runtime(raw).unwrap_or(error))?;
        let output = command_output::stdout(&report);
        let heading = wanted(&report)?;
        let observations = results(&output, heading)?;
        let mean = observations.iter().sum::<f64>() / observations.len() as f64;
        agreeing(ID, "the mean", printed_mean(&output, heading)?, mean)?;
        Ok(vec![command_output::sample(&TIME, observations)?])
    }
}

/// An error that names the missing runtime, if the .NET host reported that in either of its two forms.
fn other_runtime(raw: &RawOutput) -> Option<DecodeError> {
    let report = probe_output::report(raw).ok()?.command?;
    let stderr_text = String::from_utf8_lossy(&report.stderr.0);
    let (before, rest) = stderr_text.split_once("', version '")?;
    let (_, framework) = before.rsplit_once('\'')?;
    let needed = rest.split_once('\'')?.0;
    let found: Vec<&str> = rest
        .lines()
        .filter_map(|line| line.split_once(" at [").map(|(version, _)| version.trim()))
        .collect();
    let found = match &found[..] {
        [] => "none of it".to_owned(),
        all => all.join(", "),
    };
    let text = format!(
        "`{}` found {found} where the benchmarks need {framework} {needed}; install the runtime of that major version \
         beside it, or build the benchmarks again for one that is there (`TargetFramework` of the project)",
        report.program,
    );
    Some(DecodeError::Unsuccessful {
        problem: text.escape_debug().to_string(),
    })
}

/// The heading of a benchmark, without the job.
fn heading(benchmark: &str, case: &str) -> String {
    if case.is_empty() {
        benchmark.to_owned()
    } else {
        format!("{benchmark} [{case}]")
    }
}

/// The same from `Class.Method: Job-ABCDEF(Toolchain=…) [size=1000]`; the case is optional.
fn heading_in(line: &str) -> Option<String> {
    let (benchmark, job) = line.trim_end().split_once(": ")?;
    let case = job
        .strip_suffix(']')
        .and_then(|job| job.split_once(" ["))
        .map_or("", |(_, case)| case);
    Some(heading(benchmark, case))
}

/// The wanted benchmark's heading, which came back with the report.
fn wanted(report: &CommandReport) -> Result<&str, DecodeError> {
    let pick = report.pick.as_ref();
    pick.map(|pick| pick.pattern.as_str())
        .ok_or_else(|| garbled(ID, "the report does not say which benchmark was wanted"))
}

/// Nanoseconds per operation in every iteration of the wanted benchmark.
fn results(output: &str, wanted: &str) -> Result<Vec<f64>, DecodeError> {
    let mut found = Vec::new();
    let mut sections = 0_u32;
    let mut is_wanted = false;
    for line in output.lines() {
        if let Some((_, heading)) = line.split_once(HEADING) {
            is_wanted = heading_in(heading).as_deref() == Some(wanted);
            sections += u32::from(is_wanted);
        } else if let Some(result) = line.strip_prefix("WorkloadResult").filter(|_| is_wanted) {
            let nanoseconds = operation(result)
                .ok_or_else(|| garbled(ID, format!("a result is `{}`", result.escape_debug())))?;
            found.push(nanoseconds);
        }
    }
    let quoted = wanted.escape_debug();
    match (sections, found.is_empty()) {
        (1, false) => Ok(found),
        (0, _) => Err(garbled(
            ID,
            format!(
                "no benchmark `{quoted}` ran; `case` names one of several cases as its heading does"
            ),
        )),
        (1, true) => Err(garbled(ID, format!("`{quoted}` has no result"))),
        _ => Err(garbled(
            ID,
            format!("`{quoted}` ran more than once: in several classes or by several jobs"),
        )),
    }
}

/// The time of one operation from `  1: 16777216 op, 696943600.00 ns, 41.5411 ns/op`, where it is rounded.
fn operation(result: &str) -> Option<f64> {
    let (_, figures) = result.split_once(": ")?;
    let mut figures = figures.split(", ");
    let operations = number(figures.next()?.strip_suffix(" op")?)?;
    let nanoseconds = number(figures.next()?.strip_suffix(" ns")?)?;
    (operations >= 1.0).then_some(nanoseconds / operations)
}

/// The mean in the statistics of the wanted benchmark.
fn printed_mean(output: &str, wanted: &str) -> Result<f64, DecodeError> {
    let details = output.split_once(DETAILS).map(|(_, rest)| rest);
    let details = details
        .and_then(|rest| rest.split_once(SUMMARY))
        .ok_or_else(|| garbled(ID, "it ended before its summary"))?
        .0;
    let mut lines = details.lines();
    lines
        .by_ref()
        .find(|line| heading_in(line).as_deref() == Some(wanted))
        .and_then(|_| lines.find_map(|line| line.strip_prefix("Mean = ")))
        .and_then(|line| duration(line.split(',').next()?))
        .ok_or_else(|| {
            let quoted = wanted.escape_debug();
            garbled(ID, format!("the statistics of `{quoted}` have no mean"))
        })
}

/// Nanoseconds from a text such as `41.1933 ns`.
fn duration(text: &str) -> Option<f64> {
    let (figure, unit) = text.trim().split_once(' ')?;
    let nanoseconds = match unit {
        "ns" => 1.0,
        // Old versions write `us`, others either of the two micro signs.
        "us" | "\u{3bc}s" | "\u{b5}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number(figure)? * nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "// Benchmark: A.M: Job-X(Toolchain=T) [n=1]\n\
        WorkloadActual   1: 2 op, 90.00 ns, 45.0000 ns/op\n\
        WorkloadResult   1: 2 op, 80.00 ns, 40.0000 ns/op\n\
        WorkloadResult   2: 2 op, 84.00 ns, 42.0000 ns/op\n\
        // Benchmark: A.M: Job-X(Toolchain=T) [n=2]\n\
        WorkloadResult   1: 2 op, 8000.00 ns, 4.0000 us/op\n\
        // Benchmark: A.Mo: DefaultJob\n\
        WorkloadResult   1: 4 op, 8.00 ns, 2.0000 ns/op\n\
        // * Detailed results *\n\
        A.M: Job-X(Toolchain=T) [n=1]\nMean = 41.0000 ns, StdErr = 1 ns\n\
        A.M: Job-X(Toolchain=T) [n=2]\nMean = 4.0000 \u{3bc}s, StdErr = 0 ns\n\
        A.Mo: DefaultJob\nMean = 3.0000 ns, StdErr = 0 ns\n\
        // * Summary *\n";

    fn read(output: &str, wanted: &str) -> Result<(Vec<f64>, f64), DecodeError> {
        Ok((results(output, wanted)?, printed_mean(output, wanted)?))
    }

    #[test]
    fn dotnet_reads_results_of_the_selected_case_only() {
        assert_eq!(read(OUTPUT, "A.M [n=1]").unwrap(), (vec![40.0, 42.0], 41.0));
        assert_eq!(read(OUTPUT, "A.M [n=2]").unwrap(), (vec![4000.0], 4000.0));
        assert_eq!(read(OUTPUT, "A.Mo").unwrap(), (vec![2.0], 3.0));
        for other in ["A.M", "A.M [n=3]", "M"] {
            let error = read(OUTPUT, other).unwrap_err().to_string();
            assert!(error.contains("`case` names one of several"), "{error}");
        }
    }

    #[test]
    fn dotnet_repeated_or_truncated_output_is_an_error() {
        let twice = format!("{OUTPUT}{OUTPUT}");
        let error = read(&twice, "A.Mo").unwrap_err().to_string();
        assert!(error.contains("more than once"), "{error}");
        let (cut, _) = OUTPUT.split_once(SUMMARY).unwrap();
        let error = read(cut, "A.Mo").unwrap_err().to_string();
        assert!(error.contains("before its summary"), "{error}");
        let altered = OUTPUT.replace("2: 2 op", "2: 0 op");
        assert!(read(&altered, "A.M [n=1]").is_err());
    }

    #[test]
    fn dotnet_version_mismatch_names_needed_and_installed() {
        // Output since version 6, and before; the text after the versions is longer than an error repeats.
        let new = "You must install or update .NET to run this application.\n\nApp: /opt/b.dll\nArchitecture: x64\n\
            Framework: 'Microsoft.NETCore.App', version '2.2.0' (x64)\n.NET location: /usr/share/dotnet\n\n\
            The following frameworks were found:\n  6.0.36 at [/usr/share/dotnet/shared/Microsoft.NETCore.App]\n  \
            8.0.15 at [/usr/share/dotnet/shared/Microsoft.NETCore.App]\n\nLearn more:\n";
        let old = "It was not possible to find any compatible framework version\n\
            The framework 'Microsoft.NETCore.App', version '2.2.0' was not found.\n  \
            - The following frameworks were found:\n      \
            3.1.32 at [/usr/share/dotnet/shared/Microsoft.NETCore.App]\n";
        let none = "Framework: 'Microsoft.NETCore.App', version '2.2.0' (x64)\n\nNo frameworks were found.\n";
        for (said, found) in [
            (new, "6.0.36, 8.0.15"),
            (old, "3.1.32"),
            (none, "none of it"),
        ] {
            let message = format!("{said}{}", "a link ".repeat(100));
            let raw = command_output::tests::raw(150, b"", message.as_bytes());
            let error = BenchmarkDotnet.decode(&raw).unwrap_err().to_string();
            let expected =
                format!("found {found} where the benchmarks need Microsoft.NETCore.App 2.2.0");
            assert!(error.contains(&expected), "{error}");
            assert!(error.contains("install the runtime"), "{error}");
        }
        let raw = command_output::tests::raw(1, b"", b"version of something else");
        let error = BenchmarkDotnet.decode(&raw).unwrap_err().to_string();
        assert!(error.contains("status 1: version of something"), "{error}");
    }

    #[test]
    fn dotnet_call_carries_the_selected_case() {
        let params = Params::default()
            .with("program", "/opt/b.dll")
            .with("benchmark", "A.M")
            .with("case", "n=1")
            .with("warmups", 3);
        let call = command_output::tests::call_of(&BenchmarkDotnet, &params).unwrap();
        assert_eq!(call.pick.unwrap().pattern, "A.M [n=1]");
        assert_eq!(
            call.argv[1..],
            [
                "/opt/b.dll",
                "--filter=*A.M*",
                "--inProcess",
                "--artifacts=artifacts",
                "--warmupCount=3"
            ]
        );
    }
}
