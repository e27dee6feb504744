"""The gateway as a context manager, with the clients that people use."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import contexture
import work
from provider import Provider

ANTHROPIC: dict[str, Any] = {"model": "claude-opus-4-8", "max_tokens": 100}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(is_so: Any) -> None:
    """Waits for what another process does; the test's own limit is far above what it takes."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_openai_and_anthropic_are_answered_and_the_receipt_counts_them(provider: Provider) -> None:
    with contexture.gateway(upstream=provider.url) as g:
        with openai.OpenAI(base_url=g.openai, api_key="sk-of-the-user") as client:
            answer = client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hello"}])
            assert answer.choices[0].message.content == "done"
            assert client.responses.create(model="gpt-5", input="hello").output_text == "done"
            with client.chat.completions.stream(model="gpt-5", messages=[{"role": "user", "content": "hello"}]) as stream:
                assert stream.get_final_completion().choices[0].message.content == "done"
        with anthropic.Anthropic(base_url=g.anthropic, api_key="sk-ant-of-the-user") as other:
            message = other.messages.create(**ANTHROPIC, messages=[{"role": "user", "content": "hello"}])
            assert message.content[0].type == "text" and message.content[0].text == "done"
            with other.messages.stream(**ANTHROPIC, messages=[{"role": "user", "content": "hello"}]) as streamed:
                assert streamed.get_final_text() == "done"
        with pytest.raises(contexture.ClosedError):
            g.receipt
    assert g.receipt.requests == 5 and g.receipt.failed == {} and g.receipt.output == 25
    assert provider.headers[0]["authorization"] == "Bearer sk-of-the-user"
    # The client sends it in one of two headers, by its version.
    sent = provider.headers[-1]
    assert "sk-ant-of-the-user" in (sent.get("x-api-key"), sent.get("authorization", "").removeprefix("Bearer "))
    assert g.receipt.raw["requests"] == 5 and "gpt-5" in g.receipt.raw["models"]


@pytest.mark.parametrize("form", ["chat", "anthropic", "responses"])
def test_a_long_conversation_is_folded_within_its_budget(provider: Provider, form: str) -> None:
    with contexture.gateway(upstream=provider.url, budget=20_000) as g:
        with openai.OpenAI(base_url=g.openai, api_key="k") as client, anthropic.Anthropic(
            base_url=g.anthropic, api_key="k"
        ) as other:
            for turns in range(1, 16):
                if form == "chat":
                    client.chat.completions.create(model="gpt-5", messages=work.chat(turns))  # type: ignore[arg-type]
                elif form == "responses":
                    client.responses.create(model="gpt-5", input=work.responses(turns))  # type: ignore[arg-type]
                else:
                    other.messages.create(**ANTHROPIC, messages=work.anthropic(turns))  # type: ignore[arg-type]
    assert g.receipt.folds and g.receipt.changed > 0 and g.receipt.failed == {}, g.receipt
    assert g.receipt.folds[0].before_tokens > g.receipt.folds[0].after_tokens
    assert provider.refusals == []
    # A decision that took too long, as on a busy machine, takes effect with a later request.
    is_late = any(why.startswith("deciding took too long") for why in g.receipt.passed)
    assert is_late or max(map(len, provider.bodies)) / 4 < 32_000
    assert g.receipt.sent < g.receipt.came


def test_observing_changes_nothing(provider: Provider) -> None:
    with contexture.gateway(upstream=provider.url, budget=20_000, observe=True) as g:
        with openai.OpenAI(base_url=g.openai, api_key="k") as client:
            for turns in range(1, 16):
                client.chat.completions.create(model="gpt-5", messages=work.chat(turns))  # type: ignore[arg-type]
    assert json.loads(provider.bodies[-1])["messages"] == work.chat(15)
    assert g.receipt.changed == 0 and g.receipt.raw["would_send"] < g.receipt.sent


def test_async_programs_use_it_without_blocking(provider: Provider) -> None:
    async def ask() -> contexture.Receipt:
        async with contexture.gateway(upstream=provider.url) as g:
            async with openai.AsyncOpenAI(base_url=g.openai, api_key="k") as client:
                asking = [
                    client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": f"say {n}"}])
                    for n in range(8)
                ]
                await asyncio.gather(*asking)
        return g.receipt

    assert asyncio.run(ask()).requests == 8


def test_the_gateway_ends_when_its_block_is_left_by_an_exception(provider: Provider) -> None:
    with pytest.raises(KeyError):
        with contexture.gateway(upstream=provider.url) as g:
            raise KeyError("of the program")
    assert g.receipt.requests == 0
    assert g._process is not None and g._process._child.returncode == 0


def test_an_exception_of_the_program_is_not_hidden_by_a_gateway_that_died(provider: Provider) -> None:
    with pytest.raises(KeyError):
        with contexture.gateway(upstream=provider.url) as g:
            assert g._process is not None
            g._process._child.kill()
            raise KeyError("of the program")
    with pytest.raises(contexture.GatewayError, match="ended on its own"):
        with contexture.gateway(upstream=provider.url) as g:
            assert g._process is not None
            g._process._child.kill()


def test_other_users_of_the_machine_cannot_use_it(provider: Provider) -> None:
    with contexture.gateway(upstream=provider.url) as g:
        without = "http://" + g.openai.split("/")[2] + "/openai/chat/completions"
        request = urllib.request.Request(without, data=b"{}", headers={"authorization": "Bearer sk-any"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        assert refused.value.code == 401
        secret = g.openai.split("/")[3]
        pid = g._process._child.pid  # type: ignore[union-attr]
        assert secret not in repr(g) and secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert g.receipt.refused == 1 and provider.bodies == []


def test_what_cannot_be_used_is_said_by_an_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for budget in (0, -1, 3_999):
        with pytest.raises(contexture.InputError, match=f"^a budget of {budget} tokens .* at least 4000$"):
            contexture.gateway(budget=budget)
    with pytest.raises(ValueError):
        contexture.gateway(upstream="no address").start()
    with pytest.raises(contexture.InputError, match="base directory"):
        contexture.gateway(base_dir=tmp_path / "nowhere").start()
    for wrong in ({"budget": "64k"}, {"budget": True}, {"upstream": 5}, {"observe": "yes"}, {"holdout": "a"}):
        with pytest.raises(TypeError):
            contexture.gateway(**wrong)  # type: ignore[arg-type]
    foreign = tmp_path / "text.db"
    foreign.write_text("this is no database, and it has enough bytes to be seen as none")
    with pytest.raises(contexture.GatewayError) as failed:
        contexture.gateway(store=foreign).start()
    assert "text.db" in failed.value.sentence and failed.value.hint
    with pytest.raises(contexture.ClosedError, match="before it is started"):
        contexture.gateway().openai
    monkeypatch.setenv("CONTEXTURE_BINARY", str(foreign))
    with pytest.raises(contexture.GatewayError, match="CONTEXTURE_BINARY"):
        contexture.gateway().start()
    with pytest.raises(contexture.GatewayError, match="start `/bin/nothing-here`"):
        contexture.gateway(binary="/bin/nothing-here").start()
    with pytest.raises(contexture.GatewayError, match="did not start"):
        contexture.gateway(binary="/bin/true").start()


def test_a_gateway_starts_once_and_closes_many_times(provider: Provider) -> None:
    g = contexture.gateway(upstream=provider.url)
    g.close()
    g.start()
    with pytest.raises(contexture.ClosedError):
        g.start()
    g.close()
    receipt = g.receipt
    g.close()
    assert g.receipt is receipt


def program(text: str) -> subprocess.Popen[str]:
    """A program that prints the process id of its gateway, and then does what is said."""
    before = "import contexture, os, sys, time\ng = contexture.gateway(upstream='http://127.0.0.1:9').start()\n"
    before += "print(g._process._child.pid, flush=True)\n"
    return subprocess.Popen([sys.executable, "-c", before + textwrap.dedent(text)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    "how",
    ["time.sleep(600)", "os.fork() or time.sleep(600)\ntime.sleep(600)"],
    ids=["alone", "with a forked child that has the pipe open"],
)
def test_the_gateway_of_a_program_that_is_killed_ends(how: str) -> None:
    child = program(how)
    assert child.stdout is not None
    gateway = int(child.stdout.readline())
    assert is_alive(gateway)
    forked = [] if "fork" not in how else children(child.pid, but=gateway)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    wait_until(lambda: not is_alive(gateway))
    for pid in forked:
        os.kill(pid, signal.SIGKILL)


def children(pid: int, but: int) -> list[int]:
    found: list[int] = []

    def look() -> bool:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        found[:] = [int(one) for one in text.split() if int(one) != but]
        return bool(found)

    wait_until(look)
    return found


@pytest.mark.parametrize("how", ["pass", "sys.exit(3)", "os._exit(0)", "raise RuntimeError", "del g; time.sleep(600)"])
def test_the_gateway_ends_with_a_program_that_never_closes_it(how: str) -> None:
    child = program(how)
    assert child.stdout is not None
    gateway = int(child.stdout.readline())
    wait_until(lambda: not is_alive(gateway))
    child.kill()
    child.wait()


def test_ctrl_c_is_for_the_program_and_not_for_its_gateway(provider: Provider) -> None:
    with contexture.gateway(upstream=provider.url) as g:
        assert g._process is not None
        for kind in (signal.SIGINT, signal.SIGHUP, signal.SIGINT):
            g._process._child.send_signal(kind)
        with openai.OpenAI(base_url=g.openai, api_key="k") as client:
            client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hello"}])
    assert g.receipt.requests == 1


def test_a_forked_child_does_not_end_its_parents_gateway(provider: Provider) -> None:
    with contexture.gateway(upstream=provider.url) as g:
        pid = os.fork()
        if pid == 0:
            g.close()
            os._exit(0)
        os.waitpid(pid, 0)
        with openai.OpenAI(base_url=g.openai, api_key="k") as client:
            client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hello"}])
        still_open = os.fork()
        if still_open == 0:
            # It has a copy of the pipe, and does not read the end of it.
            signal.pause()
            os._exit(0)
    os.kill(still_open, signal.SIGKILL)
    os.waitpid(still_open, 0)
    assert g.receipt.requests == 1


def test_a_request_that_is_repeated_after_a_restart_gets_the_same_bytes(provider: Provider, tmp_path: Path) -> None:
    def ask(first: int, last: int) -> contexture.Receipt:
        with contexture.gateway(upstream=provider.url, budget=20_000, store=tmp_path / "gateway.db") as g:
            with openai.OpenAI(base_url=g.openai, api_key="k") as client:
                for turns in range(first, last + 1):
                    client.chat.completions.create(model="gpt-5", messages=work.chat(turns))  # type: ignore[arg-type]
        return g.receipt

    assert ask(1, 16).folds
    # Another gateway with the same store, as after a kill.
    ask(16, 17)
    assert provider.bodies[-2] == provider.bodies[-3] and provider.refusals == []
    assert len(provider.bodies[-1]) < len(json.dumps(work.chat(17))) / 2, "what was folded stays folded"


def test_files_are_read_only_beneath_a_base_directory_that_was_named(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("the word is marmalade\n")
    asked: Any = [{"role": "user", "content": "See #notes.md and #../secret.txt"}]
    (tmp_path.parent / "secret.txt").write_text("the word is plum\n")
    for base_dir, is_read in ((None, False), (tmp_path, True)):
        with contexture.gateway(upstream=provider.url, base_dir=base_dir) as g:
            with openai.OpenAI(base_url=g.openai, api_key="k") as client:
                client.chat.completions.create(model="gpt-5", messages=asked)
        assert (b"marmalade" in provider.bodies[-1]) == is_read and b"plum" not in provider.bodies[-1]
