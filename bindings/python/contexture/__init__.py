"""Contexture for Python: sends a model only what is still needed of the past.

Two ways to use it: :func:`gateway`, for everything that accepts a base URL, and :class:`Folder`, in process. Beside
them are :class:`Memory`, :func:`references` and :func:`count_tokens`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import ClosedError, ContextureError, GatewayError, InputError, StoreError
from ._gateway import Gateway, gateway
from ._receipt import Decision, Receipt

if TYPE_CHECKING:
    from ._folder import Folded, Folder, Policy, Prices, Reference, count_tokens, references
    from ._memory import Fact, Found, Memory, Passage

__all__ = [
    "ClosedError",
    "ContextureError",
    "Decision",
    "Fact",
    "Folded",
    "Folder",
    "Found",
    "Gateway",
    "GatewayError",
    "InputError",
    "Memory",
    "Passage",
    "Policy",
    "Prices",
    "Receipt",
    "Reference",
    "StoreError",
    "count_tokens",
    "gateway",
    "references",
]

_FOLDER = {"Folded", "Folder", "Policy", "Prices", "Reference", "count_tokens", "references"}
_MEMORY = {"Fact", "Found", "Memory", "Passage"}


def __getattr__(name: str) -> Any:
    # What is compiled is loaded when it is used: the gateway works without it.
    if name not in _FOLDER | _MEMORY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import _folder, _memory
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}._native":
            raise
        sentence = f"`{name}` needs the library of contexture, which this package was made without"
        raise ImportError(f"{sentence}\nhint: install a wheel for this platform, or use `contexture.gateway`") from error
    return getattr(_folder if name in _FOLDER else _memory, name)
