"""Adapters, each with the real framework, a scripted model, real calls of tools, and folds."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from typing import Any

import pytest

import contexture
import work
from provider import Provider

BUDGET = 20_000
MODULES = 16


def needs(name: str) -> pytest.MarkDecorator:
    """A framework that is not installed is named in the report."""
    try:
        is_there = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        is_there = False
    return pytest.mark.skipif(not is_there, reason=f"{name} is not installed")


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


@pytest.fixture
def reading(provider: Provider) -> Provider:
    provider.script = Reading()
    return provider


def check(provider: Provider, requests: int = MODULES + 1) -> None:
    """What was sent is accepted by the provider, within the budget, and folded."""
    assert provider.refusals == []
    assert len(provider.bodies) == requests
    assert max(map(len, provider.bodies)) / 4 < BUDGET * 1.2
    # About 80000 tokens were read.
    assert b"Read all modules" in provider.bodies[-1] and b"src/m_0.py" in provider.bodies[-1]


@needs("langchain")
@pytest.mark.parametrize("how", ["plain", "streamed", "async"])
def test_langchain(reading: Provider, how: str) -> None:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    from contexture.adapters.langchain import FoldingMiddleware

    model = ChatOpenAI(model="gpt-5", base_url=reading.url, api_key="k", streaming=how == "streamed")  # type: ignore[arg-type]
    folding = FoldingMiddleware(budget=BUDGET)
    agent = create_agent(model, [read_file], system_prompt="Be careful.", middleware=[folding])
    asked: Any = {"messages": [{"role": "user", "content": "Read all modules."}]}
    config: Any = {"configurable": {"thread_id": "one"}, "recursion_limit": 100}
    if how == "async":
        state = asyncio.run(agent.ainvoke(asked, config))
    else:
        state = agent.invoke(asked, config)
    check(reading)
    assert state["messages"][-1].content == "all are read"
    assert len(state["messages"]) == 2 + 2 * MODULES, "the state keeps everything"
    assert json.loads(reading.bodies[-1])["messages"][0] == {"role": "system", "content": "Be careful."}


@needs("langgraph")
@pytest.mark.parametrize("how", ["plain", "streamed"])
def test_langgraph(reading: Provider, how: str) -> None:
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    from contexture.adapters.langchain import pre_model_hook

    model = ChatOpenAI(model="gpt-5", base_url=reading.url, api_key="k", streaming=how == "streamed")  # type: ignore[arg-type]
    agent = create_react_agent(model, [read_file], pre_model_hook=pre_model_hook(budget=BUDGET))
    asked: Any = {"messages": [{"role": "user", "content": "Read all modules."}]}
    config: Any = {"configurable": {"thread_id": "one"}, "recursion_limit": 100}
    if how == "streamed":
        *_, state = agent.stream(asked, config, stream_mode="values")
    else:
        state = agent.invoke(asked, config)
    check(reading)
    assert len(state["messages"]) == 2 + 2 * MODULES


@needs("agents")
@pytest.mark.parametrize("how", ["responses", "chat", "streamed"])
def test_openai_agents(reading: Provider, how: str) -> None:
    import openai
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession
    from agents import function_tool

    from contexture.adapters.openai_agents import Folding

    async def main() -> tuple[str, int]:
        client = openai.AsyncOpenAI(base_url=reading.url, api_key="k")
        kind: Any = OpenAIChatCompletionsModel if how == "chat" else OpenAIResponsesModel
        agent: Any = Agent(
            "reader", instructions="Be careful.", tools=[function_tool(read_file)], model=kind("gpt-5", client)
        )
        folding, session = Folding(budget=BUDGET), SQLiteSession("one")
        config = RunConfig(call_model_input_filter=folding.filter, tracing_disabled=True)
        options: Any = {"session": session, "hooks": folding, "run_config": config, "max_turns": 50}
        if how == "streamed":
            streamed = Runner.run_streamed(agent, "Read all modules.", **options)
            async for _ in streamed.stream_events():
                pass
            output = streamed.final_output
        else:
            output = (await Runner.run(agent, "Read all modules.", **options)).final_output
        return output, len(await session.get_items())

    output, kept = asyncio.run(main())
    check(reading)
    assert output == "all are read" and kept == 2 + 2 * MODULES


@needs("pydantic_ai")
@pytest.mark.parametrize("how", ["plain", "streamed"])
def test_pydantic_ai(reading: Provider, how: str) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    from contexture.adapters.pydantic_ai import Folding

    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=reading.url, api_key="k"))
    agent = Agent(model, instructions="Be careful.", tools=[read_file], capabilities=[Folding(budget=BUDGET)])

    async def main() -> tuple[str, int]:
        limits = UsageLimits(request_limit=100)
        if how == "plain":
            result = await agent.run("Read all modules.", usage_limits=limits)
            return result.output, len(result.all_messages())
        async with agent.run_stream("Read all modules.", usage_limits=limits) as streamed:
            return await streamed.get_output(), len(streamed.all_messages())

    output, kept = asyncio.run(main())
    check(reading)
    assert output == "all are read" and kept == 2 + 2 * MODULES
    assert b"Be careful." in reading.bodies[-1]


@needs("strands")
def test_strands(reading: Provider) -> None:
    import strands
    from strands import Agent
    from strands.agent.conversation_manager import NullConversationManager
    from strands.models.openai import OpenAIModel

    from contexture.adapters.strands import Folding

    model = OpenAIModel(client_args={"base_url": reading.url, "api_key": "k"}, model_id="gpt-5")
    tools: Any = [strands.tool(read_file)]
    agent = Agent(
        model=model,
        tools=tools,
        system_prompt="Be careful.",
        conversation_manager=NullConversationManager(),
        callback_handler=None,
    )
    result = Folding(budget=BUDGET).attach(agent)("Read all modules.")
    check(reading)
    assert "all are read" in str(result)
    assert len(agent.messages) == 2 + 2 * MODULES, "the agent keeps everything"


@needs("google.adk")
@pytest.mark.parametrize("how", ["plain", "streamed"])
def test_google_adk(how: str) -> None:
    from typing import AsyncGenerator

    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from contexture.adapters.google_adk import FoldingPlugin

    sent: list[str] = []

    class Scripted(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            parts = [part for content in llm_request.contents for part in content.parts or []]
            calls = sum(part.function_call is not None for part in parts)
            assert calls == sum(part.function_response is not None for part in parts), "calls and responses are pairs"
            sent.append("".join(content.model_dump_json(exclude_none=True) for content in llm_request.contents))
            number = len(sent) - 1
            part = types.Part(text="all are read")
            if number < MODULES:
                part = types.Part(function_call=types.FunctionCall(name="read_file", args={"path": f"src/m_{number}.py"}))
            tokens = len(sent[-1]) // 4
            usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=tokens, candidates_token_count=5)
            content = types.Content(role="model", parts=[part])
            assert stream == (how == "streamed")
            if stream and part.text:
                for word in part.text.split():
                    yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=word)]), partial=True)
            yield LlmResponse(content=content, usage_metadata=usage)

    async def main() -> tuple[str, int]:
        agent = LlmAgent(name="reader", model=Scripted(model="gemini-3"), instruction="Be careful.", tools=[read_file])
        runner = InMemoryRunner(agent=agent, app_name="app", plugins=[FoldingPlugin(budget=BUDGET)])
        session = await runner.session_service.create_session(app_name="app", user_id="ann")
        asked = types.Content(role="user", parts=[types.Part(text="Read all modules.")])
        said = ""
        config = RunConfig(streaming_mode=StreamingMode.SSE if how == "streamed" else StreamingMode.NONE)
        async for event in runner.run_async(
            user_id="ann", session_id=session.id, new_message=asked, run_config=config
        ):
            if event.content and event.content.parts and event.content.parts[0].text:
                said = event.content.parts[0].text
        kept = await runner.session_service.get_session(app_name="app", user_id="ann", session_id=session.id)
        assert kept is not None
        return said, len(kept.events)

    said, kept = asyncio.run(main())
    assert said == "all are read" and kept == 2 + 2 * MODULES
    assert len(sent) == MODULES + 1 and max(map(len, sent)) / 4 < BUDGET * 1.2
    assert "Read all modules" in sent[-1] and "src/m_0.py" in sent[-1]


@pytest.mark.parametrize("how", ["chat", "responses", "messages"])
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_the_providers_own_clients(provider: Provider, how: str, is_async: bool, streams: bool) -> None:
    import anthropic
    import openai

    from contexture.adapters.clients import AsyncFoldingTransport, FoldingTransport

    transport = AsyncFoldingTransport(budget=BUDGET) if is_async else FoldingTransport(budget=BUDGET)
    kinds: Any = {(False, False): openai.OpenAI, (False, True): openai.AsyncOpenAI}
    kinds |= {(True, False): anthropic.Anthropic, (True, True): anthropic.AsyncAnthropic}
    web: Any = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
    address = provider.url[:-3] if how == "messages" else provider.url
    client = kinds[how == "messages", is_async](base_url=address, api_key="k", http_client=web(transport=transport))
    ask = client.chat.completions.create if how == "chat" else getattr(client, how).create

    def asked(turns: int) -> dict[str, Any]:
        if how == "messages":
            return {"model": "claude-opus-4-8", "max_tokens": 100, "messages": work.anthropic(turns), "stream": streams}
        if how == "responses":
            return {"model": "gpt-5", "input": work.responses(turns), "stream": streams}
        options = {"stream_options": {"include_usage": True}} if streams else {}
        return {"model": "gpt-5", "messages": work.chat(turns), "stream": streams, **options}

    async def main() -> None:
        for turns in range(1, MODULES):
            if is_async:
                answer = await ask(**asked(turns))
                if streams:
                    async for _ in answer:
                        pass
            else:
                answer = ask(**asked(turns))
                for _ in answer if streams else ():
                    pass
            with pytest.raises(contexture.InputError, match="no request"):
                transport.folder.usage({"input_tokens": 5, "output_tokens": 5})

    asyncio.run(main())
    assert provider.refusals == [] and len(provider.bodies) == MODULES - 1
    assert max(map(len, provider.bodies)) / 4 < BUDGET * 1.2
    assert b"Read all modules" in provider.bodies[-1]


def test_a_fold_that_a_provider_refuses_is_sent_as_it_was(provider: Provider) -> None:
    import openai

    from contexture.adapters.clients import FoldingTransport

    transport = FoldingTransport(budget=BUDGET)
    client = openai.OpenAI(
        base_url=provider.url, api_key="k", max_retries=0, http_client=openai.DefaultHttpxClient(transport=transport)
    )
    provider.refuses = lambda body: "too short" if len(json.dumps(body)) < 100_000 else None
    for turns in (12, 13):
        messages: Any = work.chat(turns)
        client.chat.completions.create(model="gpt-5", messages=messages)
    folded, original, after = (json.loads(body)["messages"] for body in provider.bodies)
    assert folded != original and original == work.chat(12) and after == work.chat(13)


def test_options_that_cannot_be_used_are_said_when_an_adapter_is_made() -> None:
    from contexture.adapters._positions import Folders

    with pytest.raises(contexture.InputError):
        Folders(budget=0)
    folders = Folders(budget=BUDGET)
    assert folders.of("one") is folders.of("one") and folders.of("one") is not folders.of("two")
    assert folders.of(None) is folders.of("")
    first = folders.of("one")
    for number in range(100):
        folders.of(str(number))
    assert folders.of("one") is not first, "those that were not used for long are let go"
