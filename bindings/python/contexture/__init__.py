"""Contexture for Python: sends a model only what is still needed of the past.

Two ways to use it: :func:`gateway`, for everything that accepts a base URL, and :class:`FoldingTransport`, for
everything that accepts an HTTP client. Beside them are :class:`Folder`, :class:`Memory`, :func:`references` and
:func:`count_tokens`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._errors import ClosedError, ContextureError, GatewayError, InputError, StoreError
from ._gateway import Gateway, gateway
from ._receipt import Decision, Receipt

if TYPE_CHECKING:
    from ._folder import Folded, Folder, Options, Policy, Prices, Reference, count_tokens, references
    from ._memory import Fact, Found, Memory, Passage
    from ._transport import AsyncFoldingTransport, FoldingTransport

__all__ = [
    "AsyncFoldingTransport",
    "ClosedError",
    "ContextureError",
    "Decision",
    "Fact",
    "Folded",
    "Folder",
    "FoldingTransport",
    "Found",
    "Gateway",
    "GatewayError",
    "InputError",
    "Memory",
    "Options",
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

_PLACES = {
    "_folder": {"Folded", "Folder", "Options", "Policy", "Prices", "Reference", "count_tokens", "references"},
    "_memory": {"Fact", "Found", "Memory", "Passage"},
    "_transport": {"AsyncFoldingTransport", "FoldingTransport"},
}


def __getattr__(name: str) -> Any:
    # What is compiled is loaded when it is used: the gateway works without it.
    place = next((place for place, names in _PLACES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{place}"), name)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}._native":
            raise
        sentence = f"`{name}` needs the library of contexture, which this package was made without"
        raise ImportError(f"{sentence}\nhint: install a wheel for this platform, or use `contexture.gateway`") from error
