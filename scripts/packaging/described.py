"""Manual pages and completions, which the binary writes itself."""

import subprocess
import tempfile
from pathlib import Path

from .settings import fail

SHELLS = ("bash", "zsh", "fish")


def run(command, *arguments):
    """Runs the binary, and returns what it printed."""
    done = subprocess.run([*command, *arguments], capture_output=True)
    if done.returncode != 0:
        words = " ".join([*command, *arguments])
        fail(f"`{words}` failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def check_version(settings, command):
    """Refuses a binary of another version than the sources."""
    said = run(command, "--version").decode().strip()
    if said != f"{settings['program']} {settings.version}":
        fail(f"the binary is `{said}`, but the workspace is {settings.version}", "build it again from these sources")


def manual_pages(command):
    """Pages by name."""
    with tempfile.TemporaryDirectory() as directory:
        run(command, "manual", directory)
        return {page.name: page.read_bytes() for page in sorted(Path(directory).iterdir())}


def completions(command):
    """Scripts by shell."""
    return {shell: run(command, "completions", shell) for shell in SHELLS}
