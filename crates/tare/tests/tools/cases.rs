//! What is to be read from every capture.
#![allow(
    clippy::inconsistent_digit_grouping,
    clippy::unreadable_literal,
    reason = "figures as the tools print them"
)]

/// A capture and the first value of each metric; none where it must be refused.
pub(crate) type Case = (&'static str, &'static str, &'static [(&'static str, f64)]);

const MIB: f64 = 1_048_576.0;

pub(crate) const CASES: &[Case] = &[
    (
        "sysbench-cpu",
        "1.0.20-vm-master",
        &[
            ("sysbench.cpu.rate", 3072.86),
            ("sysbench.cpu-event.time", 650_086.54),
        ],
    ),
    (
        "sysbench-cpu",
        "1.0.20-vm-node",
        &[
            ("sysbench.cpu.rate", 3132.30),
            ("sysbench.cpu-event.time", 636_916.815_628),
        ],
    ),
    (
        "sysbench-cpu",
        "unnamed-container",
        &[
            ("sysbench.cpu.rate", 3089.76),
            ("sysbench.cpu-event.time", 646_961.59),
        ],
    ),
    (
        "sysbench-cpu",
        "synthetic-0.4.12",
        &[
            ("sysbench.cpu.rate", 384.024_577),
            ("sysbench.cpu-event.time", 2_603_800.0),
        ],
    ),
    (
        "sysbench-cpu",
        "synthetic-0.5",
        &[
            ("sysbench.cpu.rate", 400.0),
            ("sysbench.cpu-event.time", 2_499_000.0),
        ],
    ),
    (
        "sysbench-cpu",
        "synthetic-1.1",
        &[
            ("sysbench.cpu.rate", 1500.0),
            ("sysbench.cpu-event.time", 666_600.0),
        ],
    ),
    ("sysbench-cpu", "1.0.20-no-such-option", &[]),
    // 90.48 ms over 2 097 152 events: what is printed as an average of 0.00 ms.
    (
        "sysbench-memory",
        "1.0.20-vm-master",
        &[
            ("sysbench.cached-block.throughput", 8685.85 * MIB),
            ("sysbench.memory-operation.time", 43.144_226),
        ],
    ),
    (
        "sysbench-memory",
        "1.0.20-vm-node",
        &[
            ("sysbench.cached-block.throughput", 7883.58 * MIB),
            ("sysbench.memory-operation.time", 47.016_144),
        ],
    ),
    (
        "sysbench-memory",
        "unnamed-container",
        &[
            ("sysbench.cached-block.throughput", 9231.53 * MIB),
            ("sysbench.memory-operation.time", 41.537_285),
        ],
    ),
    (
        "sysbench-memory",
        "synthetic-0.4.12",
        &[
            ("sysbench.cached-block.throughput", 2048.0 * MIB),
            ("sysbench.memory-operation.time", 410.079_956),
        ],
    ),
    (
        "sysbench-memory",
        "synthetic-0.5",
        &[
            ("sysbench.memory.throughput", 4096.0 * MIB),
            ("sysbench.memory-operation.time", 243_164.06),
        ],
    ),
    (
        "sysbench-fileio",
        "synthetic-0.4.12",
        &[
            ("sysbench.file-read.rate", 1200.0),
            ("sysbench.file-write.rate", 800.0),
            ("sysbench.file-sync.rate", 2560.0),
            ("sysbench.file-operation.time", 50_000.0),
        ],
    ),
    (
        "sysbench-fileio",
        "synthetic-0.5",
        &[
            ("sysbench.file-read.rate", 2000.0),
            ("sysbench.file-operation.time", 50_000.0),
        ],
    ),
    (
        "sysbench-fileio",
        "synthetic-1.1",
        &[
            ("sysbench.file-read.rate", 2000.0),
            ("sysbench.file-operation.time", 50_000.0),
        ],
    ),
    (
        "stress-ng",
        "unnamed-vm-master-cpu",
        &[
            ("stress-ng.operation.rate", 6212.25),
            ("stress-ng.operation-per-cpu.rate", 3108.30),
        ],
    ),
    (
        "stress-ng",
        "unnamed-vm-node-cpu",
        &[
            ("stress-ng.operation.rate", 2202.64),
            ("stress-ng.operation-per-cpu.rate", 1107.02),
        ],
    ),
    (
        "stress-ng",
        "unnamed-vm-master-vm",
        &[
            ("stress-ng.operation.rate", 8444.08),
            ("stress-ng.operation-per-cpu.rate", 8556.63),
        ],
    ),
    (
        "stress-ng",
        "unnamed-vm-node-vm",
        &[
            ("stress-ng.operation.rate", 29663.83),
            ("stress-ng.operation-per-cpu.rate", 29783.60),
        ],
    ),
    (
        "stress-ng",
        "unnamed-container-cpu",
        &[
            ("stress-ng.old-operation.rate", 1197.58),
            ("stress-ng.old-operation-per-cpu.rate", 599.06),
        ],
    ),
    (
        "stress-ng",
        "unnamed-container-vm",
        &[
            ("stress-ng.old-operation.rate", 113_229.77),
            ("stress-ng.old-operation-per-cpu.rate", 113_349.49),
        ],
    ),
    (
        "stress-ng",
        "synthetic-0.13.12",
        &[
            ("stress-ng.old-operation.rate", 1197.516_667),
            ("stress-ng.old-operation-per-cpu.rate", 599.057_862),
        ],
    ),
    (
        "stress-ng",
        "synthetic-0.14.02",
        &[
            ("stress-ng.operation.rate", 6737.833),
            ("stress-ng.operation-per-cpu.rate", 3370.602),
        ],
    ),
    ("stress-ng", "0.15.06-skipped", &[]),
    ("stress-ng", "0.15.06-two-stressors", &[]),
    ("stress-ng", "0.15.06-no-such-method", &[]),
    ("stress-ng", "synthetic-0.17.06-untrustworthy", &[]),
    ("stress-ng", "synthetic-0.17.06-nothing-passed", &[]),
    ("stress-ng", "synthetic-nan", &[]),
    (
        "redis-benchmark",
        "synthetic-5.0",
        &[("redis.request.rate", 64_724.92)],
    ),
    ("redis-benchmark", "synthetic-not-a-number", &[]),
    ("redis-benchmark", "7.0.15-several", &[]),
    ("redis-benchmark", "7.0.15-quiet", &[]),
    ("pi-numpy", "no-numpy", &[]),
    (
        "command",
        "gzip-time",
        &[
            ("command.run.wall", 1e9),
            ("command.run.cpu", 5e8),
            ("command.run.picked", 0.125),
        ],
    ),
    (
        "sysbench-cpu",
        "1.0.20-two-threads",
        &[
            ("sysbench.cpu.rate", 987.49),
            ("sysbench.cpu-event.time", 2019069.7674418604),
        ],
    ),
    (
        "sysbench-cpu",
        "1.0.20-ms-latency",
        &[
            ("sysbench.cpu.rate", 4825384.11),
            ("sysbench.cpu-event.time", 74.18733461586352),
        ],
    ),
    (
        "sysbench-memory",
        "1.0.20-1k",
        &[
            ("sysbench.cached-block.throughput", 2679363338.24),
            ("sysbench.memory-operation.time", 169.2056655883789),
        ],
    ),
    (
        "sysbench-memory",
        "1.0.20-4m-read",
        &[
            ("sysbench.memory.throughput", 10039643340.8),
            ("sysbench.memory-operation.time", 792441.40625),
        ],
    ),
    (
        "sysbench-fileio",
        "1.0.20-rndrw",
        &[
            ("sysbench.file-read.rate", 13514.12),
            ("sysbench.file-write.rate", 9009.41),
            ("sysbench.file-sync.rate", 903.87),
            ("sysbench.file-operation.time", 41237.56400116555),
        ],
    ),
    (
        "sysbench-fileio",
        "1.0.20-rndrd-direct",
        &[
            ("sysbench.file-read.rate", 1351.97),
            ("sysbench.file-operation.time", 732422.4519940916),
        ],
    ),
    (
        "sysbench-fileio",
        "1.0.20-seqwr",
        &[
            ("sysbench.file-write.rate", 16566.49),
            ("sysbench.file-sync.rate", 663.66),
            ("sysbench.file-operation.time", 57299.11360871328),
        ],
    ),
    (
        "stress-ng",
        "0.15.06-cpu",
        &[
            ("stress-ng.operation.rate", 197.82575),
            ("stress-ng.operation-per-cpu.rate", 604.899084),
        ],
    ),
    (
        "stress-ng",
        "0.15.06-vm",
        &[
            ("stress-ng.operation.rate", 247.39854),
            ("stress-ng.operation-per-cpu.rate", 722.31502),
        ],
    ),
    (
        "stress-ng",
        "0.15.06-null",
        &[
            ("stress-ng.operation.rate", 21232.755354),
            ("stress-ng.operation-per-cpu.rate", 62003.414681),
        ],
    ),
    (
        "pyperf",
        "2.10.0-fixed-loops",
        &[("pyperf.statement.time", 25586.179999663727)],
    ),
    (
        "pyperf",
        "2.10.0-calibrated",
        &[("pyperf.statement.time", 88445.99999946468)],
    ),
    (
        "pyperf",
        "2.10.0-memory",
        &[("pyperf.statement.size", 12509184.0)],
    ),
    (
        "pyperf",
        "1.7.1-fixed-loops",
        &[("pyperf.statement.time", 106532.78000972932)],
    ),
    (
        "pyperf",
        "1.7.1-calibrated",
        &[("pyperf.statement.time", 51651.519043183216)],
    ),
    (
        "benchmark-dotnet",
        "0.11.5-lock-windows",
        &[("dotnet.operation.time", 40.948_694_9)],
    ),
    (
        "pyperf",
        "1.7.1-memory",
        &[("pyperf.statement.size", 8335360.0)],
    ),
    (
        "redis-benchmark",
        "7.0.15-get",
        &[
            ("redis.request.rate", 8857.4),
            ("redis.request.time", 3415000.0),
            ("redis.request-p99.time", 16311000.0),
        ],
    ),
    (
        "redis-benchmark",
        "7.0.15-mset",
        &[
            ("redis.request.rate", 9398.5),
            ("redis.request.time", 3487000.0),
            ("redis.request-p99.time", 16767000.0),
        ],
    ),
    (
        "python-mix",
        "cpython-3.11.2",
        &[
            ("python.mix-round.time", 212256334.0),
            ("python.call.time", 179.03555),
        ],
    ),
    (
        "python-mix",
        "cpython-3.11.7",
        &[
            ("python.mix-round.time", 213206209.0),
            ("python.call.time", 194.35083333333333),
        ],
    ),
    (
        "python-mix",
        "cpython-3.13.0",
        &[
            ("python.mix-round.time", 383335953.0),
            ("python.call.time", 152.09825),
        ],
    ),
    (
        "python-mix",
        "cpython-3.8.18",
        &[
            ("python.mix-round.time", 526220209.0),
            ("python.call.time", 490.70985),
        ],
    ),
    (
        "pi-loop",
        "cpython-3.11.2",
        &[("python.pi-loop.time", 341.125625)],
    ),
    (
        "pi-loop",
        "cpython-3.11.7",
        &[("python.pi-loop.time", 489.734435)],
    ),
    (
        "pi-loop",
        "cpython-3.13.0",
        &[("python.pi-loop.time", 519.67365)],
    ),
    (
        "pi-loop",
        "cpython-3.8.18",
        &[("python.pi-loop.time", 1026.75253)],
    ),
    (
        "pi-numpy",
        "numpy-1.24.2",
        &[("python.pi-numpy.time", 123.529637)],
    ),
    (
        "pi-numpy",
        "numpy-2.4.6",
        &[("python.pi-numpy.time", 74.927182)],
    ),
];
