"""The fold in process."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import threading
import time
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import contexture
import work
from provider import Provider

BUDGET = 20_000


def request(form: str, turns: int) -> dict[str, Any]:
    if form == "anthropic":
        return {"model": "claude-opus-4-8", "max_tokens": 100, "messages": work.anthropic(turns)}
    if form == "responses":
        return {"model": "gpt-5", "input": work.responses(turns)}
    return {"model": "gpt-5", "messages": work.chat(turns)}


def plain(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


FORMS = ["chat", "anthropic", "responses"]


@pytest.mark.parametrize("form", FORMS)
def test_bytes_text_and_dictionaries_give_the_same(form: str) -> None:
    folders = [contexture.Folder(budget=BUDGET) for _ in range(3)]
    changed = 0
    for turns in range(1, 16):
        body = request(form, turns)
        forms: list[Any] = [plain(body), plain(body).decode(), body]
        folded = [folder.request(given) for folder, given in zip(folders, forms)]
        assert folded[0].body == folded[1].body == folded[2].body
        assert folded[0].json() == folded[2].json()
        assert folded[0].sent_tokens <= BUDGET
        changed += folded[0].is_changed
        if not folded[0].is_changed:
            assert folded[0].body == forms[0] and folded[2].json() is body
    assert changed > 3


@pytest.mark.parametrize("form", FORMS)
def test_the_decisions_are_data_and_the_rest_of_a_request_stays(form: str) -> None:
    folder = contexture.Folder(budget=BUDGET)
    decided: list[contexture.Decision] = []
    for turns in range(1, 16):
        body = {**request(form, turns), "metadata": {"kept": [1.0, 1e3, "ü"]}, "temperature": 0.10}
        folded = folder.request(plain(body))
        decided += folded.decisions
        sent = folded.json()
        assert sent["metadata"] == body["metadata"] and sent["model"] == body["model"]
        assert folded.messages == sent["input" if form == "responses" else "messages"]
    folds = [decision for decision in decided if decision.what == "fold"]
    assert folds and all(fold.before_tokens > fold.after_tokens and fold.reason for fold in folds)
    assert folder.request(plain(body)).passed is not None, "a repetition makes no new decisions"


def test_the_providers_own_clients_are_used_with_it(provider: Provider) -> None:
    with contexture.Folder(budget=BUDGET) as chat, contexture.Folder(budget=BUDGET) as messages:
        with openai.OpenAI(base_url=provider.url, api_key="k") as client:
            for turns in range(1, 16):
                answer = client.chat.completions.create(**chat.request(request("chat", turns)).json())
                assert chat.usage(answer.usage)["sent"] > 0
                answer = client.responses.create(model="gpt-5", input="hello")
        with anthropic.Anthropic(base_url=provider.url[:-3], api_key="k") as other:
            for turns in range(1, 16):
                folded = messages.request(request("anthropic", turns))
                assert messages.usage(other.messages.create(**folded.json()), of=folded)["sent"] > 0
    assert provider.refusals == []
    assert max(len(body) for body in provider.bodies) / 4 < BUDGET * 1.2


@pytest.mark.parametrize("form", FORMS)
def test_a_restored_folder_goes_on_with_the_same_bytes(form: str) -> None:
    whole, restored = contexture.Folder(budget=BUDGET), contexture.Folder(budget=BUDGET)
    for turns in range(1, 16):
        body = plain(request(form, turns))
        snapshot = restored.snapshot()
        restored.close()
        restored = contexture.Folder.restore(snapshot, budget=BUDGET)
        expected, folded = whole.request(body), restored.request(body)
        assert folded.body == expected.body
        usage = {"input_tokens": len(folded.body) // 4, "output_tokens": 5, "total_tokens": len(folded.body) // 4 + 5}
        whole.usage(usage), restored.usage(usage)


def test_a_folder_does_not_share_what_it_knows_with_another() -> None:
    one = contexture.Folder(budget=BUDGET)
    for turns in range(1, 16):
        one.request(request("chat", turns))
    other = contexture.Folder(budget=200_000)
    assert not other.request(request("chat", 15)).is_changed


def test_what_is_no_request_is_an_exception_that_says_what_was_expected() -> None:
    folder = contexture.Folder(budget=BUDGET)
    for wrong in [b"", b"hello", b"5", b"[]", b"{}", b'{"messages":5}', b"\xff\xfe", "", {}, {"messages": "hello"}]:
        with pytest.raises(contexture.InputError) as failed:
            folder.request(wrong)
        assert failed.value.sentence and "OpenAI" in (failed.value.hint or ""), wrong
    for of_another_type in [None, 5, 5.0, ["messages"], object(), [{"role": "user"}]]:
        with pytest.raises(TypeError):
            folder.request(of_another_type)  # type: ignore[arg-type]
    circle: dict[str, Any] = {"messages": []}
    circle["messages"].append(circle)
    for unwritable in (circle, {"messages": [float("nan")]}, {"messages": [{1, 2}]}, {(1, 2): []}):
        with pytest.raises((contexture.InputError, TypeError)):
            folder.request(unwritable)  # type: ignore[arg-type]
    with pytest.raises((contexture.InputError, UnicodeError)):
        folder.request('{"messages":["\ud800"]}')
    assert not folder.request(request("chat", 1)).is_changed, "nothing is lost"


def test_usage_that_is_none_or_of_no_request_is_an_exception() -> None:
    folder = contexture.Folder(budget=BUDGET)
    with pytest.raises(contexture.InputError, match="no request"):
        folder.usage({"input_tokens": 5, "output_tokens": 1})
    folded = folder.request(request("chat", 1))
    for wrong in ({}, {"tokens": 5}, b"", "", b"\xff", {"usage": None}):
        with pytest.raises(contexture.InputError, match="usage"):
            folder.usage(wrong)
    for of_another_type in (None, 5, []):
        with pytest.raises(TypeError):
            folder.usage(of_another_type)
    folder.usage({"usage": {"prompt_tokens": 50, "completion_tokens": 1}}, of=folded)
    with pytest.raises(contexture.InputError, match="no request"):
        folder.usage({"prompt_tokens": 50}, of=folded)


def test_options_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    for budget in (0, -1, 3_999, 2**70):
        with pytest.raises(contexture.InputError, match=f"a budget of {budget} tokens"):
            contexture.Folder(budget=budget)
    wrong: list[dict[str, Any]] = [{"budget": "64k"}, {"budget": True}, {"budget": 5.5}, {"base_dir": 5}]
    wrong += [{"prices": 5}, {"prices": [5]}, {"policy": "plan"}, {"policy": ["plan"]}]
    for options in wrong:
        with pytest.raises(TypeError):
            contexture.Folder(**options)
    wrong = [
        {"prices": {"input": -1}},
        {"prices": {"inptu": 1}},
        {"prices": {"input": float("nan")}},
        {"policy": {"tool": ["Read"]}},
        {"policy": {"tools": "Read"}},
        {"base_dir": tmp_path / "nowhere"},
        {"format": "telegram"},
    ]
    for options in wrong:
        with pytest.raises(contexture.InputError):
            contexture.Folder(budget=BUDGET, **options)


def test_a_closed_folder_says_so(tmp_path: Path) -> None:
    folder = contexture.Folder(budget=BUDGET)
    folder.close()
    folder.close()
    for use in (lambda: folder.request(b"{}"), lambda: folder.usage({}), folder.snapshot, folder.refused):
        with pytest.raises(contexture.ClosedError, match="closed"):
            use()


def test_what_is_no_snapshot_is_refused() -> None:
    folder = contexture.Folder(budget=BUDGET)
    folder.request(request("chat", 3))
    whole = folder.snapshot()
    for wrong in ("", "{}", "5", whole[:-1], '{"contexture_folder":99,"conversations":[]}'):
        with pytest.raises(contexture.InputError):
            contexture.Folder.restore(wrong, budget=BUDGET)
    with pytest.raises(TypeError):
        contexture.Folder.restore(whole.encode(), budget=BUDGET)  # type: ignore[arg-type]


def test_prices_and_pins_are_heeded() -> None:
    plan = "First read, then think. " * 40

    def sent(**options: Any) -> bytes:
        folder = contexture.Folder(**options)
        for turns in range(1, 16):
            body = request("chat", turns)
            call = {"id": "call_plan", "type": "function", "function": {"name": "plan", "arguments": "{}"}}
            body["messages"][2:2] = [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_plan", "content": plan},
            ]
            folded = folder.request(body)
        return folded.body

    # The newest call of a tool stays, and its output in one line, unless it is pinned.
    assert plan.encode() not in sent(budget=BUDGET)
    assert plan.encode() in sent(budget=BUDGET, policy={"tools": ["plan"]})
    # A small window is a small budget.
    assert len(sent(prices={"context": 24_000})) < len(sent())


def test_files_are_read_beneath_the_base_directory_only(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "notes.md").write_text("the word is marmalade\n")
    (tmp_path / "secret.md").write_text("the word is plum\n")
    (base / "link.md").symlink_to(tmp_path / "secret.md")
    text = "See #notes.md and #../secret.md and #link.md"
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": text}]}
    folded = contexture.Folder(budget=BUDGET, base_dir=base).request(body)
    assert b"marmalade" in folded.body and b"plum" not in folded.body
    assert not contexture.Folder(budget=BUDGET).request(body).is_changed
    found = contexture.references(text, base)
    assert [one.text for one in found] == ["the word is marmalade\n", None, None]
    assert [text[one.start : one.end] for one in found] == ["#notes.md", "#../secret.md", "#link.md"]
    assert found[0].problem is None and found[1].problem and found[2].problem
    assert contexture.references("ü #notes.md:1-1")[0].lines == (1, 1)
    assert contexture.references("ü #notes.md")[0].start == 2
    with pytest.raises(contexture.InputError):
        contexture.references("#a.md", tmp_path / "nowhere")
    with pytest.raises(TypeError):
        contexture.references(b"#a.md")  # type: ignore[arg-type]


def test_tokens_are_counted() -> None:
    assert contexture.count_tokens("The quick brown fox jumps over the lazy dog.") == 10
    assert contexture.count_tokens("a" * 400, counter="estimate") == 100
    assert contexture.count_tokens("") == 0
    with pytest.raises(contexture.InputError, match="counter"):
        contexture.count_tokens("a", counter="words")  # type: ignore[arg-type]


def test_other_threads_run_while_a_folder_works() -> None:
    body = plain(request("chat", 40))
    ticks, is_over = [0], threading.Event()

    def tick() -> None:
        while not is_over.is_set():
            ticks[0] += 1
            time.sleep(0)

    ticking = threading.Thread(target=tick)
    ticking.start()
    # One call that works for long; with the interpreter's lock nothing else would run meanwhile.
    folder = contexture.Folder(budget=8_000)
    before = ticks[0]
    folder.request(body)
    after = ticks[0]
    is_over.set()
    ticking.join()
    assert after > before + 1


def test_many_threads_use_one_folder_and_many() -> None:
    shared = contexture.Folder(budget=BUDGET)
    bodies = [plain(request("chat", turns)) for turns in range(1, 12)]
    expected = [shared.request(body).body for body in bodies]
    wrong: list[Any] = []

    def use() -> None:
        try:
            own = contexture.Folder(budget=BUDGET)
            for body, sent in zip(bodies, expected):
                if own.request(body).body != sent or shared.request(bodies[-1]).body != expected[-1]:
                    wrong.append("differs")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_closing_while_others_use_it_ends_nothing_badly() -> None:
    folder = contexture.Folder(budget=BUDGET)
    bodies = [plain(request("chat", turns)) for turns in range(1, 12)]
    seen: list[Any] = []

    def use() -> None:
        try:
            for body in bodies:
                folder.request(body)
        except contexture.ClosedError:
            pass
        except BaseException as error:
            seen.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    folder.close()
    for thread in threads:
        thread.join()
    assert seen == []


def test_async_programs_fold_without_blocking() -> None:
    async def fold() -> bytes:
        folder = contexture.Folder(budget=BUDGET)
        for turns in range(1, 12):
            folded = await folder.arequest(request("chat", turns))
        return folded.body

    async def both() -> list[bytes]:
        return await asyncio.gather(fold(), fold())

    one, two = asyncio.run(both())
    assert one == two


def test_memory_is_freed() -> None:
    bodies = [plain(request("chat", turns)) for turns in range(1, 12)]

    def fold(count: int) -> None:
        for _ in range(count):
            folder = contexture.Folder(budget=BUDGET)
            for body in bodies:
                folder.request(body)
        gc.collect()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    fold(5)
    before = resident()
    fold(25)
    # 25 folders that stay would hold more than 25 times the last request.
    assert resident() - before < 20 * len(bodies[-1])
