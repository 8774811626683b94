//! `matrix`: the matrix operations of Danilova and Sergeev (2024), as a workload.
//!
//! One thread and no library, so that neither the number of threads nor the build of a linear algebra package can
//! differ between arms; the adapter for NumPy shows that these differ in practice.
//! Limits: does not test matrices that exceed the caches.

use super::probe_output::probe;

probe! {
    "matrix": "transpose, inverse, element-wise sum and product of dense matrices";
    params {
        "size" = Text("large"), OneOf(&["small", "large", "source-small", "source-large"]):
            "rows and columns: `small` is 64 (32 KiB a matrix), `large` is 512 (2 MiB), `source-small` is 500, `source-large` is 8000 (512 MB; needs minutes and 3 GB)";
    }
    Nanosecond, Lower, Compute {
        "cpu.matrix.transpose.time", floor: "Writing the transpose of one matrix to another, in memory that exists.";
        "cpu.matrix.inverse.time", floor: "Copying a matrix and inverting it by elimination with partial pivoting, in memory that exists.";
        "cpu.matrix.add.time", floor: "Writing the sum of two matrices to a third, in memory that exists.";
        "cpu.matrix.multiply.time", floor: "Writing the element-wise product of two matrices to a third, in memory that exists.";
    }
}
