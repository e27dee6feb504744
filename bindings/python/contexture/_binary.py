"""Finds the program `contexture`."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Iterator

from ._errors import GatewayError

NAME = "contexture.exe" if sys.platform == "win32" else "contexture"
VARIABLE = "CONTEXTURE_BINARY"
PACKAGE = "contexture-cli"


def find_binary() -> str:
    """The path of the program: what ``CONTEXTURE_BINARY`` names, else the one of this package, else that on ``PATH``."""
    named = os.environ.get(VARIABLE)
    if named:
        if not _is_program(Path(named)):
            raise GatewayError(f"`{named}`, which {VARIABLE} names, is no program", f"unset {VARIABLE}, or correct it")
        return named
    for path in _bundled():
        if _is_program(path):
            return str(path)
    found = shutil.which(NAME)
    if found is None:
        raise GatewayError(
            "the program `contexture` was not found",
            f"install the package `{PACKAGE}` whole, or name the program with the variable {VARIABLE}",
        )
    return found


def _bundled() -> Iterator[Path]:
    yield Path(__file__).parent / "bin" / NAME
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        # The script of the wheel, wherever the installer has put it.
        if file.name == NAME and file.parent.name in ("bin", "Scripts"):
            yield Path(str(file.locate()))
    yield Path(sysconfig.get_path("scripts")) / NAME


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
