"""Text written line by line to files, each by a process of its own, or read from files into a variable.

Usage: files.py write FILES LINES LENGTH, files.py read FILES BYTES whole, files.py read FILES BYTES lines. Prints one
line of JSON: nanoseconds and bytes. LENGTH is that of a line, its end included.
Writing, one file: inside the timed region are opening it, the loop over its lines, closing it. Several files: the same
in one process each; they are started and ready before the region begins, which ends when the last one is done.
Reading: inside are opening, reading into one variable, closing; `whole` one file after the other at a stretch, `lines` all
of them line by line as one stream, by `fileinput`. The files were written just before, so they come from memory.
"""

import fileinput
import json
import os
import platform
import subprocess
import sys
import sysconfig
import time

LINE = 31


def name(number):
    return "text-%d.txt" % number


def write(path, lines, length):
    line = "x" * (length - 1) + "\n"
    with open(path, "w", newline="\n") as file:
        for _ in range(lines):
            file.write(line)


def write_here(lines, length):
    begin = time.perf_counter_ns()
    write(name(0), lines, length)
    return time.perf_counter_ns() - begin


def write_in_processes(files, lines, length):
    children = []
    for number in range(files):
        arguments = ["one", name(number), str(lines), str(length)]
        children.append(
            subprocess.Popen(
                [sys.executable, "-I", "-B", __file__] + arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )
    for child in children:
        if child.stdout.read(1) != b"r":
            sys.exit("a process that was to write ended before it began")
    begin = time.perf_counter_ns()
    for child in children:
        child.stdin.close()
    done = [child.stdout.read(1) == b"d" for child in children]
    taken = time.perf_counter_ns() - begin
    for child in children:
        child.wait()
    if not all(done):
        sys.exit("a process did not write its file")
    return taken


def one(path, lines, length):
    sys.stdout.write("r")
    sys.stdout.flush()
    sys.stdin.read()
    write(path, lines, length)
    sys.stdout.write("d")


def read(files, how):
    names = [name(number) for number in range(files)]
    begin = time.perf_counter_ns()
    if how == "whole":
        contents = []
        for path in names:
            with open(path, newline="\n") as file:
                contents.append(file.read())
    else:
        with fileinput.input(names) as lines:
            contents = list(lines)
    taken = time.perf_counter_ns() - begin
    return taken, sum(map(len, contents))


def main():
    what = sys.argv[1]
    if what == "one":
        one(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    files, amount = int(sys.argv[2]), int(sys.argv[3])
    if what == "write":
        length = int(sys.argv[4])
        wanted = files * amount * length
        if files == 1:
            taken = write_here(amount, length)
        else:
            taken = write_in_processes(files, amount, length)
        found = sum(os.path.getsize(name(number)) for number in range(files))
    else:
        for number in range(files):
            write(name(number), amount // LINE, LINE)
        wanted = files * (amount // LINE) * LINE
        taken, found = read(files, sys.argv[4])
    report = {
        "format": "tare-files/1",
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "build_flags": sysconfig.get_config_var("CONFIG_ARGS"),
        "wanted_bytes": wanted,
        "bytes": found,
        "what": what,
        "ns": taken,
    }
    print(json.dumps(report))


main()
