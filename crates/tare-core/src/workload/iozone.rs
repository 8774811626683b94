//! `iozone`: runs Iozone's file system tests, with one file size and one record size per trial.
//!
//! The result is read from Iozone's table. Its columns are not aligned if tests are omitted, and their width changes
//! between versions, so the tests on the command line determine the columns; a row with another number of values is
//! rejected. A trial is one row, and each test is one metric.
//! Known bias: reads come from the page cache unless `direct = 1`; without `fsync = 1` a write is timed up to the
//! cache. Remarks say so for every such trial.
//! Limits: cannot resolve less than Iozone's `Time Resolution`.

use tare_model::counter;
use tare_model::{CommandCall, Params, Path, RawOutput, Recipe, Sample};

use super::declared::declared;
use super::sanity::{self, PAGE_CACHE};
use super::{
    DecodeError, ParamError, Remark, Workload, command_output, probe_output, programs, tool_params,
};

/// The adapter for Iozone.
#[derive(Debug)]
pub struct Iozone;

/// The columns that each test of `-i` fills, by its number.
const COLUMNS: [&[usize]; 8] = [
    &[0, 1],
    &[2, 3],
    &[4, 5],
    &[6],
    &[7],
    &[8],
    &[9, 10],
    &[11, 12],
];
/// The columns of tests that read.
const READING: [usize; 7] = [2, 3, 4, 6, 8, 11, 12];
/// The columns of second passes, which `-+n` omits.
const SECOND: [usize; 4] = [1, 3, 10, 12];

/// The choices of tests, with Iozone's numbers. All begin with writing, which creates the file.
const CHOICES: [(&str, &[&str]); 4] = [
    ("write", &["0"]),
    ("sequential", &["0", "1"]),
    ("random", &["0", "2"]),
    ("all", &["0", "1", "2", "3", "4", "5", "6", "7"]),
];

impl Workload for Iozone {
    declared! {
        "iozone": "reads and writes of a file by Iozone";
        params {
            "tests" = Text("sequential"), OneOf(&["write", "sequential", "random", "all"]):
                "`write`; `sequential`: and read; `random`: write, and read and write at random places; `all`";
            "direct" = Int(1), Between(0, 1): "1: past the page cache (`-I`); 0: through it";
            "fsync" = Int(1), Between(0, 1): "1: the time of a write includes fsync (`-e`); 0: it does not";
            "size" = Text("64m"): "bytes of the file, such as `64m` or `1g`";
            "record" = Text("64k"): "bytes of one record, such as `4k` or `1m`";
        }
        // In the order of the table's columns.
        BytePerSecond, Higher, Disk {
            "disk.iozone-write.throughput": "Bytes per second of writing a new file.";
            "disk.iozone-rewrite.throughput": "Bytes per second of writing the file again.";
            "disk.iozone-read.throughput": "Bytes per second of reading the file.";
            "disk.iozone-reread.throughput": "Bytes per second of reading the file again.";
            "disk.iozone-random-read.throughput": "Bytes per second of reading records at random places.";
            "disk.iozone-random-write.throughput": "Bytes per second of writing records at random places.";
            "disk.iozone-backward-read.throughput": "Bytes per second of reading the file backwards.";
            "disk.iozone-record-rewrite.throughput": "Bytes per second of writing one record over and over.";
            "disk.iozone-stride-read.throughput": "Bytes per second of reading every 17th record.";
            "disk.iozone-fwrite.throughput": "Bytes per second of writing a new file by fwrite.";
            "disk.iozone-refwrite.throughput": "Bytes per second of writing the file again by fwrite.";
            "disk.iozone-fread.throughput": "Bytes per second of reading the file by fread.";
            "disk.iozone-refread.throughput": "Bytes per second of reading the file again by fread.";
        }
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        // Iozone counts in KiB, and accepts no record above 16 MiB and no file smaller than one record.
        let record = tool_params::size(&params, "record", 1 << 10, 16 << 20)?;
        let size = tool_params::size(&params, "size", record, 1 << 50)?;
        let mut arguments = vec![
            format!("-s{}k", size >> 10),
            format!("-r{}k", record >> 10),
            "-ftare.iozone".to_owned(),
        ];
        let chosen = params.text("tests").unwrap_or_default();
        let tests = CHOICES.iter().find(|(name, _)| *name == chosen);
        for test in tests.map_or(&[][..], |(_, tests)| tests) {
            arguments.extend(["-i".to_owned(), (*test).to_owned()]);
        }
        for (name, option) in [("direct", "-I"), ("fsync", "-e")] {
            if params.int(name) == Some(1) {
                arguments.push(option.to_owned());
            }
        }
        Ok(Recipe::Probe(
            CommandCall::new("iozone", arguments)
                .with_variable("LC_ALL", "C")
                .to_probe(),
        ))
    }

    programs! { "iozone" ["-v"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let table = Table::parse(&command_output::stdout(&report))?;
        if !table.is_complete {
            return Err(garbled("it does not say that the test is complete"));
        }
        let [row] = table.rows.as_slice() else {
            let rows = table.rows.len();
            return Err(garbled(&format!(
                "it has {rows} rows, and a trial is one file size and one record size"
            )));
        };
        row.bytes_per_s
            .iter()
            .map(|(column, value)| command_output::sample(&self.metrics()[*column], vec![*value]))
            .collect()
    }

    fn remarks(&self, raw: &RawOutput) -> Vec<Remark> {
        doubts(raw).unwrap_or_default()
    }
}

/// Iozone's output.
#[derive(Debug)]
struct Table {
    /// The resolution of its clock, seconds; `None` if unknown.
    resolution_s: Option<f64>,
    /// Whether a write's time includes fsync.
    has_fsync: bool,
    /// Whether the page cache was bypassed.
    is_direct: bool,
    /// Whether it reports completion.
    is_complete: bool,
    /// One row for each file size and record size.
    rows: Vec<Row>,
}

/// One row of the table.
#[derive(Debug)]
struct Row {
    /// File size, bytes.
    file_bytes: f64,
    /// The index of each test in [`Workload::metrics`], with its bytes per second.
    bytes_per_s: Vec<(usize, f64)>,
}

impl Table {
    /// Parses the output.
    ///
    /// # Errors
    /// [`DecodeError::Garbled`] if it is not a table, or if a row does not have one value per test.
    fn parse(text: &str) -> Result<Self, DecodeError> {
        let after = |what: &str| {
            text.lines()
                .find_map(|line| Some(line.split_once(what)?.1.trim()))
        };
        after("Version $Revision:").ok_or_else(|| garbled("there is no version"))?;
        let command = after("Command line used:")
            .ok_or_else(|| garbled("it does not say its command line"))?;
        if !text.contains("Output is in kBytes/sec") {
            return Err(garbled("its output is not in kBytes/sec"));
        }
        let columns = columns(command)?;
        let resolution_s = after("Time Resolution =")
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse::<f64>().ok())
            .filter(|step| step.is_finite() && *step > 0.0);
        let mut lines = text.lines();
        let is_heading = |line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some("kB") && words.next() == Some("reclen")
        };
        if !lines.any(is_heading) {
            return Err(garbled("there is no table"));
        }
        let is_row = |line: &&str| {
            let first = line.split_whitespace().next();
            first.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let rows = lines
            .skip_while(|line| !is_row(line))
            .take_while(is_row)
            .map(|line| Row::parse(line, &columns))
            .collect::<Result<Vec<_>, _>>()?;
        if rows.is_empty() {
            return Err(garbled("the table has no row"));
        }
        Ok(Self {
            resolution_s,
            has_fsync: text.contains("Include fsync in write timing"),
            is_direct: text.contains("O_DIRECT feature enabled"),
            is_complete: text
                .lines()
                .any(|line| line.trim() == "iozone test complete."),
            rows,
        })
    }
}

impl Row {
    fn parse(line: &str, columns: &[usize]) -> Result<Self, DecodeError> {
        let numbers = line
            .split_whitespace()
            .map(|word| word.parse::<u64>().ok().map(|number| number as f64))
            .collect::<Option<Vec<f64>>>()
            .ok_or_else(|| garbled("a row holds what is no whole number"))?;
        let (Some(sizes), Some(values)) = (numbers.get(..2), numbers.get(2..)) else {
            return Err(garbled("a row ends after the sizes"));
        };
        if values.len() != columns.len() {
            return Err(garbled(&format!(
                "a row has {} values, and {} tests were run",
                values.len(),
                columns.len()
            )));
        }
        Ok(Self {
            file_bytes: sizes[0] * 1_024.0,
            bytes_per_s: columns
                .iter()
                .zip(values)
                .map(|(column, value)| (*column, value * 1_024.0))
                .collect(),
        })
    }
}

/// The columns that the command line's tests fill: those of `-i`, or all.
fn columns(command: &str) -> Result<Vec<usize>, DecodeError> {
    let mut tests = Vec::new();
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        let Some(number) = word.strip_prefix("-i") else {
            continue;
        };
        let number = if number.is_empty() {
            words.next().unwrap_or_default()
        } else {
            number
        };
        let test = number.parse::<usize>().ok();
        tests.push(test.filter(|test| *test < COLUMNS.len()).ok_or_else(|| {
            garbled(&format!(
                "`-i {}` is no test with a column",
                number.escape_default()
            ))
        })?);
    }
    tests.sort_unstable();
    tests.dedup();
    if tests.is_empty() {
        tests = (0..COLUMNS.len()).collect();
    }
    let has_second = !command.split_whitespace().any(|word| word == "-+n");
    Ok(tests
        .into_iter()
        .flat_map(|test| COLUMNS[test])
        .copied()
        .filter(|column| has_second || !SECOND.contains(column))
        .collect())
}

/// Checks whether the reading is plausible.
fn doubts(raw: &RawOutput) -> Option<Vec<Remark>> {
    let whole = probe_output::report(raw).ok()?;
    let report = whole.command.as_ref()?;
    let table = Table::parse(&command_output::stdout(report)).ok()?;
    let mut remarks = sanity::of_command(report);
    let row = table.rows.first()?;
    for (column, rate) in &row.bytes_per_s {
        let metric = Iozone.metrics()[*column].id;
        let duration_s = row.file_bytes / rate;
        let short = table
            .resolution_s
            .and_then(|step_s| sanity::timer_steps("the file", duration_s, step_s));
        remarks.extend(short.map(|remark| remark.about(metric)));
        if !READING.contains(column) && !table.has_fsync && !table.is_direct {
            let detail = "written up to the page cache: neither fsync nor O_DIRECT is timed";
            remarks.push(Remark::new(PAGE_CACHE, detail).about(metric));
        }
    }
    // All reading tests together: the kernel counts for the program, not for a test.
    let reading = |column: &usize| READING.contains(column);
    let tests = row.bytes_per_s.iter().filter(|(column, _)| reading(column));
    let application = row.file_bytes * tests.clone().count() as f64;
    let counted = whole.counters.get(counter::READ_BYTES).copied();
    if let Some(remark) =
        counted.and_then(|device| sanity::device_bytes("read", application, device))
    {
        let of_each = tests.map(|(column, _)| remark.clone().about(Iozone.metrics()[*column].id));
        remarks.extend(of_each);
    }
    Some(remarks)
}

fn garbled(problem: &str) -> DecodeError {
    DecodeError::garbled("Iozone's table", problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_the_command_line_tell_the_columns() {
        assert_eq!(columns("iozone -a").unwrap().len(), 13);
        assert_eq!(columns("iozone -i 0 -i 2").unwrap(), [0, 1, 4, 5]);
        assert_eq!(columns("iozone -i2 -i0 -i 0 -+n").unwrap(), [0, 4, 5]);
        for bad in ["iozone -i", "iozone -i 9", "iozone -i x"] {
            assert!(columns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn iozone_call_has_one_size_one_record_chosen_tests() {
        let params = Params::new()
            .with("tests", "random")
            .with("size", "1g")
            .with("record", "4k")
            .with("fsync", 0);
        let call = command_output::tests::call_of(&Iozone, &params).unwrap();
        assert_eq!(
            call.argv.join(" "),
            "iozone -s1048576k -r4k -ftare.iozone -i 0 -i 2 -I"
        );
        for (name, value) in [("size", "32k"), ("record", "32m"), ("tests", "none")] {
            let error = Iozone.recipe(&Params::new().with(name, value), None);
            assert_eq!(error.unwrap_err().param, name);
        }
    }
}
