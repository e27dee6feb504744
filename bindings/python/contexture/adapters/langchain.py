"""LangChain and LangGraph: a middleware for ``create_agent``, and a hook for ``create_react_agent``.

::

    agent = create_agent(model, tools, middleware=[FoldingMiddleware(budget=64_000)])

The state keeps all messages; only what is sent to the model is folded. Conversations are told apart by ``thread_id``.
"""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Optional

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from .._folder import Folded, Folder
from ._positions import Folders, fold, usage


class FoldingMiddleware(AgentMiddleware):
    """Folds what a model is sent. It takes the options of :class:`contexture.Folder`."""

    def __init__(self, budget: Optional[int] = None, **options: Any) -> None:
        super().__init__()
        self._folders = Folders(budget=budget, format="chat", **options)

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> Any:
        """Sends what the folder returns for the request, and tells it what was billed."""
        folder, folded, request = self._folded(request)
        response = handler(request)
        _bill(folder, folded, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> Any:
        """The same for asynchronous agents."""
        folder, folded, request = self._folded(request)
        response = await handler(request)
        _bill(folder, folded, response)
        return response

    def _folded(self, request: ModelRequest) -> tuple[Folder, Folded, ModelRequest]:
        folder = self._folders.of(_thread())
        system = [request.system_message] if request.system_message is not None else []
        tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
        folded, messages = _fold(folder, [*system, *request.messages], _name(request.model), tools)
        # Instructions at the start are never changed.
        return folder, folded, request.override(messages=messages[len(system) :])


def pre_model_hook(budget: Optional[int] = None, **options: Any) -> Callable[[Any], dict[str, Any]]:
    """A hook for ``create_react_agent(pre_model_hook=…)``, which changes what is sent and not the state."""
    folders = Folders(budget=budget, format="chat", **options)
    sent: dict[int, Folded] = {}

    def hook(state: Any) -> dict[str, Any]:
        came: list[AnyMessage] = state["messages"] if isinstance(state, dict) else state.messages
        folder = folders.of(_thread())
        last = next((message for message in reversed(came) if isinstance(message, AIMessage)), None)
        before = sent.pop(id(folder), None)
        if before is not None and last is not None:
            # What was billed for the request before is in its response.
            _bill(folder, before, last)
        sent[id(folder)], messages = _fold(folder, came, "", [])
        return {"llm_input_messages": messages}

    return hook


def _fold(folder: Folder, came: list[Any], model: str, tools: list[Any]) -> tuple[Folded, list[AnyMessage]]:
    wire: Any = [_plain(message) for message in came]
    folded, shown = fold(folder, {"model": model, "messages": wire, "tools": tools})
    messages: list[Any] = [came[one] if isinstance(one, int) else convert_to_messages([dict(one)])[0] for one in shown]
    return folded, messages


def _plain(message: BaseMessage) -> Any:
    return convert_to_openai_messages(message)


def _name(model: Any) -> str:
    return getattr(model, "model_name", None) or getattr(model, "model", None) or ""


def _thread() -> Optional[str]:
    try:
        thread = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
    return None if thread is None else str(thread)


def _bill(folder: Folder, folded: Folded, response: Any) -> None:
    messages = getattr(response, "result", None) or [response]
    reported = next((one.usage_metadata for one in messages if getattr(one, "usage_metadata", None)), None)
    if reported is not None:
        cached = (reported.get("input_token_details") or {}).get("cache_read")
        folder.usage(usage(reported["input_tokens"], reported["output_tokens"], cached), of=folded)
