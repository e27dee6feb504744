"""Every block of docs/python.md and of the packages' README runs, and so does the example."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from provider import Provider

ROOT = Path(__file__).parents[3]
PAGES = "".join((ROOT / page).read_text() for page in ("docs/python.md", "packaging/description.md"))
BLOCKS = re.findall(r"```python\n(.*?)```", PAGES, re.DOTALL)


def environment(provider: Provider) -> dict[str, str]:
    keys = {"OPENAI_API_KEY": "sk-any", "ANTHROPIC_API_KEY": "sk-ant-any"}
    return {**os.environ, **keys, "OPENAI_BASE_URL": provider.url, "ANTHROPIC_BASE_URL": provider.url[:-3]}


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_runs(number: int, provider: Provider, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error:::contexture", "-c", BLOCKS[number]]
    ran = subprocess.run(command, cwd=tmp_path, env=environment(provider), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    if "print" in BLOCKS[number]:
        assert ran.stdout.strip(), BLOCKS[number]


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 6


def test_the_example_goes_on_after_it_was_killed(tmp_path: Path) -> None:
    count = 24
    for number in range(count):
        (tmp_path / f"module_{number}.py").write_text(f"# module {number}\n" + "value = 1\n" * 1_000)

    def script(body: dict[str, Any]) -> Any:
        time.sleep(0.02)
        # What a model that looks at its history would do: the past may be folded, so the number is in the newest call.
        text = json.dumps(body["messages"])
        read = [int(found) for found in re.findall(r"module_(\d+)\.py", text)]
        number = max(read, default=-1) + 1
        return f"all {number} are read" if number == count else [(f"call_{number}", "read_file", {"path": f"module_{number}.py"})]

    provider = Provider(script)
    command = [sys.executable, str(ROOT / "bindings/python/examples/agent.py"), "state.json", "Read all modules."]
    kills = 0
    while True:
        child = subprocess.Popen(command, cwd=tmp_path, env=environment(provider), stdout=subprocess.PIPE, text=True)
        before = len(provider.bodies)
        while child.poll() is None and len(provider.bodies) < before + 7:
            time.sleep(0.005)
        if child.poll() is not None:
            break
        child.send_signal(signal.SIGKILL)
        child.wait()
        kills += 1
    assert child.stdout is not None and child.stdout.read() == f"all {count} are read\n"
    assert kills >= 2 and provider.refusals == []
    # A call that was lost with a kill is made again, and no other.
    assert len(provider.bodies) <= count + 1 + kills
    # About 64000 tokens came together; each request was within the budget.
    assert max(map(len, provider.bodies)) / 4 < 36_000
    provider.close()
