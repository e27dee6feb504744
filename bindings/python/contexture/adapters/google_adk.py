"""Google ADK: a plugin that folds what a model is sent.

::

    runner = InMemoryRunner(agent=agent, plugins=[FoldingPlugin(budget=64_000)])

The session keeps all events. Conversations are told apart by the id of the session and the name of the agent.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from hashlib import sha256
from typing import Any, Mapping, Optional

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from .._folder import Folded, Folder
from ._positions import Folders, fold, usage


class FoldingPlugin(BasePlugin):
    """Folds what a model is sent. It takes the options of :class:`contexture.Folder`."""

    def __init__(self, budget: Optional[int] = None, *, name: str = "contexture", **options: Any) -> None:
        super().__init__(name=name)
        self._folders = Folders(budget=budget, format="messages", **options)
        self._sent: dict[str, tuple[Folder, Folded]] = {}

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> Optional[LlmResponse]:
        """Replaces the contents of the request. The session is not changed."""
        name = _conversation(callback_context)
        folder = self._folders.of(name)
        came = list(llm_request.contents)
        system = str(llm_request.config.system_instruction or "") if llm_request.config else ""
        request = {"model": llm_request.model or "", "system": system, "messages": _wire(came)}
        folded, shown = fold(folder, request)
        self._sent[name] = (folder, folded)
        llm_request.contents = [came[one] if isinstance(one, int) else _made(one) for one in shown]
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> Optional[LlmResponse]:
        """Tells the folder what was billed."""
        reported = llm_response.usage_metadata
        if reported is None or llm_response.partial or not reported.prompt_token_count:
            return None
        folder, folded = self._sent.pop(_conversation(callback_context), (None, None))
        if folder is not None:
            output = (reported.candidates_token_count or 0) + (reported.thoughts_token_count or 0)
            folder.usage(usage(reported.prompt_token_count, output, reported.cached_content_token_count), of=folded)
        return None


def _conversation(context: CallbackContext) -> str:
    return f"{context.session.id}/{context.agent_name}"


def _wire(contents: list[types.Content]) -> list[dict[str, Any]]:
    """Contents in Anthropic's format. Calls without an id are paired with responses in their order, by name."""
    waiting: dict[str, OrderedDict[str, None]] = {}
    messages = []
    for number, content in enumerate(contents):
        blocks: list[dict[str, Any]] = []
        for place, part in enumerate(content.parts or []):
            call, response = part.function_call, part.function_response
            if call is not None:
                called = call.id or f"call_{number}_{place}"
                waiting.setdefault(call.name or "", OrderedDict())[called] = None
                blocks.append({"type": "tool_use", "id": called, "name": call.name, "input": call.args or {}})
            elif response is not None:
                calls = waiting.get(response.name or "", OrderedDict())
                answered = response.id if response.id in calls else next(iter(calls), response.id)
                calls.pop(answered or "", None)
                said = {"type": "text", "text": json.dumps(response.response, ensure_ascii=False, default=str)}
                blocks.append({"type": "tool_result", "tool_use_id": answered, "content": [_plain(response) or said]})
            elif part.text is not None and not part.thought:
                blocks.append({"type": "text", "text": part.text})
            else:
                blocks.append(_opaque(part))
        messages.append({"role": "assistant" if content.role == "model" else "user", "content": blocks})
    return messages


def _plain(response: types.FunctionResponse) -> Optional[dict[str, Any]]:
    """A response that is one text, as tools that return text have it."""
    result = (response.response or {}).get("result")
    return {"type": "text", "text": result} if isinstance(result, str) and len(response.response or {}) == 1 else None


def _opaque(part: Any) -> dict[str, Any]:
    """What is no text: it is kept as it is, and only has to be recognised."""
    return {"type": "image", "source": {"type": "file", "file_id": sha256(repr(part).encode()).hexdigest()}}


def _made(message: Mapping[str, Any]) -> types.Content:
    """A message that was made, or of which something was left out."""
    blocks = message["content"]
    blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
    role = "model" if message["role"] == "assistant" else "user"
    return types.Content(role=role, parts=[_part(block) for block in blocks])


def _part(block: Mapping[str, Any]) -> types.Part:
    if block["type"] == "tool_use":
        return types.Part(function_call=types.FunctionCall(id=block["id"], name=block["name"], args=block["input"]))
    if block["type"] == "tool_result":
        content = block["content"]
        said = content if isinstance(content, str) else "\n".join(one["text"] for one in content)
        response = types.FunctionResponse(id=block["tool_use_id"], name="tool", response={"result": said})
        return types.Part(function_response=response)
    return types.Part(text=block["text"])
