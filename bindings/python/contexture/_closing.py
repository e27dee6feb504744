"""What is closed at the end of a ``with`` block."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, TypeVar

from ._errors import ContextureError

C = TypeVar("C", bound="Closing")


class Closing:
    """Something with a ``close``, which ``with`` calls."""

    def close(self) -> None:
        """Ends its use."""
        raise NotImplementedError

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self.close()
        except ContextureError:
            # What went wrong first is what counts.
            if error is None:
                raise
