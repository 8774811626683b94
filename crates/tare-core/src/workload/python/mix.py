"""A mix of what Python programs do, section by section, in batches on the monotonic clock.

Usage: mix.py ROUNDS SCALE. Prints one line of JSON: nanoseconds of every section in every round.
Each section is a function of the number of its loop's passes and returns something that depends on all of
them; a pass holds several operations, so that the loop itself weighs little. Inside the timed region is one
call of that function. The collector of cycles stays as the interpreter sets it, as it would in a program.
"""

import json
import platform
import sys
import sysconfig
import time

SECTIONS = []


def section(passes, operations):
    """Registers a section: passes of its loop in one round, operations in one pass."""

    def register(function):
        SECTIONS.append((function.__name__, function, passes, operations))
        return function

    return register


def add(left, right):
    return left + right


@section(6000, 10)
def calls(passes):
    total = 0
    for number in range(passes):
        total = add(total, number)
        total = add(total, 1)
        total = add(total, number)
        total = add(total, 2)
        total = add(total, number)
        total = add(total, 3)
        total = add(total, number)
        total = add(total, 4)
        total = add(total, number)
        total = add(total, 5)
    return total


class Counter:
    step = 1

    def __init__(self):
        self.count = 0

    def advance(self, by):
        self.count += by
        return self.count


@section(8000, 5)
def method_calls(passes):
    counter = Counter()
    for number in range(passes):
        counter.advance(number)
        counter.advance(1)
        counter.advance(number)
        counter.advance(2)
        counter.advance(3)
    return counter.count


@section(8000, 6)
def builtin_calls(passes):
    total = 0
    word = "sixteen letters!"
    pair = (3, -7)
    for number in range(passes):
        total += len(word)
        total += abs(number)
        total += min(pair)
        total += max(pair)
        total += int(isinstance(number, int))
        total += ord("x")
    return total


@section(8000, 8)
def integers(passes):
    value = 12345
    for number in range(passes):
        value = value * 3 + 1
        value ^= number
        value &= 0xFFFFFF
        value += value >> 5
        value -= number
        value |= 1
        value %= 1000003
        value //= 2
    return value


@section(3000, 4)
def big_integers(passes):
    modulus = (1 << 521) - 1
    value = (1 << 300) + 12345
    for number in range(passes):
        value = value * value % modulus
        value = (value + number) * 7 % modulus
        value = value * (value >> 200) % modulus
        value = (value << 13) % modulus
    return value & 0xFFFFFFFF


@section(10000, 6)
def floats(passes):
    value = 1.5
    for number in range(passes):
        value = value * 1.000001
        value += 0.25
        value /= 1.0000005
        value -= 0.125
        value = value * 0.9999
        value += number * 1e-9
    return value


@section(8000, 8)
def comparisons(passes):
    found = 0
    first, second = "a word", "a work"
    for number in range(passes):
        if number < 4000:
            found += 1
        if number > 4000:
            found += 1
        if number == 4000:
            found += 1
        if number != 4000:
            found += 1
        if first < second:
            found += 1
        if first == second:
            found += 1
        if 100 < number <= 200:
            found += 1
        if number is None:
            found += 1
    return found


ONE = 1
TWO = 2
THREE = 3


@section(8000, 9)
def globals(passes):
    total = 0
    for _ in range(passes):
        total += ONE + TWO + THREE
        total -= ONE + TWO + THREE
        total += ONE + TWO + THREE
    return total


@section(8000, 8)
def attributes(passes):
    counter = Counter()
    for number in range(passes):
        counter.count = number
        counter.first = counter.count
        counter.second = counter.first + counter.step
        counter.count = counter.second
    return counter.count


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y


@section(6000, 3)
def instances(passes):
    total = 0
    for number in range(passes):
        total += Point(number, 1).x
        total += Point(2, number).y
        total += Point(number, number).x
    return total


@section(60, 625)
def nested_loops(passes):
    total = 0
    for outer in range(passes):
        for middle in range(25):
            for inner in range(25):
                total += outer ^ middle ^ inner
    return total


@section(15000, 1)
def branches(passes):
    total = 0
    for number in range(passes):
        rest = number % 7
        if rest == 0:
            total += 1
        elif rest == 1:
            total += 2
        elif rest == 2:
            total += 3
        elif rest == 3 and total > 5:
            total += 4
        elif rest == 4 or total < 0:
            total += 5
        elif not rest:
            total += 6
        else:
            total -= 1
    return total


@section(3000, 8)
def strings(passes):
    total = 0
    words = ["one", "two", "three", "four", "five"]
    line = "alpha beta gamma delta epsilon"
    for number in range(passes):
        joined = ",".join(words)
        total += len(joined.split(","))
        total += line.find("delta")
        total += len(line.replace("beta", "BETA!"))
        total += line.upper().count("A")
        total += line.startswith("alpha")
        total += len(line[number % 10 : 20])
        total += len(joined + line)
    return total


@section(4000, 3)
def formatting(passes):
    total = 0
    for number in range(passes):
        total += len("%d of %s" % (number, "many"))
        total += len("{} and {:>8}".format(number, number + 1))
        total += len(f"{number:05d} is {number / 3:.3f}")
    return total


@section(5000, 8)
def lists(passes):
    total = 0
    for number in range(passes):
        items = [number, 2, 3]
        items.append(4)
        items.append(number)
        items.extend((6, 7))
        items[1] = items[0]
        total += items[-1] + len(items[2:5])
        total += items.pop()
        total += items.index(3)
    return total


@section(60, 200)
def sorting(passes):
    total = 0
    for number in range(passes):
        items = [(place * 7919 + number) % 200 for place in range(200)]
        items.sort()
        total += items[number % 200]
    return total


@section(250, 100)
def comprehensions(passes):
    total = 0
    for number in range(passes):
        total += len([item * 2 for item in range(100) if item & 1])
    return total


@section(15000, 2)
def tuples(passes):
    total = 0
    for number in range(passes):
        pair = (number, total)
        first, second = pair
        first, second = second, first
        total = second
    return total


@section(5000, 6)
def dicts(passes):
    total = 0
    table = {}
    for number in range(passes):
        key = number & 255
        table[key] = number
        table["name"] = key
        total += table[key]
        total += table.get("nothing", 1)
        total += key in table
        del table["name"]
    return total + len(table)


@section(4000, 5)
def sets(passes):
    total = 0
    even = {0, 2, 4, 6, 8}
    for number in range(passes):
        seen = {1, 2, 3}
        seen.add(number)
        total += number in seen
        total += len(seen | even)
        total += len(seen & even)
    return total


class Refused(Exception):
    pass


def refuse(number):
    raise Refused(number)


@section(5000, 3)
def exceptions(passes):
    total = 0
    for number in range(passes):
        try:
            refuse(number)
        except Refused:
            total += 1
        try:
            total += {}[number]
        except KeyError:
            total += 1
        try:
            total += [][number]
        except IndexError:
            total += 1
    return total


def countdown(start):
    while start:
        yield start
        start -= 1


@section(400, 100)
def generators(passes):
    total = 0
    for _ in range(passes):
        for value in countdown(100):
            total += value
    return total


@section(8000, 2)
def closures(passes):
    total = 0
    for number in range(passes):
        adder = lambda value: value + number
        total += adder(1)
        total += (lambda value, by=number: value - by)(total) & 1
    return total


def main():
    rounds, scale = int(sys.argv[1]), int(sys.argv[2])
    now = time.perf_counter_ns
    spent = {name: [] for name, _, _, _ in SECTIONS}
    results = {}
    for number in range(rounds + 1):
        for name, function, passes, _ in SECTIONS:
            begin = now()
            result = function(passes * scale)
            taken = now() - begin
            if number > 0:
                spent[name].append(taken)
            if results.setdefault(name, result) != result:
                sys.exit("the section " + name + " gave another result than before")
    report = {
        "format": "tare-python-mix/1",
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "compiler": platform.python_compiler(),
        "build_flags": sysconfig.get_config_var("CONFIG_ARGS"),
        "cflags": sysconfig.get_config_var("PY_CFLAGS"),
        "rounds": rounds,
        "scale": scale,
        "sections": {
            name: {"operations": passes * scale * operations, "ns": spent[name]}
            for name, _, passes, operations in SECTIONS
        },
    }
    print(json.dumps(report))


main()
