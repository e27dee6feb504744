"""Memory in process."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

import contexture
import postgres
from contexture._binary import find_binary


def test_facts_are_remembered_found_and_forgotten(tmp_path: Path) -> None:
    with contexture.Memory(tmp_path / "memory.db", user="ann") as memory:
        first = memory.remember("Ann prefers tabs.", entity="Ann", attribute="prefers", value="tabs")
        memory.remember("The release is on Friday.")
        assert memory.remember("The release is on Friday.") in [fact.id for fact in memory.facts()]
        assert [fact.text for fact in memory.facts()] == ["Ann prefers tabs.", "The release is on Friday."]
        fact = memory.facts()[0]
        assert (fact.entity, fact.attribute, fact.value, fact.said_by) == ("Ann", "prefers", "tabs", "user")
        assert fact.is_current
    with contexture.Memory(tmp_path / "memory.db", user="ann") as memory:
        assert memory.forget(first) == 1
        assert [fact.text for fact in memory.facts()] == ["The release is on Friday."]
        with pytest.raises(contexture.InputError):
            memory.forget(first)
    assert b"prefers tabs" not in (tmp_path / "memory.db").read_bytes()


def test_postgresql_is_a_store_too() -> None:
    bin = postgres.programs()
    if bin is None:
        assert os.environ.get("CONTEXTURE_REQUIRE_POSTGRES") != "1"
        pytest.skip("PostgreSQL is not installed")
    with postgres.server(bin) as address:
        with contexture.Memory(address, user="ann") as memory:
            name = memory.remember("Ann prefers tabs.")
            memory.import_session([{"role": "user", "content": "The dentist is on Tuesday at noon."}], thread="one")
        with contexture.Memory(address, user="ann") as memory, contexture.Memory(address, user="bob") as other:
            assert [fact.text for fact in memory.facts()] == ["Ann prefers tabs."]
            assert "Tuesday" in memory.search("When is the dentist?").text
            assert memory.forget(name) == 1 and memory.facts() == []
            assert other.search("When is the dentist?").passages == ()


def test_nothing_is_found_across_users_and_projects(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with contexture.Memory(store, user="ann") as memory:
        memory.remember("Ann prefers tabs.")
        memory.import_session([{"role": "user", "content": "The dentist is on Tuesday at noon."}], thread="one")
    for other in (contexture.Memory(store, user="bob"), contexture.Memory(store, project="ann")):
        with other:
            assert other.facts() == [] and other.search("When is the dentist?").passages == ()


def test_sessions_are_searched(tmp_path: Path) -> None:
    session = [
        {"role": "user", "content": "The dentist is on Tuesday at noon.", "at": "2026-01-31T12:00:00Z", "id": "1"},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted: the dentist on Tuesday."}], "id": "2"},
        {"role": "tool", "tool_call_id": "x", "content": "an output"},
        {"role": "user", "content": "My key is sk-ant-api03-" + "a1B2" * 24, "id": "3"},
    ]
    with contexture.Memory(tmp_path / "memory.db") as memory:
        assert memory.import_session(session, thread="one") == 3
        assert memory.import_session(session, thread="one") == 0
        found = memory.search("When is the dentist?")
        assert "Tuesday" in found.text and found.tokens <= 1_000
        assert found.passages[0].thread == "one" and found.passages[0].role
        assert memory.search("What is the capital of Mongolia?").passages == ()
        assert "a1B2a1B2" not in memory.search("key", full=True).text
    assert b"a1B2a1B2" not in (tmp_path / "memory.db").read_bytes()


def test_a_recording_of_an_agent_is_searched(tmp_path: Path) -> None:
    lines = [
        {"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": "Rename the parser."}},
        {
            "type": "assistant",
            "uuid": "2",
            "sessionId": "s",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "The parser is now a scanner."}]},
        },
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with contexture.Memory(tmp_path / "memory.db") as memory:
        assert memory.import_session(path) == 2
        assert "scanner" in memory.search("What became of the parser?", full=True).text
        other = tmp_path / "other.jsonl"
        other.write_text("no recording\n")
        with pytest.raises(contexture.InputError):
            memory.import_session(other)
        with pytest.raises(FileNotFoundError):
            memory.import_session(tmp_path / "nowhere.jsonl")


def test_the_program_reads_the_same_memory(tmp_path: Path) -> None:
    with contexture.Memory(tmp_path / "memory.db", user="ann") as memory:
        memory.remember("Ann prefers tabs.")
    command = [find_binary(), "memory", "show", "--store", str(tmp_path / "memory.db"), "--resource", "ann"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Ann prefers tabs." in shown.stdout


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    foreign = tmp_path / "text.db"
    foreign.write_text("this is no database, and it has enough bytes to be seen as none")
    with pytest.raises(contexture.StoreError):
        contexture.Memory(foreign)
    with pytest.raises(contexture.StoreError):
        contexture.Memory("postgres://nobody@127.0.0.1:9/nothing")
    for whose in ({"user": "a", "project": "b"}, {"user": ""}, {"user": 5}):
        with pytest.raises(contexture.InputError):
            contexture.Memory(tmp_path / "memory.db", **whose)  # type: ignore[arg-type]
    memory = contexture.Memory(tmp_path / "memory.db")
    with pytest.raises(contexture.InputError):
        memory.remember("")
    for budget in (-1, 2**70):
        with pytest.raises(contexture.InputError):
            memory.search("a", budget=budget)
    with pytest.raises(TypeError):
        memory.remember("Ann is here.", entity=5)  # type: ignore[arg-type]
    for wrong in ([{"content": "a"}], [5], [{"role": "nobody", "content": "a"}]):
        with pytest.raises(contexture.InputError):
            memory.import_session(wrong, thread="one")  # type: ignore[arg-type]
    with pytest.raises(contexture.InputError, match="no name"):
        memory.import_session([{"role": "user", "content": "a"}])
    with pytest.raises(contexture.InputError, match="time"):
        memory.import_session([{"role": "user", "content": "a", "at": "soon"}], thread="one")
    memory.close()
    memory.close()
    with pytest.raises(contexture.ClosedError):
        memory.facts()


def test_many_threads_remember(tmp_path: Path) -> None:
    memory = contexture.Memory(tmp_path / "memory.db")
    threads = [
        threading.Thread(target=memory.remember, args=(f"Fact number {n} is true.",), kwargs={"entity": f"thing {n}"})
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memory.facts()) == 8
