"""Transports: what is sent by the providers' clients, after a restart, and when a provider refuses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

import contexture
import work
from provider import Provider

BUDGET = 20_000
MODULES = 16


def ask(provider: Provider, transport: Any, messages: Any) -> None:
    with openai.DefaultHttpxClient(transport=transport) as web:
        client = openai.OpenAI(base_url=provider.url, api_key="k", max_retries=0, http_client=web)
        client.chat.completions.create(model="gpt-5", messages=messages)


def sent(provider: Provider) -> list[Any]:
    return [json.loads(body)["messages"] for body in provider.bodies]


@pytest.mark.parametrize("how", ["chat", "responses", "messages"])
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_the_providers_own_clients(
    provider: Provider, how: str, is_async: bool, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bills: list[Any] = []
    usage = contexture.Folder.usage
    monkeypatch.setattr(contexture.Folder, "usage", lambda *given, **more: bills.append(usage(*given, **more)))
    kinds: Any = {(False, False): openai.OpenAI, (False, True): openai.AsyncOpenAI}
    kinds |= {(True, False): anthropic.Anthropic, (True, True): anthropic.AsyncAnthropic}
    company: Any = anthropic if how == "messages" else openai
    web: Any = company.DefaultAsyncHttpxClient if is_async else company.DefaultHttpxClient
    transport = (contexture.AsyncFoldingTransport if is_async else contexture.FoldingTransport)(budget=BUDGET)
    address = provider.url[:-3] if how == "messages" else provider.url
    client = kinds[how == "messages", is_async](base_url=address, api_key="k", http_client=web(transport=transport))
    place = client.chat.completions if how == "chat" else getattr(client, how)

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
                answer = await place.create(**asked(turns))
                if streams:
                    async for _ in answer:
                        pass
            else:
                for _ in place.create(**asked(turns)) if streams else (place.create(**asked(turns)),):
                    pass

    asyncio.run(main())
    assert provider.refusals == [] and len(provider.bodies) == MODULES - 1
    assert max(map(len, provider.bodies)) / 4 < BUDGET * 1.2
    assert b"Read all modules" in provider.bodies[-1]
    assert len(bills) == MODULES - 1, "what was billed is told, for each request"


@pytest.mark.parametrize("path", ["generateContent", "streamGenerateContent?alt=sse"])
@pytest.mark.parametrize("web", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_paths_of_gemini(provider: Provider, path: str, web: Any) -> None:
    with web.Client(transport=contexture.FoldingTransport(budget=BUDGET)) as client:
        for turns in range(1, MODULES):
            address = provider.url.replace("/v1", f"/v1beta/models/gemini-3:{path}")
            client.post(address, json={"contents": work.gemini(turns)}).raise_for_status()
    assert provider.refusals == [] and len(provider.bodies) == MODULES - 1
    assert max(map(len, provider.bodies)) / 4 < BUDGET * 1.2
    assert b"Read all modules" in provider.bodies[-1] and b"src/m0.py" in provider.bodies[-1]


def test_a_program_that_was_ended_goes_on_with_the_same_bytes(provider: Provider, tmp_path: Path) -> None:
    first = contexture.FoldingTransport(budget=BUDGET, store=tmp_path / "store")
    other = [work.chat(1)[0], {"role": "user", "content": "Something else."}]
    for turns in range(1, MODULES):
        ask(provider, first, work.chat(turns))
        ask(provider, first, other)
    again = contexture.FoldingTransport(budget=BUDGET, store=tmp_path / "store")
    ask(provider, again, work.chat(MODULES - 1))
    ask(provider, contexture.FoldingTransport(budget=BUDGET), work.chat(MODULES - 1))
    *_, before, _, after, anew = sent(provider)
    assert before == after and anew != before
    assert len(list((tmp_path / "store").iterdir())) == 1, "what was never folded is not kept"


def test_a_store_that_cannot_be_used_is_said(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(contexture.StoreError, match="open the store"):
        contexture.FoldingTransport(budget=BUDGET, store=tmp_path / "file")
    store = tmp_path / "store"
    ask(provider, contexture.FoldingTransport(budget=BUDGET, store=store), work.chat(12))
    (kept,) = store.iterdir()
    kept.write_text("{")
    with pytest.warns(UserWarning, match="go on from"):
        ask(provider, contexture.FoldingTransport(budget=BUDGET, store=store), work.chat(12))
    assert provider.refusals == [] and provider.bodies[0] == provider.bodies[1]


def test_a_fold_that_a_provider_refuses_is_sent_as_it_was(provider: Provider, tmp_path: Path) -> None:
    transport = contexture.FoldingTransport(budget=BUDGET, store=tmp_path)
    provider.refuses = lambda body: "too short" if len(json.dumps(body)) < 100_000 else None
    for turns in (12, 13):
        ask(provider, transport, work.chat(turns))
    # Also in the process after this one.
    ask(provider, contexture.FoldingTransport(budget=BUDGET, store=tmp_path), work.chat(14))
    accepted = [body for body in sent(provider) if len(json.dumps(body)) >= 100_000]
    assert accepted == [work.chat(12), work.chat(13), work.chat(14)]
    assert 1 <= len(provider.refusals) <= 3


def test_thoughts_are_kept_as_they_are_or_not_at_all(provider: Provider) -> None:
    client = anthropic.Anthropic(
        base_url=provider.url[:-3],
        api_key="k",
        http_client=anthropic.DefaultHttpxClient(transport=contexture.FoldingTransport(budget=BUDGET)),
    )
    messages: Any = work.anthropic(MODULES)
    thoughts = [
        {"type": "thinking", "thinking": f"The next one is {number}.", "signature": f"signed-{number}"}
        for number in range(MODULES)
    ]
    for thought, message in zip(thoughts, messages[1::2]):
        message["content"].insert(0, thought)
    for turns in range(1, MODULES):
        client.messages.create(model="claude-opus-4-8", max_tokens=100, messages=messages[: 1 + 2 * turns])
    assert provider.refusals == []
    for body in sent(provider):
        blocks = [block for message in body if isinstance(message["content"], list) for block in message["content"]]
        assert all(block in thoughts for block in blocks if block["type"] == "thinking")
        said = [block["text"] for block in blocks if block["type"] == "text"]
        said += [message["content"] for message in body if isinstance(message["content"], str)]
        assert not any("The next one is" in text for text in said), "no thought is said aloud"
    assert len(provider.bodies[-1]) / 4 < BUDGET * 1.2


def test_what_is_no_conversation_passes(provider: Provider) -> None:
    with httpx2.Client(transport=contexture.FoldingTransport(budget=BUDGET)) as client:
        for path, body in (("/embeddings", b"{}"), ("/chat/completions", b'{"messages":[]}'), ("/responses", b'{"input":[]}')):
            client.post(provider.url + path, content=body)
        for body in (b"[]", b'{"messages":5}', b'{"messages":[5]}', b'{"messages":[{"content":7}]}'):
            client.post(provider.url + "/unknown/messages", content=body)
    assert provider.bodies[:3] == [b"{}", b'{"messages":[]}', b'{"input":[]}'] and len(provider.bodies) == 7


def test_what_goes_wrong_inside_ends_no_agent(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    from contexture._conversations import Conversations

    def broken(*_: Any) -> Any:
        raise RuntimeError("no room")

    monkeypatch.setattr(Conversations, "_of", broken)
    with pytest.warns(UserWarning, match="a request is sent as it is: no room"):
        ask(provider, contexture.FoldingTransport(budget=BUDGET), work.chat(1))
    assert sent(provider) == [work.chat(1)]


def test_options_that_cannot_be_used_are_said_when_a_transport_is_made() -> None:
    for kind in (contexture.FoldingTransport, contexture.AsyncFoldingTransport):
        with pytest.raises(contexture.InputError):
            kind(budget=0)
        with pytest.raises(TypeError):
            kind(bugdet=5)  # type: ignore[call-arg]


def test_conversations_that_were_not_used_for_long_are_freed(tmp_path: Path) -> None:
    from contexture._conversations import MOST_FOLDERS, Conversations

    conversations = Conversations(BUDGET, None, {})

    def of(text: str) -> Any:
        body = json.dumps({"messages": [{"role": "system", "content": text * 2}, {"role": "user", "content": text}]})
        found = conversations.fold("/v1/chat/completions", body.encode())
        assert found is not None
        return found.conversation

    first = of("one")
    assert of("one") is first and of("two") is not first
    for number in range(MOST_FOLDERS):
        of(str(number))
    assert of("one") is not first
