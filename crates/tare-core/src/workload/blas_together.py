# The work of blas_matrices.py done by several at once: by threads of one interpreter, or by a process each. Prints, as
# JSON, how long it took until the last of them was done. Arguments: the order of the matrices, how many pairs each of them
# has, how many there are, 1 for processes or 0 for threads, and how many threads the library has ("default" for its own
# choice). All have the same matrices; everybody is ready before the time is taken.
import threading


def work(numpy, matrices):
    pairs = list(zip(matrices[0::2], matrices[1::2]))
    transposed = [matrix.transpose() for matrix in matrices]
    inverted = [numpy.linalg.inv(matrix) for matrix in matrices]
    sums = [one + other for one, other in pairs]
    products = [one * other for one, other in pairs]
    end = time.monotonic_ns()
    # One row of the product of a matrix and its inverse tells whether it is one.
    unit = matrices[0][0].astype(float) @ inverted[0]
    unit[0] -= 1.0
    is_right = float(abs(unit).max()) < 1e-6
    counts = [len(transposed), len(inverted), 2 * len(sums), 2 * len(products)]
    return end if is_right and counts == 4 * [len(matrices)] else 0


def by_threads(number, numpy, matrices):
    ready = threading.Barrier(number + 1)
    ends = []

    def one():
        ready.wait()
        ends.append(work(numpy, matrices))

    threads = [threading.Thread(target=one) for _ in range(number)]
    for thread in threads:
        thread.start()
    ready.wait()
    begin = time.monotonic_ns()
    for thread in threads:
        thread.join()
    return begin, ends, number + (threads_now() or 0)


def by_processes(number, numpy, matrices):
    # A byte to say that it is ready, a byte to begin, a line with when it was done and how many threads it had.
    ready, go, done = os.pipe(), os.pipe(), os.pipe()
    children = []
    for _ in range(number):
        child = os.fork()
        if child == 0:
            os.write(ready[1], b"r")
            os.read(go[0], 1)
            end = work(numpy, matrices)
            os.write(done[1], b"%d %d\n" % (end, threads_now() or 0))
            os._exit(0)
        children.append(child)
    os.close(done[1])
    for _ in range(number):
        os.read(ready[0], 1)
    begin = time.monotonic_ns()
    os.write(go[1], number * b"g")
    with os.fdopen(done[0]) as lines:
        told = [[int(word) for word in line.split()] for line in lines]
    for child in children:
        os.waitpid(child, 0)
    return begin, [end for end, _ in told], sum(threads for _, threads in told)


def main():
    order, n_pairs, number, processes = (int(word) for word in sys.argv[1:5])
    numpy = numpy_with(sys.argv[5])
    generator = numpy.random.RandomState(20240105)
    matrices = []
    for _ in range(2 * n_pairs):
        matrix = numpy.frombuffer(generator.bytes(order * order), dtype=numpy.uint8)
        matrices.append(matrix.reshape(order, order))
    by = by_processes if processes else by_threads
    begin, ends, peak = by(number, numpy, matrices)
    if len(ends) != number or not all(ends):
        sys.exit("a result is missing or wrong")
    tell(peak, numpy, {"all_ns": max(ends) - begin, "span_ns": [begin, max(ends)]})


main()
