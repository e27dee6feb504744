"""What a gateway did, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional


@dataclass(frozen=True)
class Decision:
    """One thing that was decided about a request."""

    what: str
    """Its kind: ``fold``, ``shorten``, ``bring back``, ``cold``, ``disk`` or ``reference``."""
    reason: str
    """Why."""
    is_forced: bool
    """Whether it is a fold that the budget forced."""
    before_tokens: int
    """Tokens of the conversation before it."""
    after_tokens: int
    """Tokens of the conversation after it."""
    cost: float
    """What a fold makes the provider bill again, in tokens at the plain input price."""
    saves_per_request: float
    """What a fold saves in every later request, in tokens at the plain input price."""

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Decision:
        """A decision from its JSON form."""
        return cls(
            what=value["what"],
            reason=value["reason"],
            is_forced=value.get("is_forced", False),
            before_tokens=value["before_tokens"],
            after_tokens=value["after_tokens"],
            cost=value["cost"],
            saves_per_request=value["saves_per_request"],
        )


@dataclass(frozen=True)
class Receipt:
    """The totals of all requests of a gateway."""

    requests: int
    """Requests that passed through."""
    conversations: int
    """Conversations they belong to."""
    changed: int
    """Requests that were sent changed."""
    refused: int
    """Requests without the gateway's key. Nothing was done for them."""
    failed: Mapping[int, int]
    """Requests that failed, by the provider's status."""
    sent: int
    """Input tokens that were sent, by the provider's figures."""
    came: int
    """Input tokens that would have been sent without the gateway."""
    cache_read: int
    """Of those sent, the ones that the provider read from its cache."""
    output: int
    """Output tokens."""
    billed: float
    """What was billed for input, in tokens at the plain input price."""
    passed_through: float
    """What would have been billed without the gateway."""
    saved_share: float
    """What was saved, as a share of that; negative if the gateway cost more."""
    dollars: Optional[tuple[float, float]]
    """Dollars with and without the gateway, output included, where all prices are known."""
    folds: tuple[Decision, ...]
    """The folds, in order."""
    decided: Mapping[str, int]
    """How often something else was decided, by reason."""
    passed: Mapping[str, int]
    """How often a request was sent unchanged, or without new decisions, by reason."""
    dependent: tuple[str, ...]
    """Conversations that would no longer fit into the model's window without the gateway."""
    raw: Mapping[str, Any] = field(repr=False)
    """All of it, as the gateway printed it."""

    @classmethod
    def read(cls, ended: Mapping[str, Any]) -> Receipt:
        """A receipt from what a gateway prints when it has ended."""
        raw = ended["receipt"]
        dollars = raw.get("dollars")
        return cls(
            **{name: raw[name] for name in _PLAIN},
            refused=ended["refused"],
            saved_share=ended["saved_share"],
            failed={int(status): count for status, count in raw["failed"].items()},
            dollars=None if dollars is None else (dollars[0], dollars[1]),
            folds=tuple(Decision.read(fold) for fold in raw["folds"]),
            dependent=tuple(raw["dependent"]),
            raw=raw,
        )


_PLAIN = (
    "requests conversations changed sent came cache_read output billed passed_through decided passed".split()
)
