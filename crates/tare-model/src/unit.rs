//! Units, directions and the description of a metric.

use crate::words::words;

/// One tick of `/proc/stat` and `/proc/<pid>/stat`, nanoseconds (USER_HZ is 100 on every Linux that Tare runs on).
pub const TICK_NS: f64 = 10_000_000.0;

words! {
    /// The unit of a metric's value.
    pub enum Unit {
        /// Nanoseconds.
        Nanosecond: "ns",
        /// Bytes.
        Byte: "B",
        /// A plain count.
        Count: "count",
        /// Bytes per second.
        BytePerSecond: "B/s",
        /// Operations per second.
        OperationPerSecond: "op/s",
        /// A dimensionless ratio.
        Ratio: "ratio",
    }
}

impl Unit {
    /// Returns the symbol used in reports and in the dossier.
    pub const fn symbol(self) -> &'static str {
        self.name()
    }
}

words! {
    /// Which direction of a metric is better.
    pub enum Better {
        /// Smaller is better: times, sizes.
        Lower: "lower",
        /// Larger is better: rates. Inverted before a ratio is taken, so that a ratio above 1 always means a cost.
        Higher: "higher",
    }
}

words! {
    /// The resource that a metric loads; decides its default margin.
    pub enum ResourceClass {
        /// Processor and memory.
        Compute: "compute",
        /// Kernel entries: system calls, faults, processes.
        Kernel: "kernel",
        /// File systems and block devices.
        Disk: "disk",
        /// Sockets.
        Network: "network",
        /// Creating and removing the environment itself.
        StartUp: "start-up",
    }
}

/// One metric of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricSpec {
    /// Identifier, `area.thing.quantity`.
    pub id: &'static str,
    /// Unit of the raw values.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// The resource that the metric loads.
    pub class: ResourceClass,
    /// Whether the in-trial best value may decide a verdict (pure processor and system-call loops only).
    pub floor_ok: bool,
    /// One sentence on what is inside the timed region.
    pub doc: &'static str,
}

/// Declares metrics as a table, one row each: `"id", Unit, Better, ResourceClass: "what is inside";`, with `floor`
/// after the class if the best value of a trial may decide a verdict. With `NAME = ` before them, the rows are
/// constants. Rows of one kind can share it: `Unit, Better, ResourceClass { "id": "what is inside"; … }`.
#[macro_export]
macro_rules! metrics {
    (@) => { false };
    (@ floor) => { true };
    ($(
        $(#[$of:meta])*
        $vis:vis $name:ident = $id:tt, $unit:ident, $better:ident, $class:ident $(, $floor:ident)?: $doc:literal;
    )+) => {$(
        $(#[$of])*
        $vis const $name: $crate::MetricSpec =
            $crate::metrics! { $id, $unit, $better, $class $(, $floor)?: $doc; }[0];
    )+};
    ($($id:tt, $unit:ident, $better:ident, $class:ident $(, $floor:ident)?: $doc:literal;)+) => {
        $crate::metrics! { $($unit, $better, $class { $id $(, $floor)?: $doc; })+ }
    };
    ($(
        $unit:ident, $better:ident, $class:ident { $($id:tt $(, $floor:ident)?: $doc:literal;)+ }
    )+) => {
        &[$($($crate::MetricSpec {
            id: $id,
            unit: $crate::Unit::$unit,
            better: $crate::Better::$better,
            class: $crate::ResourceClass::$class,
            floor_ok: $crate::metrics!(@ $($floor)?),
            doc: $doc,
        }),+),+]
    };
}

/// Formats a number of bytes in powers of 1024.
#[must_use]
pub fn bytes(count: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut count = count;
    let mut unit = 0;
    while count >= 1024.0 && unit + 1 < units.len() {
        count /= 1024.0;
        unit += 1;
    }
    if count.fract() == 0.0 || count >= 100.0 {
        format!("{count:.0} {}", units[unit])
    } else {
        format!("{count:.1} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_largest_fitting_unit() {
        assert_eq!(bytes(f64::from(64 << 20)), "64 MiB");
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!(bytes(0.0), "0 B");
    }
}
