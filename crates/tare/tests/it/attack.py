"""What somebody inside would try first. Prints a line for each attempt: its name and `denied` or `DONE`.

Arguments: a place to write to, then `name=path` of what must not be readable, or connectable.
"""

import ctypes
import os
import socket
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, action):
    try:
        done = action()
    except OSError as error:
        print(name, "denied:", error.strerror)
    else:
        print(name, "DONE" if done else "denied: nothing there")


def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def device(name, kind, major, minor):
    def use():
        path = os.path.join(sys.argv[1], name)
        os.mknod(path, kind | 0o600, os.makedev(major, minor))
        os.close(os.open(path, os.O_RDWR))
        return True

    return use


def holds_something(path):
    if os.path.isdir(path):
        return bool(os.listdir(path))
    if stat.S_ISSOCK(os.stat(path).st_mode):
        socket.socket(socket.AF_UNIX).connect(path)
        return True
    with open(path, "rb") as file:
        return bool(file.read(1))


def switch_on(path, text):
    def write():
        with open(path, "w") as file:
            file.write(text)
        return True

    return write


MOUNT, IO_URING_SETUP, UNSHARE, PERF, BPF = 165, 425, 272, 298, 321
attempt("fuse", device("fuse", stat.S_IFCHR, 10, 229))
attempt("disk", device("disk", stat.S_IFBLK, 7, 1))
attempt("kmsg", device("kmsg", stat.S_IFCHR, 1, 11))
attempt("sysctl", switch_on("/proc/sys/kernel/core_pattern", "core"))
attempt("sysrq", switch_on("/proc/sysrq-trigger", "h"))
attempt("uevent", switch_on("/sys/kernel/uevent_helper", ""))
attempt("kcore", lambda: holds_something("/proc/kcore"))
attempt("mount", lambda: call(MOUNT, b"none", b"/mnt", b"tmpfs", 0, None))
attempt("unshare", lambda: call(UNSHARE, 0x10000000))
attempt("io_uring", lambda: call(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM) is not None)
attempt("perf", lambda: call(PERF, ctypes.create_string_buffer(b"\x01\0\0\0\x80", 128), 0, -1, -1, 0))
attempt("bpf", lambda: call(BPF, 0, ctypes.create_string_buffer(128), 128))
for argument in sys.argv[2:]:
    name, path = argument.split("=", 1)
    attempt(name, lambda: holds_something(path))
