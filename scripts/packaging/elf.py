"""What a Linux binary says of itself: its machine, and the oldest C library that has all that it asks for.

The layout is that of the System V ABI (ELF-64) and of the GNU symbol versions in the Linux Standard Base.
"""

import re
import struct
from dataclasses import dataclass

MACHINES = {62: "x86_64", 183: "aarch64"}
DYNAMIC, INTERPRETER, LOAD = 2, 3, 1
NEEDED, STRING_TABLE, VERSIONS_NEEDED, VERSIONS_COUNT = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF


@dataclass(frozen=True)
class Binary:
    """What a binary asks of the system."""

    machine: str
    # (2, 17), or None for one that is linked statically.
    glibc: tuple | None
    # The shared libraries that it asks for.
    libraries: tuple


def read(path):
    """Reads a binary; returns `None` for what is not an ELF-64 file in little-endian order."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    machine = MACHINES.get(struct.unpack_from("<H", data, 18)[0], "unknown")
    headers = list(program_headers(data))
    dynamic = next((header for header in headers if header["type"] == DYNAMIC), None)
    if dynamic is None:
        return Binary(machine, None, ())
    entries = list(dynamic_entries(data, dynamic))
    place = lambda address: file_offset(headers, address)
    table = next((place(value) for tag, value in entries if tag == STRING_TABLE), None)
    libraries = tuple(text(data, table + value) for tag, value in entries if tag == NEEDED)
    return Binary(machine, newest_glibc(data, dict(entries), place, table), libraries)


def program_headers(data):
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for n in range(count):
        kind, _, start, address, _, length, _, _ = struct.unpack_from("<IIQQQQQQ", data, offset + n * size)
        yield {"type": kind, "offset": start, "address": address, "length": length}


def dynamic_entries(data, header):
    for at in range(header["offset"], header["offset"] + header["length"], 16):
        tag, value = struct.unpack_from("<qQ", data, at)
        if tag == 0:
            return
        yield tag, value


def file_offset(headers, address):
    for header in headers:
        if header["type"] == LOAD and header["address"] <= address < header["address"] + header["length"]:
            return address - header["address"] + header["offset"]
    raise ValueError("an address of the dynamic section is in no segment")


def text(data, at):
    return data[at : data.index(b"\0", at)].decode()


def newest_glibc(data, entries, place, table):
    """The newest version of the C library that a symbol asks for."""
    newest = None
    at = place(entries[VERSIONS_NEEDED]) if VERSIONS_NEEDED in entries else None
    for _ in range(entries.get(VERSIONS_COUNT, 0)):
        _, count, _, first, following = struct.unpack_from("<HHIII", data, at)
        inner = at + first
        for _ in range(count):
            _, _, _, name, next_inner = struct.unpack_from("<IHHII", data, inner)
            found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", text(data, table + name))
            if found:
                newest = max(newest or (0, 0), (int(found[1]), int(found[2])))
            inner += next_inner
        at += following
    return newest
