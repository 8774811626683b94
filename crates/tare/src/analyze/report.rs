//! A probe's report as it is read for a reading: borrowed from its bytes, without what no reading needs.
//!
//! Most are such as [`InPlace`] reads; whatever else is JSON the general parser reads, and says what is wrong where it
//! is none.
//! What it cannot see: whether the values are such as the workload's metrics must have.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use tare_model::{Reason, Sliced, Unit, WorkSpan};

use super::in_place::InPlace;

/// A `probe/1` report, borrowed from its bytes. What a program printed is not read again.
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
    pub(super) checksum: Option<Cow<'a, str>>,
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

/// What a program used.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct CommandPart<'a> {
    pub(super) wall_ns: u64,
    #[serde(default, borrow)]
    pub(super) usage: Numbers<'a>,
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

/// Numbers by name, in the order in which they stand.
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
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

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
    /// The report in these bytes.
    ///
    /// # Errors
    /// What is no report.
    pub(super) fn of(text: &'a [u8]) -> serde_json::Result<Self> {
        InPlace::all(text, Self::in_place).map_or_else(|| serde_json::from_slice(text), Ok)
    }

    fn in_place(text: &mut InPlace<'a>) -> Option<Self> {
        let (mut probe, mut revision, mut series, mut checksum) = (None, None, None, None);
        let (mut canary_ns, mut elapsed_ns, mut counters, mut timer) = (None, None, None, None);
        let (mut sliced, mut timed_ns) = (None, None);
        text.object(|text, name| match name {
            "probe" => once(&mut probe, text.text()),
            "revision" => once(&mut revision, text.whole()),
            "series" => once(&mut series, series_of(text)),
            "checksum" => once(&mut checksum, text.text()),
            "canary_ns" => once(&mut canary_ns, values_of(text)),
            "elapsed_ns" => once(&mut elapsed_ns, text.whole()),
            "counters" => once(&mut counters, numbers_of(text)),
            "timer" => once(&mut timer, numbers_of(text)),
            "sliced" => once(&mut sliced, sliced_of(text)),
            "timed_ns" => once(&mut timed_ns, text.whole()),
            _ => None,
        })?;
        Some(Self {
            probe: probe?.into(),
            revision: revision?.try_into().ok()?,
            series: series?,
            unavailable: BTreeMap::new(),
            checksum: checksum.map(Cow::Borrowed),
            canary_ns: canary_ns?.try_into().ok()?,
            elapsed_ns: elapsed_ns?,
            counters: counters?,
            timer: timer?,
            command: None,
            span: None,
            sliced,
            timed_ns,
        })
    }
}

/// Fills a field; not a second time.
fn once<T>(field: &mut Option<T>, value: Option<T>) -> Option<()> {
    field.replace(value?).is_none().then_some(())
}

fn series_of<'a>(text: &mut InPlace<'a>) -> Option<Vec<SeriesPart<'a>>> {
    let mut all = Vec::new();
    text.array(|text| {
        let (mut metric, mut unit, mut values) = (None, None, None);
        let (mut batch, mut linearity) = (None, None);
        text.object(|text, name| match name {
            "metric" => once(&mut metric, text.text()),
            "unit" => once(&mut unit, text.text()),
            "values" => once(&mut values, values_of(text)),
            "batch" => once(&mut batch, text.whole()),
            "linearity" => once(&mut linearity, text.number()),
            _ => None,
        })?;
        let unit: BorrowedStrDeserializer<'_, serde::de::value::Error> =
            BorrowedStrDeserializer::new(unit?);
        all.push(SeriesPart {
            metric: metric?.into(),
            unit: Unit::deserialize(unit).ok()?,
            values: values?,
            batch: batch?,
            linearity,
        });
        Some(())
    })?;
    Some(all)
}

fn values_of(text: &mut InPlace<'_>) -> Option<Vec<f64>> {
    // As many slices as a block mostly has.
    let mut values = Vec::with_capacity(64);
    text.array(|text| {
        values.push(text.number()?);
        Some(())
    })?;
    Some(values)
}

fn numbers_of<'a>(text: &mut InPlace<'a>) -> Option<Numbers<'a>> {
    let mut all = Vec::new();
    text.object(|text, name| {
        all.push((name.into(), text.number()?));
        Some(())
    })?;
    Some(Numbers(all))
}

fn sliced_of(text: &mut InPlace<'_>) -> Option<Sliced> {
    let (mut slice_ns, mut by_page, mut cpu) = (None, None, None);
    text.object(|text, name| match name {
        "slice_ns" => once(&mut slice_ns, text.whole()),
        "by_page" => once(&mut by_page, text.truth()),
        "cpu" => once(&mut cpu, text.whole()),
        _ => None,
    })?;
    let cpu: Option<u32> = cpu.map(u32::try_from).transpose().ok()?;
    Some(Sliced {
        slice_ns: slice_ns?,
        by_page: by_page?,
        cpu,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"probe":"getppid","revision":1,"series":[{"metric":"syscall.getppid.time","unit":"ns","values":[277.2036743744061,274,1e2],"batch":3157,"linearity":2.0630929363330526}],"checksum":"00ff","canary_ns":[981.0,892.0],"elapsed_ns":421938557,"counters":{"user_ns":12.5},"timer":{"cost_ns":31.0,"resolution_ns":29.0},"sliced":{"slice_ns":1000000,"by_page":true,"cpu":0},"timed_ns":7}"#;

    /// Without the number that is left to the general parser.
    fn plain() -> String {
        WHOLE.replace("1e2", "100.25")
    }

    fn in_place(text: &str) -> Option<Report<'_>> {
        InPlace::all(text.as_bytes(), Report::in_place)
    }

    #[test]
    fn a_report_as_the_agent_writes_it_is_read_in_place_and_as_the_general_parser_reads_it() {
        let text = plain();
        let general: Report<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!(in_place(&text), Some(general));
        let least = r#"{"probe":"null","revision":1,"series":[],"canary_ns":[1,2],"elapsed_ns":3,"counters":{},"timer":{}}"#;
        assert_eq!(in_place(least), Some(serde_json::from_str(least).unwrap()));
    }

    #[test]
    fn what_is_unusual_or_wrong_is_left_to_the_general_parser() {
        let text = plain();
        for (from, to) in [
            ("100.25", "1e2"),
            (r#""ns""#, r#""ms""#),
            (r#""revision":1"#, r#""revision":4294967296"#),
            (r#""revision":1,"#, ""),
            (r#""revision":1"#, r#""revision":1,"revision":1"#),
            (r#""cpu":0"#, r#""cpu":null"#),
            (r#""cpu":0"#, r#""cpu":4294967296"#),
            ("[981.0,892.0]", "[981.0]"),
            (r#""batch""#, r#""notes":[],"batch""#),
            (r#""batch""#, r#""span""#),
            (r#""getppid""#, r#""get\u0070pid""#),
            (r#","timed_ns":7"#, r#", "timed_ns":7"#),
        ] {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            let other = text.replace(from, to);
            assert_eq!(in_place(&other), None, "{to}");
            let general = serde_json::from_str::<Report<'_>>(&other);
            let found = Report::of(other.as_bytes());
            match (found, general) {
                (Ok(found), Ok(general)) => assert_eq!(found, general),
                (Err(found), Err(general)) => assert_eq!(found.to_string(), general.to_string()),
                other => panic!("{to}: {other:?}"),
            }
        }
        for length in 0..text.len() {
            assert_eq!(in_place(&text[..length]), None);
        }
    }
}
