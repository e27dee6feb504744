"""Archives whose bytes depend on their content only."""

import gzip
import hashlib
import io
import tarfile
from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """A file of a package."""

    path: str
    data: bytes
    mode: int = 0o644


def tar(files, time, directories=False):
    """A tar archive that belongs to root; `directories` adds an entry for each directory, as dpkg expects."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        seen = set()
        for file in sorted(files, key=lambda file: file.path):
            for parent in parents(file.path) if directories else []:
                if parent not in seen:
                    seen.add(parent)
                    entry = tarfile.TarInfo(parent)
                    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, time
                    archive.addfile(owned(entry))
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mode, entry.mtime = len(file.data), file.mode, time
            archive.addfile(owned(entry), io.BytesIO(file.data))
    return out.getvalue()


def owned(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def parents(path):
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) + "/" for n in range(len(parts))]


def gzipped(data, level=9):
    """Compressed without a name or a time."""
    return gzip.compress(data, level, mtime=0)


def sha256(data):
    return hashlib.sha256(data).hexdigest()
