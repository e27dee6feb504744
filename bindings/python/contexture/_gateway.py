"""A gateway for this program: started, used and ended as a context manager."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import subprocess
import threading
import weakref
from collections import deque
from types import TracebackType
from typing import IO, Any, Mapping, Optional, Sequence, Union

from ._binary import find_binary
from ._closing import Closing
from ._errors import ClosedError, ContextureError, GatewayError, InputError
from ._receipt import Receipt

START_TIME = 30.0
"""Seconds after which a gateway that says nothing has failed to start."""

END_TIME = 15.0
"""Seconds that a gateway has for its last responses and for the receipt."""

LEAST_BUDGET = 4_000
"""The fewest tokens that a request may be limited to."""

BAD_USAGE = 2
"""The exit code of the program for arguments that it does not take."""

Path = Union[str, "os.PathLike[str]"]


def gateway(
    *,
    budget: Optional[int] = None,
    upstream: Optional[str] = None,
    store: Union[Path, bool, None] = None,
    observe: bool = False,
    holdout: Optional[float] = None,
    base_dir: Optional[Path] = None,
    inspect: bool = False,
    binary: Optional[Path] = None,
) -> Gateway:
    """A gateway between this program and its model, for ``with`` and ``async with``.

    Everything that accepts a base URL can be pointed at it::

        with contexture.gateway(budget=64_000) as g:
            client = openai.OpenAI(base_url=g.openai)
        print(g.receipt.saved_share)

    Args:
        budget: The most tokens of a request, at least 4000; otherwise 112 000.
        upstream: Where all requests go; otherwise to what ``OPENAI_BASE_URL`` and ``ANTHROPIC_BASE_URL`` name, else to
            the providers' own addresses.
        store: A file or ``postgres://…`` in which conversations and decisions are kept, so that a program that was
            killed goes on with the same bytes; ``True`` for the user's own store, which ``contexture receipts`` and
            ``contexture status`` read. Otherwise nothing is kept.
        observe: Send everything as it came, and only record what would have been done.
        holdout: The share of conversations to pass through unchanged, for comparison.
        base_dir: The directory beneath which files are read that messages name as ``#path``; otherwise none are read.
            Anyone who writes messages can have these files read.
        inspect: Serve the inspector, at :attr:`Gateway.inspector`.
        binary: The program; otherwise it is found as described in ``docs/python.md``.

    The gateway listens on a free port of this machine. Its addresses contain a secret, so that no other user of the
    machine can use it. It ends with this process, whatever happens to it.
    """
    arguments = ["serve", "--for-parent"]
    if budget is not None:
        if _checked("budget", budget, int, "a number of tokens") < LEAST_BUDGET:
            raise InputError(f"a budget of {budget} tokens is too small: it is at least {LEAST_BUDGET}")
        arguments.append(f"--budget={budget}")
    if upstream is not None:
        arguments.append(f"--upstream={_checked('upstream', upstream, str, 'an address')}")
    if store is True:
        pass
    elif store is None or store is False:
        arguments.append("--no-store")
    else:
        arguments.append(f"--store={os.fspath(store)}")
    if holdout is not None:
        arguments.append(f"--holdout={_checked('holdout', holdout, (int, float), 'a number from 0 to 1')}")
    if base_dir is not None:
        arguments.append(f"--base={os.fspath(base_dir)}")
    if _checked("observe", observe, bool, "True or False"):
        arguments.append("--observe")
    if _checked("inspect", inspect, bool, "True or False"):
        arguments.append("--inspect")
    return Gateway(arguments, None if binary is None else os.fspath(binary))


def _checked(name: str, value: Any, kind: Any, expected: str) -> Any:
    # A bool is an int, but no number of tokens.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"`{name}` is {expected}, not {type(value).__name__}")
    return value


class Gateway(Closing):
    """A gateway that was configured with :func:`gateway`. It runs inside ``with`` or ``async with``, once."""

    def __init__(self, arguments: Sequence[str], binary: Optional[str] = None) -> None:
        self._arguments = list(arguments)
        self._binary = binary
        self._process: Optional[_Process] = None
        self._addresses: Optional[Mapping[str, Any]] = None
        self._receipt: Optional[Receipt] = None
        self._lock = threading.Lock()

    @property
    def openai(self) -> str:
        """The base URL for clients of OpenAI's API, and of those that speak it."""
        return str(self._address("openai"))

    @property
    def anthropic(self) -> str:
        """The base URL for clients of Anthropic's API."""
        return str(self._address("anthropic"))

    @property
    def url(self) -> str:
        """The base URL without a provider: requests are routed by their path."""
        return str(self._address("url"))

    @property
    def inspector(self) -> Optional[str]:
        """The address of the inspector, if it was asked for."""
        address: Optional[str] = self._address("inspector")
        return address

    @property
    def receipt(self) -> Receipt:
        """What was done and what it cost. It is there when the gateway has ended."""
        if self._receipt is None:
            raise ClosedError("the receipt is made when the gateway has ended", "read it after the `with` block")
        return self._receipt

    def start(self) -> Gateway:
        """Starts the gateway, and returns when it accepts requests. ``with`` does this."""
        with self._lock:
            if self._process is not None:
                raise ClosedError("a gateway starts once", "make another one with `contexture.gateway`")
            self._process = _Process([self._binary or find_binary(), *self._arguments])
            self._addresses = self._process.ready()
        return self

    def close(self) -> None:
        """Ends the gateway, and makes the receipt. ``with`` does this."""
        with self._lock:
            process = self._process
            if process is None or self._addresses is None or self._receipt is not None or not process.is_own():
                return
            self._receipt = Receipt.read(process.end())

    def __enter__(self) -> Gateway:
        return self.start()

    async def __aenter__(self) -> Gateway:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        # Shielded: a task that is cancelled ends the gateway all the same.
        await asyncio.shield(asyncio.to_thread(self.__exit__, kind, error, trace))

    def __repr__(self) -> str:
        state = "ended" if self._receipt else "running" if self._addresses else "not started"
        # Its addresses contain a secret.
        return f"<contexture.Gateway, {state}>"

    def _address(self, name: str) -> Any:
        if self._addresses is None:
            raise ClosedError("the gateway has no address before it is started", "use it inside `with`")
        return self._addresses[name]


class _Process:
    """The program as a child of this process."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
            )
        except OSError as error:
            raise GatewayError(f"start `{command[0]}`: {error.strerror or error}") from error
        self._pid = os.getpid()
        # The threads that read have no reference to this, so that it can be collected, which ends the program.
        lines: queue.SimpleQueue[Optional[str]] = queue.SimpleQueue()
        self._lines = lines
        # Warnings of the program; only the last ones are of interest when it has failed.
        self._told: deque[str] = deque(maxlen=50)
        self._readers = [
            _reader(self._child.stdout, lines.put, at_end=lambda: lines.put(None)),
            _reader(self._child.stderr, self._told.append),
        ]
        weakref.finalize(self, _let_go, self._child, self._pid)

    def is_own(self) -> bool:
        """Whether this process started it. After a fork there are two that could end it."""
        return os.getpid() == self._pid

    def ready(self) -> Mapping[str, Any]:
        """Waits until it accepts requests."""
        line = self._line(START_TIME)
        if line is None:
            raise self._failed("the gateway did not start")
        return line["ready"]  # type: ignore[no-any-return]

    def end(self) -> Mapping[str, Any]:
        """Ends it, and returns what it says at the end."""
        _let_go(self._child, self._pid)
        line = self._line(END_TIME)
        if line is None:
            raise self._failed("the gateway ended on its own, without a receipt")
        self._reap()
        return line["ended"]  # type: ignore[no-any-return]

    def _line(self, seconds: float) -> Optional[Mapping[str, Any]]:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            return None
        try:
            value = None if line is None else json.loads(line)
        except ValueError:
            value = None
        return value if isinstance(value, dict) else None

    def _failed(self, otherwise: str) -> ContextureError:
        code = self._child.poll()
        if code is None and self._lines.empty():
            self._child.kill()
        code = self._reap()
        sentence, hint = _explained(self._told)
        if code == BAD_USAGE and sentence is not None:
            return InputError(sentence, hint)
        return GatewayError(sentence or f"{otherwise} (exit code {code})", hint)

    def _reap(self) -> int:
        try:
            code = self._child.wait(END_TIME)
        except subprocess.TimeoutExpired:
            self._child.kill()
            code = self._child.wait()
        for reader in self._readers:
            reader.join(1.0)
        for pipe in (self._child.stdout, self._child.stderr):
            if pipe is not None and not any(reader.is_alive() for reader in self._readers):
                pipe.close()
        return code


def _let_go(child: subprocess.Popen[str], pid: int) -> None:
    """Tells the program to end. A byte, because a forked process may still have the pipe open."""
    pipe = child.stdin
    if pipe is None or pipe.closed or os.getpid() != pid:
        return
    try:
        pipe.write("\n")
        pipe.close()
    except OSError:
        # It has ended already.
        pass


def _reader(pipe: Optional[IO[str]], take: Any, at_end: Any = None) -> threading.Thread:
    def read() -> None:
        assert pipe is not None
        try:
            for line in pipe:
                take(line)
        finally:
            if at_end is not None:
                at_end()

    thread = threading.Thread(target=read, name="contexture gateway", daemon=True)
    thread.start()
    return thread


def _explained(told: Sequence[str] | deque[str]) -> tuple[Optional[str], Optional[str]]:
    """The sentence and the hint that the program printed."""
    found: dict[str, str] = {}
    for line in told:
        for name in ("error", "hint"):
            if line.startswith(f"{name}: "):
                found[name] = line[len(name) + 2 :].strip()
    return found.get("error"), found.get("hint")
