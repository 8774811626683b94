# Inverts one matrix again and again with NumPy and prints how long each inversion took, as JSON.
# Arguments: the order of the matrix, how many inversions, and how many threads ("default" for the library's own
# choice). The first inversion of all is a rehearsal and is not told.


def main():
    order, repeats = int(sys.argv[1]), int(sys.argv[2])
    numpy = numpy_with(sys.argv[3])
    line = numpy.arange(order)
    # Far from singular: the diagonal is larger than all the rest of its row together.
    matrix = (numpy.add.outer(7 * line, 11 * line) % 13) / 13.0 + order * numpy.eye(order)
    inverse = numpy.linalg.inv(matrix)
    error = float(abs(matrix @ inverse - numpy.eye(order)).max())
    if not error < 1e-9:
        sys.exit("the inverse is wrong: %g off" % error)
    times = []
    # The monotonic clock, which all processes on one kernel share.
    first = time.monotonic_ns()
    peak = threads_now()
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        numpy.linalg.inv(matrix)
        times.append(time.perf_counter_ns() - begin)
        peak = max(peak, threads_now()) if peak is not None else None
    last = time.monotonic_ns()
    tell(peak, numpy, {"times_ns": times, "span_ns": [first, last]})


main()
