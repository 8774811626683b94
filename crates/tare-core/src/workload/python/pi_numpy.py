"""Pi by random points in the unit square, all at once with NumPy.

Usage: pi_numpy.py SAMPLES REPEATS. Prints one line of JSON: nanoseconds of every repeat.
Inside the timed region are drawing two vectors of SAMPLES numbers and three passes over them. The generator is
seeded anew before each repeat, outside of it. One repeat is warm-up. The numbers of threads stay as the
environment sets them, and are reported.
"""

import json
import os
import platform
import sys
import sysconfig
import time

import numpy


def inside(generator, samples):
    x = generator.random_sample(samples)
    y = generator.random_sample(samples)
    return int(numpy.count_nonzero(x * x + y * y <= 1.0))


def main():
    samples, repeats = int(sys.argv[1]), int(sys.argv[2])
    spent = []
    for number in range(repeats + 1):
        # The old generator: its numbers are the same in every version of NumPy.
        generator = numpy.random.RandomState(20240229)
        begin = time.perf_counter_ns()
        count = inside(generator, samples)
        taken = time.perf_counter_ns() - begin
        if number > 0:
            spent.append(taken)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    report = {
        "format": "tare-pi/1",
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "build_flags": sysconfig.get_config_var("CONFIG_ARGS"),
        "numpy": numpy.__version__,
        "threads": {name: os.environ[name] for name in names if name in os.environ},
        "samples": samples,
        "inside": count,
        "ns": spent,
    }
    print(json.dumps(report))


main()
