"""DES encryption of a text in electronic codebook mode, in plain Python.

Usage: des.py CHARACTERS REPEATS. Prints one line of JSON: nanoseconds of every repeat, and what the key of a textbook
makes of its block, which shows that it is DES.
Inside the timed region is the encryption of all blocks of eight characters; outside are the tables, the key's schedule
and the text. One repeat is warm-up. Source: FIPS 46-3 (1999). Not for protecting anything: DES is broken.
"""

import json
import platform
import sys
import sysconfig
import time

# Key, block and cipher of the worked example in many textbooks.
KEY = 0x133457799BBCDFF1
BLOCK = 0x0123456789ABCDEF

# Bit numbers of the standard, 1 being the most significant.
INITIAL = [first - 8 * step for first in (58, 60, 62, 64, 57, 59, 61, 63) for step in range(8)]
FINAL = [INITIAL.index(bit) + 1 for bit in range(1, 65)]
PERMUTATION = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10,
    2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25,
]
CHOICE_1 = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
    63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
]
CHOICE_2 = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
    41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
]
TURNS = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1]
# The substitution boxes, four rows of sixteen each, a hexadecimal digit an entry.
BOXES = [
    "e4d12fb83a6c5907" "0f74e2d1a6cb9538" "41e8d62bfc973a50" "fc8249175b3ea06d",
    "f18e6b34972dc05a" "3d47f28ec01a69b5" "0e7ba4d158c6932f" "d8a13f42b67c05e9",
    "a09e63f51dc7b428" "d709346a285ecbf1" "d6498f30b12c5ae7" "1ad069874fe3b52c",
    "7de3069a1285bc4f" "d8b56f03472c1ae9" "a690cb7df13e5284" "3f06a1d8945bc72e",
    "2c417ab6853fd0e9" "eb2c47d150fa3986" "421bad78f9c5630e" "b8c71e2d6f09a453",
    "c1af92680d34e75b" "af427c9561de0b38" "9ef528c3704a1db6" "432c95fabe17608d",
    "4b2ef08d3c975a61" "d0b7491ae35c2f86" "14bdc37eaf680592" "6bd814a7950fe23c",
    "d2846fb1a93e50c7" "1fd8a374c56b0e92" "7b419ce206adf358" "21e74a8dfc90356b",
]


def permuted(value, width, choice):
    out = 0
    for bit in choice:
        out = out << 1 | value >> (width - bit) & 1
    return out


def substituted():
    """For each box and each six bits that enter it: what the box and the permutation behind it make of them."""
    tables = []
    for place, box in enumerate(BOXES):
        table = []
        for six in range(64):
            row, column = six >> 4 & 2 | six & 1, six >> 1 & 15
            four = int(box[row * 16 + column], 16) << (28 - 4 * place)
            table.append(permuted(four, 32, PERMUTATION))
        tables.append(table)
    return tables


def schedule(key):
    """The sixteen round keys, eight pieces of six bits each."""
    chosen = permuted(key, 64, CHOICE_1)
    half = (1 << 28) - 1
    left, right = chosen >> 28, chosen & half
    rounds = []
    for turn in TURNS:
        left = (left << turn | left >> (28 - turn)) & half
        right = (right << turn | right >> (28 - turn)) & half
        bits = permuted(left << 28 | right, 56, CHOICE_2)
        rounds.append(tuple(bits >> (42 - 6 * place) & 63 for place in range(8)))
    return rounds


BOX_1, BOX_2, BOX_3, BOX_4, BOX_5, BOX_6, BOX_7, BOX_8 = substituted()


def encrypt(block, rounds):
    mixed = permuted(block, 64, INITIAL)
    left, right = mixed >> 32, mixed & 0xFFFFFFFF
    for one, two, three, four, five, six, seven, eight in rounds:
        # The last bit before the first one, and the first behind the last one.
        wide = (right & 1) << 33 | right << 1 | right >> 31
        left, right = right, left ^ (
            BOX_1[wide >> 28 & 63 ^ one]
            ^ BOX_2[wide >> 24 & 63 ^ two]
            ^ BOX_3[wide >> 20 & 63 ^ three]
            ^ BOX_4[wide >> 16 & 63 ^ four]
            ^ BOX_5[wide >> 12 & 63 ^ five]
            ^ BOX_6[wide >> 8 & 63 ^ six]
            ^ BOX_7[wide >> 4 & 63 ^ seven]
            ^ BOX_8[wide & 63 ^ eight]
        )
    # The halves are not exchanged after the last round.
    return permuted(right << 32 | left, 64, FINAL)


def text(blocks):
    """Printable characters, eight to a block."""
    letters = [32 + place * 31 % 95 for place in range(blocks * 8)]
    return [int.from_bytes(bytes(letters[at : at + 8]), "big") for at in range(0, len(letters), 8)]


def main():
    characters, repeats = int(sys.argv[1]), int(sys.argv[2])
    rounds = schedule(KEY)
    blocks = text(characters // 8)
    spent = []
    for number in range(repeats + 1):
        begin = time.perf_counter_ns()
        cipher = [encrypt(block, rounds) for block in blocks]
        taken = time.perf_counter_ns() - begin
        if number > 0:
            spent.append(taken)
    report = {
        "format": "tare-des/1",
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "build_flags": sysconfig.get_config_var("CONFIG_ARGS"),
        "example": "%016x" % encrypt(BLOCK, rounds),
        "sum": "%016x" % (sum(cipher) % 2**64),
        "characters": 8 * len(blocks),
        "ns": spent,
    }
    print(json.dumps(report))


main()
