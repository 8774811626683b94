//! Parses the parts of a probe's report that readings need, borrowed from its bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use tare_model::command::UsageOverTime;
use tare_model::{Reason, Sliced, Unit, WorkSpan};

/// A `probe/1` report, borrowed from its bytes. A program's printed output is not parsed again.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Report<'a> {
    #[serde(borrow)]
    pub(super) probe: Cow<'a, str>,
    pub(super) revision: u32,
    #[serde(borrow)]
    pub(super) series: Vec<SeriesPart<'a>>,
    #[serde(default)]
    pub(super) unavailable: BTreeMap<String, Reason>,
    #[serde(default, borrow)]
    pub(super) checksum: Option<Name<'a>>,
    pub(super) canary_ns: [f64; 2],
    pub(super) elapsed_ns: u64,
    #[serde(borrow)]
    pub(super) counters: Numbers<'a>,
    #[serde(borrow)]
    pub(super) timer: Numbers<'a>,
    #[serde(default, borrow)]
    pub(super) command: Option<CommandPart<'a>>,
    #[serde(default)]
    pub(super) span: Option<WorkSpan>,
    #[serde(default)]
    pub(super) sliced: Option<Sliced>,
    #[serde(default)]
    pub(super) timed_ns: Option<u64>,
}

/// A program's time and usage.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct CommandPart<'a> {
    pub(super) wall_ns: u64,
    #[serde(default, borrow)]
    pub(super) usage: Numbers<'a>,
    #[serde(default)]
    pub(super) usage_over_time: Option<UsageOverTime>,
}

#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct SeriesPart<'a> {
    #[serde(borrow)]
    pub(super) metric: Cow<'a, str>,
    pub(super) unit: Unit,
    pub(super) values: Vec<f64>,
    pub(super) batch: u64,
    #[serde(default)]
    pub(super) linearity: Option<f64>,
}

/// A text that is borrowed even when nested.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Numbers by name, in document order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Numbers<'a>(Vec<(Cow<'a, str>, f64)>);

impl Numbers<'_> {
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        let mut all = self.0.iter();
        all.find_map(|(own, value)| (own == name).then_some(*value))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Numbers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Numbers<'de>;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("numbers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers<'de>, A::Error> {
                let mut all = Vec::with_capacity(map.size_hint().unwrap_or(0));
                while let Some((Name(name), value)) = map.next_entry()? {
                    all.push((name, value));
                }
                Ok(Numbers(all))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

impl<'a> Report<'a> {
    /// Parses a report.
    ///
    /// # Errors
    /// If it is not a report.
    pub(super) fn parse(text: &'a [u8]) -> serde_json::Result<Self> {
        // Validates UTF-8 once instead of name by name.
        match std::str::from_utf8(text) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use tare_model::ProbeReport;

    use super::*;

    const WHOLE: &str = r#"{"probe":"getppid","revision":1,"series":[{"metric":"syscall.getppid.time","unit":"ns","values":[277.2036743744061,274,1e2],"batch":3157,"linearity":2.0630929363330526,"notes":["x"]}],"checksum":"00ff","canary_ns":[981.0,892.0],"elapsed_ns":421938557,"counters":{"user_ns":12.5},"timer":{"cost_ns":31.0,"resolution_ns":29.0},"sliced":{"slice_ns":1000000,"by_page":true,"cpu":0},"timed_ns":7}"#;

    #[test]
    fn report_parses_as_written_and_borrows_names() {
        let report = Report::parse(WHOLE.as_bytes()).unwrap();
        let written: ProbeReport = serde_json::from_str(WHOLE).unwrap();
        assert_eq!(report.series[0].values, written.series[0].values);
        assert_eq!(report.series[0].linearity, written.series[0].linearity);
        assert_eq!((report.sliced, report.timed_ns), (written.sliced, Some(7)));
        assert_eq!(report.counters.get("user_ns"), Some(12.5));
        for name in [
            &report.probe,
            &report.series[0].metric,
            &report.checksum.as_ref().unwrap().0,
            &report.timer.0[1].0,
        ] {
            assert!(matches!(name, Cow::Borrowed(_)), "{name}");
        }
        let least = r#"{"probe":"null","revision":1,"series":[],"canary_ns":[1,2],"elapsed_ns":3,"counters":{},"timer":{}}"#;
        assert_eq!(Report::parse(least.as_bytes()).unwrap().sliced, None);
    }

    #[test]
    fn malformed_report_is_an_error_with_position() {
        for (from, to) in [
            (r#""ns""#, r#""parsecs""#),
            (r#""revision":1"#, r#""revision":4294967296"#),
            (r#""revision":1,"#, ""),
            (r#""revision":1"#, r#""revision":1,"revision":1"#),
            (r#""cpu":0"#, r#""cpu":4294967296"#),
            ("[981.0,892.0]", "[981.0]"),
            ("274", "null"),
            ("274", "\"274\""),
            ("274", "027"),
        ] {
            assert_eq!(WHOLE.matches(from).count(), 1, "{from}");
            let other = WHOLE.replace(from, to);
            let error = Report::parse(other.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("at line 1 column "), "{to}: {error}");
        }
        for length in 0..WHOLE.len() {
            assert!(Report::parse(&WHOLE.as_bytes()[..length]).is_err());
        }
        let foreign = WHOLE.replace("getppid", "get\u{e9}pid").into_bytes();
        let cut: Vec<u8> = foreign.into_iter().filter(|byte| *byte != 0xa9).collect();
        assert!(Report::parse(&cut).is_err());
    }
}
