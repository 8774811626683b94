# Transposes, inverts, adds and multiplies several matrices with NumPy, and prints how long each operation took on all
# of them, as JSON. Arguments: the order of the matrices, how many pairs there are, whether they are read from
# "pictures", and how many threads ("default" for the library's own choice). Sums and products are element by element, of the first and the second matrix, of the third and
# the fourth, and so on. The elements are one byte each, as those of a picture in shades of grey.


def most_memory():
    # The most that this program held at once, also what has been given back since.
    for line in text("/proc/self/status").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def from_pictures(numpy, matrices):
    # Writes each matrix as a picture (PGM: a header, then a byte for each element), and reads it again.
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "matrix.pgm")
    pictures = []
    for matrix in matrices:
        header = b"P5\n%d %d\n255\n" % matrix.shape
        with open(path, "wb") as file:
            file.write(header + matrix.tobytes())
        picture = numpy.fromfile(path, dtype=numpy.uint8, offset=len(header))
        pictures.append(picture.reshape(matrix.shape))
    os.remove(path)
    return pictures


def main():
    order, n_pairs, source = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    numpy = numpy_with(sys.argv[4])
    # The old generator: its bytes are the same in every version of NumPy.
    generator = numpy.random.RandomState(20240105)
    matrices = []
    for _ in range(2 * n_pairs):
        matrix = numpy.frombuffer(generator.bytes(order * order), dtype=numpy.uint8)
        matrices.append(matrix.reshape(order, order))
    if source == "pictures":
        matrices = from_pictures(numpy, matrices)
    pairs = list(zip(matrices[0::2], matrices[1::2]))
    # Starts the library's threads.
    numpy.linalg.inv(2.0 * numpy.eye(64))
    clock = time.perf_counter_ns
    # The monotonic clock, which all processes on one kernel share.
    first = time.monotonic_ns()
    busy = time.process_time_ns()
    begin = clock()
    transposed = [matrix.transpose() for matrix in matrices]
    after_transposing = clock()
    inverted = [numpy.linalg.inv(matrix) for matrix in matrices]
    after_inverting = clock()
    sums = [one + other for one, other in pairs]
    after_adding = clock()
    products = [one * other for one, other in pairs]
    end = clock()
    busy = time.process_time_ns() - busy
    last = time.monotonic_ns()
    peak, memory = threads_now(), most_memory()
    # One row of the product of a matrix and its inverse tells whether it is one, without another large matrix.
    unit = matrices[0][0].astype(float) @ inverted[0]
    unit[0] -= 1.0
    error = float(abs(unit).max())
    if not error < 1e-6:
        sys.exit("the inverse is wrong: %g off" % error)
    counts = [len(transposed), len(inverted), 2 * len(sums), 2 * len(products)]
    if counts != 4 * [2 * n_pairs]:
        sys.exit("a result is missing")
    own = {
        "transpose_ns": after_transposing - begin,
        "inverse_ns": after_inverting - after_transposing,
        "add_ns": after_adding - after_inverting,
        "multiply_ns": end - after_adding,
        "busy_ns": busy,
        "memory_bytes": memory,
        "span_ns": [first, last],
    }
    tell(peak, numpy, own)


main()
