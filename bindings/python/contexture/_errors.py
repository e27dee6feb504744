"""What can go wrong, as exceptions: a sentence, and a hint where something can be done."""

from __future__ import annotations

from typing import Optional


class ContextureError(Exception):
    """The base of all exceptions of this package."""

    def __init__(self, sentence: str, hint: Optional[str] = None) -> None:
        super().__init__(sentence, hint)
        self.sentence = sentence
        """What was tried, and what stopped it."""
        self.hint = hint
        """What can be done about it."""

    def __str__(self) -> str:
        return self.sentence if self.hint is None else f"{self.sentence}\nhint: {self.hint}"


class InputError(ContextureError, ValueError):
    """Something that was passed cannot be used: a budget of zero, or a body that is no request."""


class ClosedError(ContextureError):
    """Something was used after it was closed, or before it was started."""


class GatewayError(ContextureError):
    """The gateway cannot start, or has ended on its own."""


class StoreError(ContextureError):
    """What is stored cannot be read or written."""
