"""Loads the package without any other, and uses each part of it once. It says which Python it ran on."""

import sys
import tempfile
from pathlib import Path

import contexture

body = b'{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}'
with contexture.Folder(budget=64_000) as folder:
    assert folder.request(body).body == body
    assert folder.usage({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6})["sent"] == 5
assert contexture.count_tokens("The quick brown fox jumps over the lazy dog.") == 10
assert [found.path for found in contexture.references("see #a.md")] == ["a.md"]
with tempfile.TemporaryDirectory() as directory, contexture.Memory(Path(directory) / "memory.db") as memory:
    memory.remember("The release is on Friday.")
    assert len(memory.facts()) == 1
with contexture.gateway(upstream="http://127.0.0.1:9") as g:
    assert g.openai.startswith("http://127.0.0.1:")
assert g.receipt.requests == 0
print("the package works with Python", sys.version.split()[0])
