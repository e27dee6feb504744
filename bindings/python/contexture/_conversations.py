"""A folder for each conversation whose requests pass, kept in a directory if one is named."""

from __future__ import annotations

import json
import os
import re
import threading
import warnings
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from ._errors import ContextureError, StoreError
from ._folder import Folded, Folder, Format, Options

MOST_FOLDERS = 64
"""Conversations in memory. One that comes back later is read from the store, or folded anew."""
MOST_KEPT = 1_000
"""Conversations in a store. The ones that were used least recently are removed."""
Store = Union[str, "os.PathLike[str]"]

_ROUTE = re.compile(r"/(messages|chat/completions|responses)$|:(generateContent|streamGenerateContent)$")
_FORMATS: dict[str, Format] = {"messages": "messages", "chat/completions": "chat", "responses": "responses"}
_LISTS: dict[Format, str] = {"chat": "messages", "messages": "messages", "responses": "input", "gemini": "contents"}


class _Conversation:
    def __init__(self, folder: Folder, file: Optional[Path]) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self._file = file

    def keep(self) -> None:
        """Writes what was decided, so that another process goes on with the same bytes."""
        if self._file is None:
            return
        part = self._file.with_suffix(f".{os.getpid()}")
        try:
            with self.lock:
                part.write_text(self.folder.snapshot(), encoding="utf-8")
                part.replace(self._file)
        except (OSError, ContextureError) as error:
            warnings.warn(f"keep what was folded in `{self._file}`: {error}", stacklevel=2)


class Sent(NamedTuple):
    """A request as it is sent, and the conversation that it is of."""

    conversation: _Conversation
    folded: Folded

    def billed(self, response: bytes) -> None:
        """Tells the folder what was billed."""
        try:
            self.conversation.folder.usage(response, of=self.folded)
        except ContextureError:
            # A response without usage: nothing is known of its bill.
            pass

    def refused(self, original_was_accepted: bool) -> None:
        """Reverts what was decided."""
        try:
            self.conversation.folder.refused(self.folded, original_was_accepted=original_was_accepted)
        except ContextureError:
            # So many requests came after it that it is not known any more.
            return
        self.conversation.keep()


class Conversations:
    """The folders of all conversations that pass. They are told apart by their first messages, and by what follows."""

    def __init__(self, budget: Optional[int], store: Optional[Store], options: Options) -> None:
        self._budget, self._options = budget, options
        # Options that cannot be used are said at once.
        Folder(budget, **options).close()
        self._store = None if store is None else _opened(Path(store))
        self._held: OrderedDict[str, _Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def fold(self, path: str, body: bytes) -> Optional[Sent]:
        """What to send for a request to a path; ``None`` for one that is no part of a conversation."""
        route = _ROUTE.search(path)
        if route is None:
            return None
        format = _FORMATS.get(route[1] or "", "gemini")
        try:
            conversation = self._of(format, json.loads(body))
            folded = conversation.folder.request(body)
        except (ValueError, TypeError, AttributeError):
            # What is no request is for the provider to judge.
            return None
        except Exception as error:
            # What goes wrong here must not end an agent.
            warnings.warn(f"a request is sent as it is: {error}", stacklevel=2)
            return None
        if folded.is_changed:
            conversation.keep()
        return Sent(conversation, folded)

    def _of(self, format: Format, request: Any) -> _Conversation:
        beginning = f"{format}\n{_beginning(request.get(_LISTS[format]))}"
        name = sha256(beginning.encode("utf-8", "replace")).hexdigest()[:32]
        with self._lock:
            conversation = self._held.get(name) or self._read(name, format)
            self._held[name] = conversation
            self._held.move_to_end(name)
            while len(self._held) > MOST_FOLDERS:
                self._held.popitem(last=False)
        return conversation

    def _read(self, name: str, format: Format) -> _Conversation:
        file = None if self._store is None else self._store / f"{name}.json"
        if file is not None and file.is_file():
            try:
                snapshot = file.read_text(encoding="utf-8")
                return _Conversation(Folder.restore(snapshot, self._budget, format=format, **self._options), file)
            except (OSError, ValueError) as error:
                warnings.warn(f"go on from `{file}`: {error}", stacklevel=2)
        return _Conversation(Folder(self._budget, format=format, **self._options), file)


def _opened(store: Path) -> Path:
    try:
        # What was said is in it.
        store.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = sorted(store.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for file in kept[:-MOST_KEPT]:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"open the store `{store}`: {error.strerror or error}", "`store` is a directory") from error
    return store


def _beginning(messages: Any) -> str:
    """The text of the first message that is not the program's own."""
    if isinstance(messages, str):
        return messages
    first: dict[str, Any] = next((one for one in messages or () if one.get("role") not in ("system", "developer")), {})
    said = first.get("content", first.get("parts")) or ""
    return said if isinstance(said, str) else "\n".join(part.get("text") or "" for part in said)
