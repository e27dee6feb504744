"""A PostgreSQL server of the tests, in a directory of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Optional


def programs() -> Optional[Path]:
    """Where its programs are, if it is installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


@contextmanager
def server(bin: Path) -> Iterator[str]:
    """A running server, as its address."""
    with tempfile.TemporaryDirectory() as place:
        # It refuses to run as root.
        options: dict[str, Any] = {"cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if os.getuid() == 0:
            shutil.chown(place, "postgres", "postgres")
            options.update(user="postgres", group="postgres", extra_groups=[])
        data = f"{place}/data"
        subprocess.run([bin / "initdb", "-D", data, "-U", "ann", "-A", "trust", "--no-sync"], check=True, **options)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        start = ["-o", f"-h 127.0.0.1 -p {port} -k {place} -F", "-D", data, "-w"]
        subprocess.run([bin / "pg_ctl", "start", *start, "-l", f"{place}/log"], check=True, **options)
        try:
            yield f"postgres://ann@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([bin / "pg_ctl", "stop", "-D", data, "-m", "immediate"], check=True, **options)
