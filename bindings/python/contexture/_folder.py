"""The fold in process: what to send for the requests of one conversation."""

from __future__ import annotations

import asyncio
import json
import math
import os
from typing import Any, Literal, Mapping, Optional, Sequence, TypedDict, Union

from ._closing import Closing
from ._errors import InputError
from ._native import NativeFolder, count_tokens as _count_tokens, find_references as _find_references
from ._receipt import Decision

Body = Union[bytes, bytearray, memoryview, str, Mapping[str, Any]]
Format = Literal["chat", "messages", "responses", "gemini"]
_LISTS = {"responses": "input", "gemini": "contents"}


class Prices(TypedDict, total=False):
    """What is known of a model, before the built-in table."""

    name: str
    """How its name begins; without it, all models are meant."""
    context: int
    """Tokens that it takes, the answer included."""
    input: float
    """Dollars for a million tokens of input."""
    output: float
    """Dollars for a million tokens of output."""
    read: float
    """The share of the input price for reading from the cache."""
    write: float
    """The share for writing to the cache."""
    write_hour: float
    """The share for writing to a cache that holds for an hour."""
    least: int
    """The shortest prefix that is cached, in tokens."""
    life: int
    """How many seconds a prefix is held."""


class Policy(TypedDict, total=False):
    """What is never folded."""

    tools: Sequence[str]
    """Names of tools, whose calls and outputs stay as they are."""
    paths: Sequence[str]
    """Patterns of paths, as in ``docs/*.md``, of which everything that is known stays in view."""


class Options(TypedDict, total=False):
    """What a transport takes beside its budget, and a :class:`Folder` too."""

    prices: Union[Prices, Sequence[Prices], None]
    """What is known of models, before the built-in table: one, or several with names."""
    policy: Optional[Policy]
    """What is never folded."""
    base_dir: Union[str, "os.PathLike[str]", None]
    """The directory beneath which files are read that messages name as ``#path``; otherwise none are read."""


class Folded:
    """What to send for a request, and what was decided about it."""

    def __init__(self, given: Body, plain: bytes, changed: Optional[bytes], report: Mapping[str, Any]) -> None:
        self._given = given
        self.body: bytes = plain if changed is None else changed
        """The body to send."""
        self.number: int = report["number"]
        """The number of the request in its folder."""
        self.format: Format = report["format"]
        """The format that it is written in."""
        self.is_changed: bool = report["is_changed"]
        """Whether the body differs from what was passed."""
        self.passed: Optional[str] = report["passed"]
        """Why nothing new was decided, if that is so."""
        self.decisions: tuple[Decision, ...] = tuple(map(Decision.read, report["decisions"]))
        """The decisions that take effect with it."""
        self.sent_tokens: int = report["sent_tokens"]
        """Tokens of the body to send, by our own count."""
        self.came_tokens: int = report["came_tokens"]
        """Tokens of what was passed, by our own count."""
        self.conversation: Optional[str] = report["conversation"]
        """The name of the conversation. A request that differs inside begins a branch with a name of its own."""

    def json(self) -> dict[str, Any]:
        """The body to send as a dictionary. What is not changed is what was passed, not a copy."""
        if not self.is_changed and isinstance(self._given, dict):
            return self._given
        return json.loads(self.body)  # type: ignore[no-any-return]

    @property
    def messages(self) -> list[Any]:
        """The messages to send; for OpenAI responses the items of ``input``, for Gemini the ``contents``."""
        return self.json()[_LISTS.get(self.format, "messages")]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        kinds = ", ".join(decision.what for decision in self.decisions) or self.passed or "nothing new"
        return f"<contexture.Folded, {self.came_tokens} to {self.sent_tokens} tokens: {kinds}>"


class Folder(Closing):
    """Decides what to send for the requests of one conversation, as the gateway would, byte for byte.

    ::

        folder = contexture.Folder(budget=64_000)
        folded = folder.request({"model": "gpt-5", "messages": messages})
        response = client.chat.completions.create(**folded.json())
        folder.usage(response.usage)

    Pass whole requests, as if there were no folder: it remembers what it has folded. All methods can be called from
    several threads, and release the interpreter's lock.

    Args:
        budget: The most tokens of a request, at least 4000; otherwise 112 000.
        prices: What is known of models, before the built-in table: one, or several with names.
        policy: What is never folded.
        base_dir: The directory beneath which files are read that messages name as ``#path``; otherwise none are read.
        format: The format of all requests; otherwise each is looked at.
    """

    def __init__(
        self,
        budget: Optional[int] = None,
        prices: Union[Prices, Sequence[Prices], None] = None,
        policy: Optional[Policy] = None,
        base_dir: Union[str, "os.PathLike[str]", None] = None,
        *,
        format: Optional[Format] = None,
    ) -> None:
        self._native = NativeFolder(_options(budget, prices, policy, base_dir, format))

    @classmethod
    def restore(
        cls,
        snapshot: str,
        budget: Optional[int] = None,
        prices: Union[Prices, Sequence[Prices], None] = None,
        policy: Optional[Policy] = None,
        base_dir: Union[str, "os.PathLike[str]", None] = None,
        *,
        format: Optional[Format] = None,
    ) -> Folder:
        """Goes on from what :meth:`snapshot` returned, in this process or another, with the same bytes."""
        if not isinstance(snapshot, str):
            raise TypeError(f"`snapshot` is a str, not {type(snapshot).__name__}")
        folder = cls.__new__(cls)
        folder._native = NativeFolder(_options(budget, prices, policy, base_dir, format), snapshot)
        return folder

    def request(self, body: Body) -> Folded:
        """Returns what to send for a request: the JSON body of Anthropic messages, OpenAI chat completions, OpenAI
        responses or Gemini, as bytes, text or a dictionary. The same request gets the same bytes again."""
        plain = _plain(body)
        changed, report = self._native.request(plain)
        return Folded(body, plain, changed, json.loads(report))

    async def arequest(self, body: Body) -> Folded:
        """The same without blocking the event loop."""
        return await asyncio.to_thread(self.request, body)

    def usage(self, reported: Any, of: Optional[Folded] = None) -> dict[str, Any]:
        """Tells the folder what the provider billed, by which it corrects its counts and decides when folding pays.

        Args:
            reported: The ``usage`` of a response, the whole response, or the bytes of a stream: as bytes, text, a
                dictionary, or an object of the providers' clients.
            of: The request; otherwise the newest.

        Returns the bill: ``billed`` and ``passed_through`` in tokens at the plain input price, ``sent`` and ``came``.
        """
        bill = self._native.usage(None if of is None else of.number, _plain(_dumped(reported)))
        return json.loads(bill)  # type: ignore[no-any-return]

    def refused(self, of: Optional[Folded] = None, *, original_was_accepted: bool = False) -> None:
        """Tells the folder that the provider refused a request: what was decided about it is reverted. If the provider
        then accepted the original for the second time, nothing more is folded."""
        self._native.refused(None if of is None else of.number, bool(original_was_accepted))

    def snapshot(self) -> str:
        """What was decided so far, as JSON, for :meth:`restore`. It contains texts of the conversation."""
        return self._native.snapshot()

    def close(self) -> None:
        """Frees the memory of the folder. What is used after that raises :class:`ClosedError`."""
        self._native.close()


class Reference:
    """A file that a text names as ``#path``."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.path: str = found["path"]
        """The path as written. It was not checked: it may lead anywhere."""
        self.start: int = found["start"]
        """Where it begins in the text."""
        self.end: int = found["end"]
        """Where it ends."""
        self.lines: Optional[tuple[int, int]] = None if found["lines"] is None else tuple(found["lines"])
        """The first and the last line that it is limited to."""
        self.text: Optional[str] = found["text"]
        """The text of the file, if a base directory was given and it can be read there."""
        self.problem: Optional[str] = found["problem"]
        """Why the file was not read."""

    def __repr__(self) -> str:
        return f"<contexture.Reference {self.path!r}>"


def references(text: str, base_dir: Union[str, "os.PathLike[str]", None] = None) -> list[Reference]:
    """The files that a text names, as in ``#src/main.rs`` or ``#notes.md:10-40``, in order.

    With a base directory they are read, and nothing outside it ever is: files are opened by handle, symbolic links are
    not followed, and only kinds of files are read that are text.
    """
    found = _find_references(text, None if base_dir is None else os.fspath(base_dir))
    return [Reference(one) for one in json.loads(found)]


def count_tokens(text: str, counter: Literal["o200k", "estimate"] = "o200k") -> int:
    """The number of tokens of a text: exactly as newer models of OpenAI count, or estimated from its bytes."""
    return _count_tokens(text, counter)


def _options(budget: Any, prices: Any, policy: Any, base_dir: Any, format: Any) -> str:
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool)):
        raise TypeError(f"`budget` is a number of tokens, not {type(budget).__name__}")
    if budget is not None and budget < 0:
        raise InputError(f"a budget of {budget} tokens is too small: it is at least 4000")
    if budget is not None and budget >= 2**64:
        raise InputError(f"a budget of {budget} tokens is too large: no model takes so many")
    if policy is not None and not isinstance(policy, Mapping):
        raise TypeError(f"`policy` is a dict, not {type(policy).__name__}")
    options = {
        "budget": budget,
        "models": [{"name": "", **one} for one in _prices(prices)],
        "pins": dict(policy or {}),
        "base_dir": None if base_dir is None else os.fspath(base_dir),
        "format": format,
    }
    return json.dumps(options)


def _prices(given: Any) -> Sequence[Mapping[str, Any]]:
    prices = [] if given is None else [given] if isinstance(given, Mapping) else given
    if not isinstance(prices, (list, tuple)) or not all(isinstance(one, Mapping) for one in prices):
        raise TypeError("`prices` is a dict or a list of dicts")
    for name, value in (item for one in prices for item in one.items()):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"the price `{name}` is a number that is not negative")
    return prices


def _plain(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    if isinstance(body, Mapping):
        try:
            # Written as the providers' own clients do.
            return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_dumped).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"the request cannot be written as JSON: {error}") from error
    raise TypeError(f"a request is bytes, str or a dict, not {type(body).__name__}")


def _dumped(value: Any) -> Any:
    """Objects of the providers' clients as what they were parsed from."""
    for name in ("model_dump", "to_dict", "dict"):
        dump = getattr(value, name, None)
        if callable(dump) and not isinstance(value, Mapping):
            return dump()
    if isinstance(value, (bytes, bytearray, memoryview, str, Mapping)):
        return value
    raise TypeError(f"{type(value).__name__} is no part of a request")
