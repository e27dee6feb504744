"""Memory in process: facts, and the search over past conversations."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Union

from ._closing import Closing
from ._errors import InputError
from ._native import NativeMemory


@dataclass(frozen=True)
class Fact:
    """Something that is remembered."""

    id: str
    """Its name."""
    text: str
    """The fact as a sentence."""
    entity: str
    """What it is about: ``user``, a person, a project, a thing."""
    attribute: str
    """Which property of it; empty where there is none."""
    value: str
    """The value of that property."""
    said_by: str
    """Who said it: ``user``, ``assistant``, ``tool`` or ``file``."""
    quote: str
    """Words of its source that say it."""
    is_current: bool
    """Whether it is true now, as far as is known."""
    raw: Mapping[str, Any]
    """All of it, as it is stored."""


@dataclass(frozen=True)
class Passage:
    """A part of a past conversation."""

    thread: str
    """The conversation."""
    role: str
    """Who said it."""
    text: str
    """What was said, or an excerpt of it."""
    at_ms: Optional[int]
    """When, in milliseconds since 1970."""
    score: float
    """How well it fits."""


@dataclass(frozen=True)
class Found:
    """What past conversations say about a text."""

    text: str
    """All passages as one text for a model, with dates and speakers; empty if nothing was found."""
    tokens: int
    """Its tokens."""
    passages: tuple[Passage, ...]
    """The passages: the best of each conversation first, then the others."""


class Memory(Closing):
    """What is remembered of one user or one project: facts, and past conversations that can be searched.

    ::

        with contexture.Memory("memory.db", user="ann") as memory:
            memory.remember("Ann prefers tabs.")
            memory.import_session(messages, thread="monday")
            print(memory.search("what does she prefer?").text)

    Args:
        store: A SQLite file, which is made if it does not exist, or ``postgres://user@host/database``.
        user: Whose memory it is. Nothing is found across users.
        project: The same for a project instead.

    It keeps a thread of its own, so open it after a fork.
    """

    def __init__(
        self, store: Union[str, "os.PathLike[str]"], *, user: Optional[str] = None, project: Optional[str] = None
    ) -> None:
        if user is not None and project is not None:
            raise InputError("a memory belongs to a user or to a project, not to both")
        owner = project if project is not None else user if user is not None else "me"
        if not isinstance(owner, str) or not owner:
            raise InputError("the name of a user or project is a text that is not empty")
        self._native = NativeMemory(os.fspath(store), owner, project is not None)

    def import_session(
        self,
        session: Union[str, "os.PathLike[str]", Iterable[Mapping[str, Any]]],
        *,
        thread: Optional[str] = None,
    ) -> int:
        """Adds a conversation, so that it can be searched. Keys and passwords are replaced by their kind.

        Args:
            session: The path of a recording of an agent (Claude Code, Codex, OpenCode, …), or messages with ``role``
                and ``content``, and where they are known ``id`` and ``at`` (``2026-01-31T12:00:00Z``).
            thread: The name of the conversation; otherwise the name of the file. What it has already is skipped.

        Returns how many messages are new.
        """
        if isinstance(session, (str, os.PathLike)):
            path = Path(session)
            return self._native.import_recording(thread or path.stem, path.read_bytes())
        if thread is None:
            raise InputError("the conversation has no name", "name it with `thread`")
        messages = [said for said in map(_said, session) if said["text"]]
        return self._native.import_messages(thread, json.dumps(messages))

    def search(self, text: str, *, budget: int = 1_000, full: bool = False) -> Found:
        """What past conversations say about a text, within a budget of tokens.

        Only what fits well is found, which may be nothing; with ``full``, as much as there is room for.
        """
        if not 0 <= budget < 2**64:
            raise InputError(f"a budget of {budget} tokens cannot be used: it is a number that is not negative")
        found = json.loads(self._native.search(text, budget, full))
        return Found(found["text"], found["tokens"], tuple(Passage(**passage) for passage in found["passages"]))

    def remember(
        self,
        text: str,
        *,
        entity: Optional[str] = None,
        attribute: Optional[str] = None,
        value: Optional[str] = None,
    ) -> str:
        """Remembers a fact, as said by the user. Returns its name.

        With ``attribute`` and ``value``, a newer value of a property that has one at a time takes the place of the
        older, which stays in its history.
        """
        return self._native.remember(text, entity, attribute, value)

    def facts(self, *, with_past: bool = False) -> list[Fact]:
        """The facts that are true now, oldest first; with ``with_past`` also those that were."""
        return [_fact(fact) for fact in json.loads(self._native.facts(with_past))]

    def forget(self, id: str) -> int:
        """Forgets a fact for good, with its older values, also in the search over past conversations. Returns how many
        facts are gone."""
        return self._native.forget(id)

    def close(self) -> None:
        """Closes the store. What is used after that raises :class:`ClosedError`."""
        self._native.close()


def _fact(raw: Mapping[str, Any]) -> Fact:
    return Fact(
        id=raw["id"],
        text=raw["text"],
        entity=raw["entity"],
        attribute=raw.get("attribute", ""),
        value=raw.get("value", ""),
        said_by=raw["said_by"],
        quote=raw["quote"],
        is_current=raw.get("valid_to_ms") is None,
        raw=raw,
    )


def _said(message: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(message, Mapping) or "role" not in message:
        raise InputError("a message is a dict with `role` and `content`")
    content = message.get("content", message.get("text"))
    if isinstance(content, (list, tuple)):
        # The parts that are text; calls and their outputs are not what people said.
        content = "\n".join(part["text"] for part in content if isinstance(part, Mapping) and "text" in part)
    if message["role"] == "tool":
        content = ""
    id, at = message.get("id"), message.get("at")
    plain = {"role": str(message["role"]), "text": content or ""}
    return {**plain, "id": None if id is None else str(id), "at": None if at is None else str(at)}
