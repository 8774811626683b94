"""Pi by random points in the unit square, one at a time in a loop.

Usage: pi_loop.py SAMPLES REPEATS. Prints one line of JSON: nanoseconds of every repeat.
Inside the timed region are SAMPLES passes, each two random numbers and a comparison. The generator is seeded
anew before each repeat, so that every arm and every repeat decides the same points. One repeat is warm-up.
"""

import json
import platform
import random
import sys
import sysconfig
import time


def inside(samples):
    count = 0
    draw = random.random
    for _ in range(samples):
        x = draw()
        y = draw()
        if x * x + y * y <= 1.0:
            count += 1
    return count


def main():
    samples, repeats = int(sys.argv[1]), int(sys.argv[2])
    spent = []
    for number in range(repeats + 1):
        random.seed(20240229)
        begin = time.perf_counter_ns()
        count = inside(samples)
        taken = time.perf_counter_ns() - begin
        if number > 0:
            spent.append(taken)
    report = {
        "format": "tare-pi/1",
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "build_flags": sysconfig.get_config_var("CONFIG_ARGS"),
        "samples": samples,
        "inside": count,
        "ns": spent,
    }
    print(json.dumps(report))


main()
