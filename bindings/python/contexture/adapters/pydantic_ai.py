"""Pydantic AI: a capability that folds what a model is sent.

::

    agent = Agent("openai:gpt-5", capabilities=[Folding(budget=64_000)])

``ProcessHistory`` would keep what it returns, so this is a capability of its own: the history of a run stays whole.
Conversations are told apart by ``conversation_id``.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any, Optional, Sequence

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext

from .._folder import Folded, Folder
from ._positions import Folders, Shown, fold, text_of, usage


class Folding(AbstractCapability[Any]):
    """Folds what a model is sent. It takes the options of :class:`contexture.Folder`."""

    def __init__(self, budget: Optional[int] = None, **options: Any) -> None:
        self._folders = Folders(budget=budget, format="chat", **options)
        self._sent: dict[str, tuple[Folder, Folded]] = {}

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replaces the messages of the request, and not those of the run."""
        folder = self._folders.of(getattr(ctx, "conversation_id", None))
        came = list(request_context.messages)
        places = [(number, part) for number, message in enumerate(came) for part in _parts(message)]
        wire = [_wire(came[number]) if part is None else _part(came[number].parts[part]) for number, part in places]
        request = {"model": request_context.model.model_name, "messages": wire}
        folded, shown = fold(folder, request)
        self._sent[str(ctx.run_id)] = (folder, folded)
        return replace(request_context, messages=_messages(came, places, shown))

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Tells the folder what was billed."""
        folder, folded = self._sent.pop(str(ctx.run_id), (None, None))
        reported = response.usage
        if folder is not None and reported.input_tokens:
            billed = usage(reported.input_tokens, reported.output_tokens, reported.cache_read_tokens)
            folder.usage(billed, of=folded)
        return response


Place = tuple[int, Optional[int]]
"""A message and a part of it, or all of it."""


def _parts(message: ModelMessage) -> Sequence[Optional[int]]:
    return [None] if isinstance(message, ModelResponse) else range(len(message.parts))


def _messages(came: Sequence[ModelMessage], places: Sequence[Place], shown: Sequence[Shown]) -> list[ModelMessage]:
    """The messages to send: those of which all parts are kept are the same objects."""
    calls = [part for message in came for part in message.parts if isinstance(part, ToolCallPart)]
    names = {call.tool_call_id: call.tool_name for call in calls}
    messages: list[ModelMessage] = []
    of: Optional[int] = None
    for one in shown:
        number, part = places[one] if isinstance(one, int) else (None, None)
        if number is None:
            messages.append(_made(one, names))
        elif part is None:
            messages.append(came[number])
        else:
            kept = came[number].parts[part]
            before = [] if of != number else messages.pop().parts
            whole: Any = came[number]
            messages.append(replace(whole, parts=[*before, kept]))
            if len(messages[-1].parts) == len(came[number].parts):
                messages[-1] = came[number]
        of = number if part is not None else None
    return messages


def _made(message: Any, names: dict[str, str]) -> ModelMessage:
    """A message that was made, or of which something was left out."""
    if message["role"] == "tool":
        id = message["tool_call_id"]
        return ModelRequest([ToolReturnPart(names.get(id, ""), text_of(message), id)])
    if message["role"] != "assistant":
        return ModelRequest([UserPromptPart(text_of(message))])
    calls = [
        ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in message.get("tool_calls") or []
    ]
    said = text_of(message)
    return ModelResponse([*([TextPart(said)] if said else []), *calls])


def _wire(response: ModelMessage) -> dict[str, Any]:
    """A response in OpenAI's chat format."""
    said = [part.content for part in response.parts if isinstance(part, (TextPart, ThinkingPart))]
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(said) or None}
    if calls:
        message["tool_calls"] = [
            {"id": one.tool_call_id, "type": "function", "function": {"name": one.tool_name, "arguments": one.args_as_json_str()}}
            for one in calls
        ]
    return message if calls or said else {"role": "assistant", "content": [_opaque(response)]}


def _part(part: Any) -> dict[str, Any]:
    """A part of a request in the same format."""
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    if isinstance(part, RetryPromptPart):
        if part.tool_name is None:
            return {"role": "user", "content": part.model_response()}
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}
    pieces = part.content if isinstance(part, UserPromptPart) else [part]
    if isinstance(pieces, str):
        return {"role": "user", "content": pieces}
    texts = [{"type": "text", "text": one} if isinstance(one, str) else _opaque(one) for one in pieces]
    return {"role": "user", "content": texts}


def _opaque(content: Any) -> dict[str, Any]:
    """What is no text: it is kept as it is, and only has to be recognised."""
    return {"type": "file", "file": {"file_id": sha256(repr(content).encode()).hexdigest()}}
