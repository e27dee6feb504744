"""Strands Agents: a middleware that folds what a model is sent.

::

    agent = Agent(model=model, tools=[…], conversation_manager=NullConversationManager())
    Folding(budget=64_000).attach(agent)

The agent keeps all messages: a conversation manager that removes some would take them from the folder too. One
:class:`Folding` is for one agent.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Mapping, Optional

from strands import Agent
from strands.hooks import AfterModelCallEvent
from strands.middleware import InvokeModelStage
from strands.middleware.stages import InvokeModelContext

from .._folder import Folded, Folder
from ._positions import fold, usage


class Folding:
    """Folds what a model is sent. It takes the options of :class:`contexture.Folder`, or a folder."""

    def __init__(self, budget: Optional[int] = None, *, folder: Optional[Folder] = None, **options: Any) -> None:
        self.folder = folder if folder is not None else Folder(budget, format="messages", **options)
        """The folder of the conversation, for snapshots."""
        self._sent: Optional[Folded] = None

    def attach(self, agent: Agent) -> Agent:
        """Folds the requests of an agent from now on. Returns it."""
        agent.add_middleware(InvokeModelStage.Input, self.fold)
        agent.add_hook(self._bill, AfterModelCallEvent)
        return agent

    def fold(self, context: InvokeModelContext) -> InvokeModelContext:
        """What is sent to the model. The messages of the agent stay as they are."""
        came: list[Any] = list(context.messages)
        tools = [{"name": spec["name"], "input_schema": spec["inputSchema"]} for spec in context.tool_specs]
        system = context.system_prompt if isinstance(context.system_prompt, str) else json.dumps(context.system_prompt)
        name = context.model.get_config().get("model_id", "")
        wire = [{"role": one["role"], "content": [_block(block) for block in one["content"]]} for one in came]
        self._sent, shown = fold(self.folder, {"model": name, "system": system, "tools": tools, "messages": wire})
        return context.replace(messages=[came[one] if isinstance(one, int) else _made(one) for one in shown])

    def _bill(self, event: AfterModelCallEvent) -> None:
        """Tells the folder what was billed."""
        message: Any = event.stop_response.message if event.stop_response is not None else {}
        reported, sent = message.get("metadata", {}).get("usage"), self._sent
        if reported and sent is not None:
            self._sent = None
            cached = reported.get("cacheReadInputTokens")
            self.folder.usage(usage(reported["inputTokens"], reported["outputTokens"], cached), of=sent)


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block in Anthropic's format."""
    if "text" in block:
        return {"type": "text", "text": block["text"]}
    if "toolUse" in block:
        use = block["toolUse"]
        return {"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
    if "toolResult" in block:
        result = block["toolResult"]
        made = {"type": "tool_result", "tool_use_id": result["toolUseId"]}
        made["content"] = [_content(content) for content in result["content"]]
        return {**made, "is_error": True} if result.get("status") == "error" else made
    return _opaque(block)


def _content(content: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in content:
        return {"type": "text", "text": content["text"]}
    return {"type": "text", "text": json.dumps(content["json"])} if "json" in content else _opaque(content)


def _opaque(block: Any) -> dict[str, Any]:
    """What is no text: it is kept as it is, and only has to be recognised."""
    name = sha256(repr(block).encode()).hexdigest()
    return {"type": "image", "source": {"type": "file", "file_id": name}}


def _made(message: Mapping[str, Any]) -> Any:
    """A message that was made, or of which something was left out."""
    blocks = message["content"]
    if isinstance(blocks, str):
        return {"role": message["role"], "content": [{"text": blocks}]}
    return {"role": message["role"], "content": [_unblocked(block) for block in blocks]}


def _unblocked(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "tool_use":
        return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
    if block["type"] == "tool_result":
        content = block["content"]
        texts = [{"text": content}] if isinstance(content, str) else [{"text": one["text"]} for one in content]
        status = "error" if block.get("is_error") else "success"
        return {"toolResult": {"toolUseId": block["tool_use_id"], "content": texts, "status": status}}
    return {"text": block["text"]}
