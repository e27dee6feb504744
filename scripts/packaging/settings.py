"""What packages are called, which version they have, and what platforms there are."""

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "packaging"


def fail(sentence, hint=None):
    """Ends with a sentence, and a line that says what to do."""
    print(f"error: {sentence}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    raise SystemExit(1)


@dataclass(frozen=True)
class Platform:
    """A platform that has packages."""

    target: str
    name: str
    npm: dict
    debian: str
    # As the kernel and Python call it.
    machine: str


@dataclass(frozen=True)
class Settings:
    """The settings, and the version of the workspace."""

    raw: dict
    version: str
    platforms: tuple
    # Seconds since 1970 that all files in packages carry, so that the same sources give the same bytes.
    time: int
    # How hard packages are compressed, from 0 to 9.
    effort: int

    def __getitem__(self, key):
        return self.raw[key]

    def platform(self, target):
        for platform in self.platforms:
            if platform.target == target:
                return platform
        known = ", ".join(platform.target for platform in self.platforms)
        fail(f"`{target}` has no packages", f"known are {known}; packaging/settings.toml is the table")

    def downloads(self):
        return self["downloads"].replace("{version}", self.version)


def read(effort=9):
    """Reads packaging/settings.toml and the version in Cargo.toml."""
    raw = tomllib.loads((SOURCES / "settings.toml").read_text())
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    platforms = tuple(Platform(**row) for row in raw.pop("platform"))
    return Settings(raw, workspace["package"]["version"], platforms, source_time(), effort)


def source_time():
    """The time of the sources: SOURCE_DATE_EPOCH, else that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    asked = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True)
    # Outside of a repository any fixed time does: 2026-01-01.
    return int(asked.stdout) if asked.returncode == 0 and asked.stdout.strip() else 1767225600
