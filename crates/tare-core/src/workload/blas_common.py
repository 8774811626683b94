# What the programs around NumPy's linear algebra share: the library's pool of threads, its files, and the limits on
# this process. It stands before each of them.
import json
import os
import sys
import time

LIMITS = (
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
)


def text(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def threads_now():
    for line in text("/proc/self/status").splitlines():
        if line.startswith("Threads:"):
            return int(line.split()[1])
    return None


def library():
    # The one that is mapped, whatever it is called where it was linked.
    names = set()
    for line in text("/proc/self/maps").splitlines():
        name = os.path.basename(line.split()[-1])
        if "blas" in name or "mkl" in name:
            names.add(os.path.realpath(line.split()[-1]))
    return sorted(names)


def quota():
    # Processors' worth of time of this process's control group; None where it is not limited or cannot be read.
    # The group's own folder is the root of what is mounted inside a container.
    found = []
    for line in text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts), -1, -1):
            inner = "/".join(parts[:depth])
            if controllers == "":
                for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
                    words = text(os.path.join(root, inner, "cpu.max")).split()
                    if len(words) == 2 and words[0] != "max":
                        found.append(int(words[0]) / int(words[1]))
            elif "cpu" in controllers.split(","):
                for root in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/" + controllers):
                    folder = os.path.join(root, inner)
                    given = text(folder + "/cpu.cfs_quota_us").strip()
                    period = text(folder + "/cpu.cfs_period_us").strip()
                    if given and period and int(given) > 0:
                        found.append(int(given) / int(period))
    return min(found) if found else None


def numpy_with(threads):
    # A limit that the surroundings set is not the default.
    for name in LIMITS:
        os.environ.pop(name, None)
        if threads != "default":
            os.environ[name] = threads
    try:
        import numpy
    except ImportError as error:
        sys.exit("NumPy cannot be imported: %s" % error)
    return numpy


def tell(peak, numpy, own):
    # What every program prints, beside its own.
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    own.update(
        threads=peak,
        limit=os.environ.get("OPENBLAS_NUM_THREADS"),
        cpus=cpus,
        quota=quota(),
        libraries=library(),
        numpy=numpy.__version__,
    )
    json.dump(own, sys.stdout)


