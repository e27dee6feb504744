"""What the fold in process sends is what the gateway sends, byte for byte, over recorded sessions.

The recordings are those of the benchmark; ``CONTEXTURE_RECORDINGS`` names a directory with others.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, Iterator

import pytest

import contexture
from contexture._binary import find_binary
from provider import Provider

OWN = Path(__file__).resolve().parents[3] / "crates/contexture-bench/judge/recordings"
BUDGET = int(os.environ.get("CONTEXTURE_BUDGET", "8000"))
LATE = "deciding took too long"
# A machine that is busy may make the gateway late; then its bodies are those of a request before.
TRIES = 4


def recordings() -> list[Path]:
    named = os.environ.get("CONTEXTURE_RECORDINGS")
    return sorted(path for path in (Path(named) if named else OWN).iterdir() if path.suffix in (".json", ".jsonl"))


def chat(message: dict[str, Any]) -> dict[str, Any]:
    text = message.get("text") or ""
    if message["role"] == "tool":
        return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": text}
    made: dict[str, Any] = {"role": message["role"], "content": text}
    calls = message.get("tool_calls") or []
    if calls:
        texts = [call["arguments"] if isinstance(call["arguments"], str) else json.dumps(call["arguments"]) for call in calls]
        made["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": text}}
            for call, text in zip(calls, texts)
        ]
    return made


def requests(path: Path) -> Iterator[bytes]:
    """The request before each message of the agent."""
    printed = subprocess.run([find_binary(), "import", str(path)], stdout=subprocess.PIPE, check=True).stdout
    messages = [chat(json.loads(line)) for line in printed.splitlines()]
    for at, message in enumerate(messages):
        if message["role"] == "assistant" and at > 0:
            body = {"model": "gpt-5", "messages": messages[:at]}
            yield json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def post(url: str, body: bytes) -> bytes:
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        return bytes(answer.read())


def of_gateway(bodies: list[bytes], provider: Provider) -> tuple[list[bytes], list[bytes], bool]:
    """What arrived at the provider, its answers, and whether the gateway was ever late."""
    provider.bodies.clear()
    with contexture.gateway(budget=BUDGET, upstream=provider.url) as g:
        answers = [post(f"{g.openai}/chat/completions", body) for body in bodies]
    return list(provider.bodies), answers, any(why.startswith(LATE) for why in g.receipt.passed)


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_the_same_bytes_as_the_gateway(path: Path, provider: Provider) -> None:
    bodies = list(requests(path))
    for _ in range(TRIES):
        arrived, answers, was_late = of_gateway(bodies, provider)
        if not was_late:
            break
    else:
        pytest.skip("the gateway was late each time: this machine is too busy to compare")
    folder = contexture.Folder(budget=BUDGET)
    changed = 0
    for number, (body, sent, answer) in enumerate(zip(bodies, arrived, answers)):
        folded = folder.request(body)
        assert folded.body == sent, f"request {number}"
        folder.usage(answer, of=folded)
        changed += folded.is_changed
    assert len(arrived) == len(bodies)
    if path.parent == OWN:
        assert changed > 3
