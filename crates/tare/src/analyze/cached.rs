//! What was collected of a run as bytes, so that a later report by the same build need not read the trials again.
//!
//! Everything is written as it lies in memory, number by number, so that the same dossier comes of it to the last bit.
//! The end holds a sum over all that came before: bytes that were cut off or changed are no readings.
//! What it cannot see: whether the trials are still those that were read. Whoever keeps the bytes must know.
//! Not written: trials of several instances, and what a workload remarked on single trials; runs that have them are
//! read anew each time.

use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};

use tare_model::{Params, Path, Spread, Study};

use super::Find;
use super::blocks::Blocks;
use super::collect::{Collector, Totals};
use super::counters::CounterRow;
use super::failures::Tally;
use super::kept::{Checksum, Group, GroupKey, Kept, Maybe, ProbeFacts};
use super::reading::Reading;
use super::turns::Turns;

/// How much is written and read at once.
const BUFFER: usize = 256 << 10;

/// Writes what was collected.
///
/// # Errors
/// Those of `out`; something that cannot be written so.
pub(super) fn write(collected: &Collector<'_>, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, Summed::over(out));
    put_count(collected.groups.len(), &mut out)?;
    for (key, group) in &collected.groups {
        (key.workload_index, key.instances).put(&mut out)?;
        heading(group)?.put(&mut out)?;
        group.arms.put(&mut out)?;
        group.tried.put(&mut out)?;
    }
    serde_json::to_string(&collected.tally.entries())?.put(&mut out)?;
    collected.totals().put(&mut out)?;
    let summed = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let (mut out, sum) = summed.end();
    out.write_all(&sum.to_le_bytes())
}

/// Reads `length` bytes that [`write`] has written, and nothing else, of a run with this study.
///
/// # Errors
/// Those of `input`; bytes that are anything else.
pub(super) fn read<'a>(
    study: &Study,
    find: Find<'a>,
    mut input: impl Read,
    length: u64,
) -> io::Result<Collector<'a>> {
    let Some(body) = length.checked_sub(size_of::<u64>() as u64) else {
        return Err(no_readings());
    };
    let summed = Summed::over((&mut input).take(body));
    let mut from = BufReader::with_capacity(BUFFER, summed);
    let mut collected = Collector::new(study, find);
    for _ in 0..u32::take(&mut from)? {
        let (workload_index, instances) = Plain::take(&mut from)?;
        let (name, params, path, spread): Heading =
            serde_json::from_str(&String::take(&mut from)?)?;
        let group = Group {
            workload: find(&name),
            name,
            params,
            path,
            spread,
            arms: Plain::take(&mut from)?,
            tried: Plain::take(&mut from)?,
        };
        if !fits(&group, study.arms.len()) {
            return Err(no_readings());
        }
        let key = GroupKey {
            workload_index,
            instances,
        };
        collected.groups.insert(key, group);
    }
    let entries = serde_json::from_str(&String::take(&mut from)?)?;
    collected.tally = Tally::of_entries(entries);
    collected.set_totals(Plain::take(&mut from)?);
    let is_all = from.fill_buf()?.is_empty();
    let (_, sum) = from.into_inner().end();
    if !is_all || u64::take(&mut input)? != sum {
        return Err(no_readings());
    }
    Ok(collected)
}

fn no_readings() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "these are no readings")
}

/// Whether every trial has what its workload's metrics and the study's arms ask for.
fn fits(group: &Group, n_arms: usize) -> bool {
    let n_metrics = group
        .workload
        .map_or(0, |workload| workload.metrics().len());
    let fits = |kept: &Kept| {
        let has_all = match &kept.turns {
            Turns::Whole => true,
            Turns::Slices(slices) => slices.len() == n_metrics,
            Turns::Ratios {
                n_arms: of,
                medians,
            } => *of == n_arms && medians.len() == n_metrics * n_arms,
        };
        has_all && kept.readings.len() == n_metrics
    };
    group.arms.len() == n_arms
        && group.tried.len() == n_arms
        && group.arms.iter().flat_map(Blocks::values).all(fits)
}

/// What a group's trials have in common.
type Heading = (String, Params, Option<Path>, Option<Spread>);

/// As text; a number in it that would be read as another one is refused.
fn heading(group: &Group) -> io::Result<String> {
    let heading: Heading = (
        group.name.clone(),
        group.params.clone(),
        group.path,
        group.spread,
    );
    let text = serde_json::to_string(&heading)?;
    if serde_json::from_str::<Heading>(&text)? != heading {
        return Err(no_readings());
    }
    Ok(text)
}

/// A stream with a sum over the bytes that went through it: of eight at a time, by exclusive or, multiplication and
/// rotation, so that order counts.
struct Summed<S> {
    stream: S,
    sum: u64,
    /// Bytes that do not make a word yet, the first in the lowest place.
    rest: u64,
    n_rest: u32,
    length: u64,
}

impl<S> Summed<S> {
    fn over(stream: S) -> Self {
        Self {
            stream,
            sum: 0x9e37_79b9_7f4a_7c15,
            rest: 0,
            n_rest: 0,
            length: 0,
        }
    }

    fn word(&mut self, word: u64) {
        self.sum = (self.sum ^ word)
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .rotate_left(31);
    }

    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let mut bytes = bytes;
        while let Some((first, others)) = bytes.split_first().filter(|_| self.n_rest > 0) {
            self.rest |= u64::from(*first) << (8 * self.n_rest);
            self.n_rest = (self.n_rest + 1) % 8;
            bytes = others;
            if self.n_rest == 0 {
                let word = std::mem::take(&mut self.rest);
                self.word(word);
            }
        }
        let (words, others) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        for byte in others {
            self.rest |= u64::from(*byte) << (8 * self.n_rest);
            self.n_rest += 1;
        }
    }

    fn end(mut self) -> (S, u64) {
        let (rest, length) = (self.rest, self.length);
        self.word(rest);
        self.word(length);
        (self.stream, self.sum)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.add(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(bytes)?;
        self.add(&bytes[..count]);
        Ok(count)
    }
}

/// What is written as it is.
trait Plain: Sized {
    fn put(&self, out: &mut impl Write) -> io::Result<()>;
    fn take(from: &mut impl Read) -> io::Result<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Plain for $number {
            fn put(&self, out: &mut impl Write) -> io::Result<()> {
                out.write_all(&self.to_le_bytes())
            }

            fn take(from: &mut impl Read) -> io::Result<Self> {
                let mut bytes = [0; size_of::<Self>()];
                from.read_exact(&mut bytes)?;
                Ok(Self::from_le_bytes(bytes))
            }
        }
    )*};
}

numbers!(u8, u32, u64, f32, f64);

/// Structs, field by field.
macro_rules! fields {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Plain for $name {
            fn put(&self, out: &mut impl Write) -> io::Result<()> {
                $(self.$field.put(out)?;)*
                Ok(())
            }

            fn take(from: &mut impl Read) -> io::Result<Self> {
                $(let $field = Plain::take(from)?;)*
                Ok(Self { $($field),* })
            }
        }
    )*};
}

fields! {
    Reading { typical, floor, total, unsteady }
    ProbeFacts {
        revision, checksum, elapsed_ns, canary_ns, steal_ns, throttled_ns, major_faults, clock_cost_ns, cpu,
        coarse, linearity, counters
    }
    Totals { trials, timed_ns }
}

impl Plain for () {
    fn put(&self, _: &mut impl Write) -> io::Result<()> {
        Ok(())
    }

    fn take(_: &mut impl Read) -> io::Result<Self> {
        Ok(())
    }
}

impl Plain for bool {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        u8::from(*self).put(out)
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        match u8::take(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(no_readings()),
        }
    }
}

impl<A: Plain, B: Plain> Plain for (A, B) {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        self.0.put(out)?;
        self.1.put(out)
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<T: Plain> Plain for Option<T> {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        self.is_some().put(out)?;
        self.as_ref().map_or(Ok(()), |value| value.put(out))
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        bool::take(from)?.then(|| T::take(from)).transpose()
    }
}

/// Counts have 32 bits in the file.
fn put_count(count: usize, out: &mut impl Write) -> io::Result<()> {
    u32::try_from(count).map_err(io::Error::other)?.put(out)
}

fn put_all<T: Plain>(values: &[T], out: &mut impl Write) -> io::Result<()> {
    put_count(values.len(), out)?;
    values.iter().try_for_each(|value| value.put(out))
}

impl<T: Plain> Plain for Vec<T> {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        put_all(self, out)
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        let count = u32::take(from)?;
        // What a file claims is believed as far as it goes.
        let mut values = Self::with_capacity(count.min(4_096) as usize);
        for _ in 0..count {
            values.push(T::take(from)?);
        }
        Ok(values)
    }
}

impl<T: Plain> Plain for Box<[T]> {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        put_all(self, out)
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        Vec::take(from).map(Vec::into_boxed_slice)
    }
}

impl Plain for String {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        put_all(self.as_bytes(), out)
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        Self::from_utf8(Vec::take(from)?).map_err(|_| no_readings())
    }
}

impl Plain for Maybe {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        self.get().put(out)
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        <Option<f64> as Plain>::take(from).map(Self::from)
    }
}

impl Plain for CounterRow {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        self.0.put(out)
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        let row = Self(Plain::take(from)?);
        row.is_sound().then_some(row).ok_or_else(no_readings)
    }
}

impl Plain for Checksum {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Number(number) => (0u8, *number).put(out),
            Self::Text(text) => (1u8, text.to_string()).put(out),
        }
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        match u8::take(from)? {
            0 => u64::take(from).map(Self::Number),
            1 => String::take(from).map(|text| Self::Text(text.into())),
            _ => Err(no_readings()),
        }
    }
}

impl Plain for Turns {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Whole => 0u8.put(out),
            Self::Slices(slices) => {
                1u8.put(out)?;
                slices.put(out)
            }
            Self::Ratios { n_arms, medians } => {
                2u8.put(out)?;
                put_count(*n_arms, out)?;
                medians.put(out)
            }
        }
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        match u8::take(from)? {
            0 => Ok(Self::Whole),
            1 => Plain::take(from).map(Self::Slices),
            2 => Ok(Self::Ratios {
                n_arms: u32::take(from)? as usize,
                medians: Plain::take(from)?,
            }),
            _ => Err(no_readings()),
        }
    }
}

impl Plain for Kept {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        if self.joint.is_some() || self.course.is_some() || !self.remarks.is_empty() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        ((self.position, self.launch), (self.host_ns, self.replaced)).put(out)?;
        self.readings.put(out)?;
        self.turns.put(out)?;
        self.probe.put(out)
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        let ((position, launch), (host_ns, replaced)) = Plain::take(from)?;
        Ok(Self {
            position,
            launch,
            host_ns,
            readings: Plain::take(from)?,
            turns: Plain::take(from)?,
            probe: Plain::take(from)?,
            remarks: Box::default(),
            joint: None,
            course: None,
            replaced,
        })
    }
}

impl<T: Plain> Plain for Blocks<T> {
    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        put_count(self.len(), out)?;
        self.iter().try_for_each(|(block, value)| {
            block.put(out)?;
            value.put(out)
        })
    }

    fn take(from: &mut impl Read) -> io::Result<Self> {
        Self::of(Plain::take(from)?).ok_or_else(no_readings)
    }
}
