"""A clean place for trying a package: a home, a prefix, and what is left in them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .stand_ins import AGENT, VARIABLE, Provider

# What stays when a package is removed.
STATE = "home/.local/state/contexture"

# Where a request for a package would go: nothing listens there, so anything that asks the network fails.
NOWHERE = "http://127.0.0.1:9"


class Failed(Exception):
    """A package does not do what it should."""


def expect(condition, sentence):
    if not condition:
        raise Failed(sentence)


class Place:
    """An empty directory with a home, removed at the end."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="contexture-try-")
        self.root = Path(self.directory.name)
        self.home = self.root / "home"
        self.prefix = self.root / "prefix"
        self.home.mkdir()
        self.prefix.mkdir()
        return self

    def __exit__(self, *_):
        self.directory.cleanup()

    def environment(self, **more):
        base = {
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1",
            "TMPDIR": str(self.root),
        }
        return {**base, **{name: str(value) for name, value in more.items()}}

    def run(self, *command, code=0, **more):
        """Runs a command, and returns what it printed on both streams."""
        done = subprocess.run(
            [str(word) for word in command], env=self.environment(**more), cwd=self.root, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
        )
        words = " ".join(str(word) for word in command)
        expect(done.returncode == code, f"`{words}` ended with {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout

    def files(self, *ignored):
        """All files and links below, by path."""
        found = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir() or path.is_symlink()}
        return {path for path in found if not path.startswith(ignored)} if ignored else found


def check_program(place, *command, version):
    """Tries an installed program: its version, a recording, and an agent that asks a provider through it."""
    said = place.run(*command, "--version").strip()
    expect(said == f"contexture {version}", f"--version said `{said}`")
    replayed = place.run(*command, "replay")
    expect("token" in replayed and len(replayed.splitlines()) > 5, f"replay said:\n{replayed}")
    agent = place.root / "agent.py"
    agent.write_text(AGENT)
    with Provider() as provider:
        told = place.run(
            *command, "run", "--set", f"{VARIABLE}={{url}}/openai", "--upstream", provider.url, sys.executable, agent,
            code=7,
        )
        expect("the provider said: when" in told, f"the agent was told nothing:\n{told}")
        expect("1 request, 1 conversation" in told, f"there is no receipt:\n{told}")
        seen = provider.seen
        expect(len(seen) == 1 and seen[0][0] == "/v1/chat/completions", f"the provider saw {seen}")
        expect(seen[0][1] == "Bearer sk-not-a-key", "the agent's key did not arrive")
    agent.unlink()
    receipts = place.run(*command, "receipts")
    expect("1 request" in receipts, f"receipts said:\n{receipts}")


def check_left(place, before, *ignored):
    """After a package was removed, nothing is left but the state directory."""
    left = {path for path in place.files(*ignored) - before if not path.startswith(STATE)}
    expect(not left, f"this was left behind: {sorted(left)[:20]}")
    state = [path for path in place.files() if path.startswith(STATE)]
    expect(state, f"the state directory {STATE} is gone as well")
