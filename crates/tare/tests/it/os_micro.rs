//! Tests the probes of the kernel, threads and files for a study of operating systems, on the host and in the
//! built-in container, through the program. Checks that each arm has readings, not how large they are.

use serde_json::Value;

use crate::product::{Product, cell};

/// Workloads with one end.
const SINGLE: &[&str] = &tare_model::rows! {
    "allocate", "date", "directory", "environment", "lines", "mounts", "mutex", "page-load", "random",
    "read-files", "regex", "socket", "tasks", "threads", "timer",
};
/// Workloads with two ends, with the paths that the container has here.
const PAIRED: &[(&str, &str)] = &[("tcp-connect", "loopback"), ("udp-round-trip", "loopback")];

#[test]
fn every_os_probe_is_measured_on_host_and_container() {
    let product = Product::new();
    let mut study = "id = \"os\"\n[design]\ntrial = \"10ms\"\nblocks_min = 2\nblocks_max = 2\n\
         [[arm]]\nid = \"host\"\n[[arm]]\nid = \"other\"\ndriver = \"container\"\n"
        .to_owned();
    for id in SINGLE {
        study.extend(["[[workload]]\nid = \"", id, "\"\n"]);
    }
    for (id, path) in PAIRED {
        study.extend(["[[workload]]\nid = \"", id, "\"\npath = \"", path, "\"\n"]);
    }
    product.file("os.toml", &study);
    let dossier = product.dossier(["run", "os.toml"]);
    assert_eq!(dossier["failures"], Value::Array(Vec::new()));
    let ids = SINGLE.iter().chain(PAIRED.iter().map(|(id, _)| id));
    for id in ids {
        let workload = tare::workload::find(id).unwrap();
        for metric in workload.metrics() {
            let cell = cell(&dossier, "other", metric.id);
            assert_eq!(cell["n_blocks"], 2, "{cell}");
        }
    }
    product.assert_nothing_left();
}
