//! `matrix`: the matrix operations of Danilova and Sergeev (2024), as a workload.
//!
//! One thread, no library, so that neither the number of threads nor the build of a linear algebra package can
//! differ between arms; that those do differ in practice is what the adapter around NumPy shows.
//! What it cannot see: matrices that do not fit into caches.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "matrix",
    about: "transpose, inverse, element-wise sum and product of dense matrices",
    params: &[ParamSpec {
        name: "size",
        default: DefaultValue::Text("large"),
        doc: "rows and columns: `small` is 64 (32 KiB a matrix), `large` is 512 (2 MiB), `source-small` is 500, `source-large` is 8000 (512 MB; needs minutes and 3 GB)",
    }],
    accepts: &[Accepts::OneOf(&[
        "small",
        "large",
        "source-small",
        "source-large",
    ])],
    metrics: &[
        MetricSpec {
            id: "cpu.matrix.transpose.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Writing the transpose of one matrix to another, in memory that exists.",
        },
        MetricSpec {
            id: "cpu.matrix.inverse.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Copying a matrix and inverting it by elimination with partial pivoting, in memory that exists.",
        },
        MetricSpec {
            id: "cpu.matrix.add.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Writing the sum of two matrices to a third, in memory that exists.",
        },
        MetricSpec {
            id: "cpu.matrix.multiply.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Writing the element-wise product of two matrices to a third, in memory that exists.",
        },
    ],
};
