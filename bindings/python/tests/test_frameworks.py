"""Frameworks, each by base URL and by transport, with a scripted model, real calls of tools, and folds."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

import contexture
import work
from provider import Provider

BUDGET = 20_000
MODULES = 16
TASK = "Read all modules."
KEPT = 2 + 2 * MODULES


class Door:
    """Where a framework sends its requests, and by which transports; with a base URL only, these are the usual ones."""

    def __init__(self, url: str, gemini: str, options: Optional[dict[str, Any]]) -> None:
        self.url = url
        self.gemini = gemini
        self.options = options

    def plain(self, client: Callable[..., Any]) -> Any:
        """A client for requests that wait."""
        return None if self.options is None else client(transport=contexture.FoldingTransport(**self.options))

    def awaited(self, client: Callable[..., Any]) -> Any:
        """A client for requests that are awaited."""
        return None if self.options is None else client(transport=contexture.AsyncFoldingTransport(**self.options))


class Reading:
    """A model that reads one module after the other, and then says so."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, body: dict[str, Any]) -> Any:
        number, self.asked = self.asked, self.asked + 1
        return "all are read" if number >= MODULES else [(f"call_{number}", "read_file", {"path": f"src/m_{number}.py"})]


def read_file(path: str) -> str:
    """Returns the text of a file."""
    return work.file_text(int(path.split("_")[1].split(".")[0]))


def langchain(door: Door, streams: bool) -> tuple[str, int]:
    import openai
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    web, awaited = door.plain(openai.DefaultHttpxClient), door.awaited(openai.DefaultAsyncHttpxClient)
    address: Any = {"base_url": door.url, "api_key": "k", "http_client": web, "http_async_client": awaited}
    model = ChatOpenAI(model="gpt-5", streaming=streams, **address)
    agent = create_agent(model, [read_file], system_prompt="Be careful.")
    asked: Any = {"messages": [{"role": "user", "content": TASK}]}
    config: Any = {"recursion_limit": 100}
    state = asyncio.run(agent.ainvoke(asked, config)) if streams else agent.invoke(asked, config)
    return str(state["messages"][-1].content), len(state["messages"])


def langgraph(door: Door, streams: bool) -> tuple[str, int]:
    import openai
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    address: Any = {"base_url": door.url, "api_key": "k", "http_client": door.plain(openai.DefaultHttpxClient)}
    agent = create_react_agent(ChatOpenAI(model="gpt-5", streaming=streams, **address), [read_file])
    asked: Any = {"messages": [{"role": "user", "content": TASK}]}
    *_, state = agent.stream(asked, {"recursion_limit": 100}, stream_mode="values")
    return str(state["messages"][-1].content), len(state["messages"])


def openai_agents(door: Door, streams: bool) -> tuple[str, int]:
    import openai
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession
    from agents import function_tool

    async def main() -> tuple[str, int]:
        web = door.awaited(openai.DefaultAsyncHttpxClient)
        client = openai.AsyncOpenAI(base_url=door.url, api_key="k", http_client=web)
        kind: Any = OpenAIChatCompletionsModel if streams else OpenAIResponsesModel
        tools: Any = [function_tool(read_file)]
        agent: Any = Agent("reader", instructions="Be careful.", tools=tools, model=kind("gpt-5", client))
        session = SQLiteSession("one")
        options: Any = {"session": session, "run_config": RunConfig(tracing_disabled=True), "max_turns": 50}
        if streams:
            streamed = Runner.run_streamed(agent, TASK, **options)
            async for _ in streamed.stream_events():
                pass
            return str(streamed.final_output), len(await session.get_items())
        result = await Runner.run(agent, TASK, **options)
        return str(result.final_output), len(await session.get_items())

    return asyncio.run(main())


def pydantic_ai(door: Door, streams: bool) -> tuple[str, int]:
    import httpx2
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    async def main() -> tuple[str, int]:
        provider = OpenAIProvider(base_url=door.url, api_key="k", http_client=door.awaited(httpx2.AsyncClient))
        agent = Agent(OpenAIChatModel("gpt-5", provider=provider), instructions="Be careful.", tools=[read_file])
        limits = UsageLimits(request_limit=100)
        if not streams:
            result = await agent.run(TASK, usage_limits=limits)
            return result.output, len(result.all_messages())
        async with agent.run_stream(TASK, usage_limits=limits) as streamed:
            return await streamed.get_output(), len(streamed.all_messages())

    return asyncio.run(main())


def strands(door: Door, streams: bool) -> tuple[str, int]:
    import openai
    import strands
    from strands.agent.conversation_manager import NullConversationManager
    from strands.models.openai import OpenAIModel

    async def main() -> tuple[str, int]:
        web = door.awaited(openai.DefaultAsyncHttpxClient)
        client = openai.AsyncOpenAI(base_url=door.url, api_key="k", http_client=web)
        model = OpenAIModel(client=client, model_id="gpt-5")
        manager, tools = NullConversationManager(), [strands.tool(read_file)]
        more: Any = {"tools": tools, "system_prompt": "Be careful.", "conversation_manager": manager}
        agent = strands.Agent(model=model, callback_handler=None, **more)
        if not streams:
            return str(await agent.invoke_async(TASK)), len(agent.messages)
        said = ""
        async for event in agent.stream_async(TASK):
            said += event.get("data", "")
        return said, len(agent.messages)

    return asyncio.run(main())


def google_adk(door: Door, streams: bool) -> tuple[str, int]:
    import httpx
    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.models import Gemini
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    async def main() -> tuple[str, int]:
        web = types.HttpOptions(base_url=door.gemini, httpx_async_client=door.awaited(httpx.AsyncClient))
        model = Gemini(model="gemini-3", client_kwargs={"api_key": "k", "http_options": web})
        agent = LlmAgent(name="reader", model=model, instruction="Be careful.", tools=[read_file])
        runner = InMemoryRunner(agent=agent, app_name="app")
        session = await runner.session_service.create_session(app_name="app", user_id="ann")
        asked = types.Content(role="user", parts=[types.Part(text=TASK)])
        mode = RunConfig(streaming_mode=StreamingMode.SSE if streams else StreamingMode.NONE)
        said = ""
        async for event in runner.run_async(user_id="ann", session_id=session.id, new_message=asked, run_config=mode):
            if event.content and event.content.parts and event.content.parts[0].text:
                said = event.content.parts[0].text
        kept = await runner.session_service.get_session(app_name="app", user_id="ann", session_id=session.id)
        assert kept is not None
        return said, len(kept.events)

    return asyncio.run(main())


def google_genai(door: Door, streams: bool) -> tuple[str, int]:
    import httpx
    from google import genai
    from google.genai import types

    web = types.HttpOptions(base_url=door.gemini, httpx_client=door.plain(httpx.Client))
    automatic = types.AutomaticFunctionCallingConfig(maximum_remote_calls=50)
    config = types.GenerateContentConfig(tools=[read_file], automatic_function_calling=automatic)
    with genai.Client(api_key="k", http_options=web) as client:
        chat = client.chats.create(model="gemini-3", config=config)
        if streams:
            said = "".join(part.text or "" for part in chat.send_message_stream(TASK))
        else:
            said = chat.send_message(TASK).text or ""
        return said, len(chat.get_history())


FRAMEWORKS = {
    "google.adk": google_adk,
    "google.genai": google_genai,
    "langchain": langchain,
    "langgraph": langgraph,
    "agents": openai_agents,
    "pydantic_ai": pydantic_ai,
    "strands": strands,
}


def must_be_there(name: str) -> None:
    try:
        is_there = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        # It is named in the report.
        pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("door", ["base URL", "transport"])
def test_a_framework(provider: Provider, name: str, streams: bool, door: str) -> None:
    must_be_there(name)
    provider.script = Reading()
    if door == "transport":
        said, kept = FRAMEWORKS[name](Door(provider.url, provider.url[:-3], {"budget": BUDGET}), streams)
    else:
        with contexture.gateway(budget=BUDGET, upstream=provider.url) as g:
            said, kept = FRAMEWORKS[name](Door(g.openai, g.url, None), streams)
    assert "all are read" in said
    assert provider.refusals == [] and len(provider.bodies) == MODULES + 1
    # About 80000 tokens were read. A gateway that is late sends what is above its budget by up to a half.
    most = BUDGET * (1.2 if door == "transport" else 1.8)
    assert max(map(len, provider.bodies)) / 4 < most
    assert b"Read all modules" in provider.bodies[-1] and b"src/m_0.py" in provider.bodies[-1]
    # The framework keeps everything; some count the instructions as a message.
    assert kept in (KEPT, KEPT + 1)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_goes_on_after_restarts_and_a_refusal(
    provider: Provider, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from contexture._conversations import Conversations

    must_be_there(name)
    held = Conversations._of

    def in_another_process(self: Any, *given: Any) -> Any:
        self._held.clear()
        return held(self, *given)

    monkeypatch.setattr(Conversations, "_of", in_another_process)
    provider.script = Reading()
    provider.refuses = lambda _: "not in this form" if len(provider.bodies) == 10 and not provider.refusals else None
    options = {"budget": BUDGET, "store": tmp_path}
    said, kept = FRAMEWORKS[name](Door(provider.url, provider.url[:-3], options), False)
    assert "all are read" in said and kept in (KEPT, KEPT + 1)
    # It was folded when it was refused, and then sent as it was, of which the framework saw nothing.
    assert provider.refusals == ["not in this form"] and len(provider.bodies) == MODULES + 2
    refused, accepted = map(len, provider.bodies[9:11])
    assert refused / 4 < BUDGET * 1.2 < accepted / 4
    # What is necessary is folded all the same.
    assert max(map(len, provider.bodies[11:])) / 4 < BUDGET * 1.2
    assert len(list(tmp_path.iterdir())) == 1
