"""`contexture chat` with servers that were made with the official libraries, in a terminal, with a scripted model.

    chat.py PROGRAM COMMAND [ARGUMENT]…          the server over pipes
    chat.py PROGRAM --http COMMAND [ARGUMENT]…   the server over HTTP, which is started with `http PORT`
"""

import atexit
import http.server
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM, SERVER = sys.argv[1], sys.argv[2:]
IS_HTTP = SERVER[0] == "--http"
CALLS = [("add", {"a": 2, "b": 3}), ("slowly", {}), ("fail", {}), ("order", {})]
OUTPUTS = []


class Model(http.server.BaseHTTPRequestHandler):
    """Calls one tool after another, and keeps what they return."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        outputs = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        OUTPUTS[:] = outputs
        if len(outputs) < len(CALLS):
            name, arguments = CALLS[len(outputs)]
            call = {"index": 0, "id": f"c{len(outputs)}", "type": "function"}
            call["function"] = {"name": f"counterpart__{name}", "arguments": json.dumps(arguments)}
            delta, reason = {"tool_calls": [call]}, "tool_calls"
        else:
            delta, reason = {"content": "all done"}, "stop"
        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        data = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def started():
    """Starts a server over HTTP, which ends with this program; returns its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*SERVER[1:], "http", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(process.kill)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return f"http://127.0.0.1:{port}/mcp"
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server does not listen")


def run(url, directory):
    config = f"{directory}/home/contexture/config.toml"
    os.makedirs(os.path.dirname(config))
    if IS_HTTP:
        entry = f'url = "{started()}"\ntoken_env = "COUNTERPART_TOKEN"\n'
    else:
        entry = f'command = "{SERVER[0]}"\nargs = {json.dumps(SERVER[1:])}\n'
    with open(config, "w") as file:
        file.write(f'[[mcp]]\nname = "counterpart"\n{entry}')
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(directory)
        os.environ["XDG_CONFIG_HOME"] = f"{directory}/home"
        os.environ["TERM"] = "xterm"
        os.environ["COUNTERPART_TOKEN"] = "made-up"
        os.execv(PROGRAM, [PROGRAM, "chat", "--url", url, "--model", "m", "--store", f"{directory}/c.db", "go"])
    seen, said, until = "", 0, time.monotonic() + 60
    # What is waited for, and what is typed then.
    steps = [(r"call counterpart/add\? .*: $", "a"), (r"Cups .*Esc for no: $", "two\r")]
    steps += [(r"two\s+a whole number\s+Cups .*no: $", "2\r"), (r"Kind .*no: $", "oolong\r"), (r"all done", "")]
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data.decode(errors="replace")
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
        if said < len(steps) and re.search(steps[said][0], plain, re.IGNORECASE):
            os.write(terminal, steps[said][1].encode())
            said += 1
        if said == len(steps):
            # What is typed before the turn is over is not taken for the end.
            os.write(terminal, b"\x04")
    os.close(terminal)
    os.waitpid(pid, 0)
    assert said == len(steps), (said, plain)
    return plain


with tempfile.TemporaryDirectory() as directory:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    plain = run(f"http://127.0.0.1:{server.server_port}/v1", directory)
    assert "5" in OUTPUTS[0] and "total" in OUTPUTS[0], OUTPUTS
    assert OUTPUTS[1] == "done slowly", OUTPUTS
    assert "fail" in OUTPUTS[2], OUTPUTS
    assert OUTPUTS[3] == "2 cups of oolong", OUTPUTS
    assert "counterpart asks: Which tea?" in plain, plain
    assert re.search(r"counterpart: \d of 3 step \d", plain), plain
    print("ok", " ".join(SERVER))
