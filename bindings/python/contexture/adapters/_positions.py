"""What adapters have in common: folding by position, and a folder for each conversation."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any, Mapping, Optional, Sequence, Union

from .._folder import Folded, Folder

MOST_FOLDERS = 64
"""Conversations that are kept in memory. One that comes back later is folded anew."""


class Folders:
    """A folder for each conversation, by a name that the framework gives it."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        # Options that cannot be used are said at once.
        self._folders: OrderedDict[str, Folder] = OrderedDict({"": Folder(**options)})
        self._lock = threading.Lock()

    def of(self, conversation: Optional[str]) -> Folder:
        """The folder of a conversation. Without a name, one for all, which tells them apart by what they say."""
        name = conversation or ""
        with self._lock:
            folder = self._folders.get(name) or Folder(**self._options)
            self._folders[name] = folder
            self._folders.move_to_end(name)
            while len(self._folders) > MOST_FOLDERS:
                self._folders.popitem(last=False)
        return folder


Shown = Union[int, Mapping[str, Any]]
"""What is sent in a place: the message that came with this number, or one that was made."""


def fold(folder: Folder, request: Mapping[str, Any]) -> tuple[Folded, list[Shown]]:
    """Folds a request, and says for each message to send which one it was."""
    folded = folder.request(request)
    came: Sequence[Any] = request["input" if folded.format == "responses" else "messages"]
    if not folded.is_changed:
        return folded, list(range(len(came)))
    places: dict[str, list[int]] = {}
    for number, message in enumerate(came):
        places.setdefault(_key(message), []).append(number)
    shown: list[Shown] = []
    newest = -1
    for message in folded.messages:
        # Messages that are kept are in their order.
        kept = next((place for place in places.get(_key(message), []) if place > newest), None)
        newest = newest if kept is None else kept
        shown.append(message if kept is None else kept)
    return folded, shown


def usage(input_tokens: Optional[int], output_tokens: Optional[int], cached: Optional[int]) -> dict[str, Any]:
    """Usage in a form that :meth:`Folder.usage` takes, from what frameworks report."""
    total, output = input_tokens or 0, output_tokens or 0
    details = {"cached_tokens": cached or 0}
    return {
        "input_tokens": total,
        "output_tokens": output,
        "total_tokens": total + output,
        "input_tokens_details": details,
    }


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message that was made."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if "text" in part)


def _key(message: Any) -> str:
    return json.dumps(message, sort_keys=True, ensure_ascii=False, default=str)
