"""The limits: what the disk and the parser take by themselves, for the very same bytes."""

import os
import shutil
import time
import zlib

import msgspec

BLOCK = 40
"""How many appends one turn of a run does."""


class BareLine(msgspec.Struct, gc=False):
    """A line whose body stays raw: the least that decoding it can cost."""

    v: int = 0
    topic: str = ""
    state: msgspec.Raw = msgspec.Raw(b"")
    crc: str = ""


def writes(path, lines, *, sync):
    """Return a run that appends *lines* by bare system calls."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    waiting = iter(lines)

    def run():
        took = []
        for _ in range(BLOCK):
            line = next(waiting)
            began = time.perf_counter()
            os.write(fd, line)
            if sync:
                os.fdatasync(fd)
            took.append(time.perf_counter() - began)
        return took

    return run


def line_like(event):
    """Return the bytes that a log has for a stored *event*."""
    head = b'{"v":%d,"topic":"%s","state":' % (event.originator_version, event.topic.encode())
    return head + event.state + b',"crc":"%08x"}\n' % zlib.crc32(event.state)


def read_structs(path):
    return msgspec.json.Decoder(BareLine).decode_lines(path.read_bytes())


def read_dicts(path):
    return msgspec.json.Decoder().decode_lines(path.read_bytes())


def copy(path):
    target = path.with_suffix(".copy")
    shutil.copyfile(path, target)
    target.unlink()


def scan_folder(folder):
    """List a folder the cheapest way: names, status, and the first line of each file."""
    found = []
    for entry in os.scandir(folder):
        if entry.name.endswith(".jsonl"):
            fd = os.open(entry.path, os.O_RDONLY)
            head = os.read(fd, 4096)
            os.close(fd)
            found.append((entry.stat().st_mtime, msgspec.json.decode(head.partition(b"\n")[0])))
    return found
