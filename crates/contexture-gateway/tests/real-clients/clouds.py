"""Claude Code on Bedrock and on Vertex through `contexture run`, against a provider on this machine.

    clouds.py CONTEXTURE CLAUDE

Bedrock's frames are those of the event stream encoding in Amazon's public documentation: lengths, headers, payload and
two checksums.
"""

import base64
import binascii
import http.server
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading

CONTEXTURE, CLAUDE = map(os.path.abspath, sys.argv[1:])
USAGE = {"input_tokens": 1000, "output_tokens": 1}
GOT = []


def events():
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": USAGE}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "walrus ok"}}
    yield {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def frame(event):
    def header(name, value):
        return bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value

    payload = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}).encode()
    headers = header(b":event-type", b"chunk") + header(b":content-type", b"application/json")
    headers += header(b":message-type", b"event")
    prelude = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
    start = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + payload
    return start + struct.pack(">I", binascii.crc32(start))


class Cloud(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, body, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        GOT.append((self.path, dict(self.headers), None))
        self.say(b"{}", "application/json")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        GOT.append((self.path, dict(self.headers), body))
        if self.path.endswith("invoke-with-response-stream"):
            return self.say(b"".join(map(frame, events())), "application/vnd.amazon.eventstream")
        if self.path.endswith(":streamRawPredict"):
            lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events())
            return self.say("".join(lines).encode(), "text/event-stream")
        if "count-tokens" in self.path:
            return self.say(b'{"input_tokens": 1000, "inputTokens": 1000}', "application/json")
        message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "end_turn"}
        text = {"content": [{"type": "text", "text": "walrus ok"}], "usage": USAGE}
        self.say(json.dumps({**message, **text}).encode(), "application/json")


def run(name, variables, wanted):
    """Runs Claude Code with one question; `wanted` is a part of the path of its request."""
    del GOT[:]
    with tempfile.TemporaryDirectory() as home:
        env = {name: os.environ[name] for name in ["PATH", "LANG"] if name in os.environ}
        env |= {"HOME": home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "NO_PROXY": "*", **variables}
        command = [CONTEXTURE, "run", "--no-config", CLAUDE_NAME, "-p", "Say walrus ok."]
        done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)
        receipts = subprocess.run([CONTEXTURE, "receipts", "--json"], env=env, cwd=home, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "walrus ok" in done.stdout, (name, done.returncode, said, [got[0] for got in GOT])
    asked = [got for got in GOT if wanted in got[0]]
    assert asked and asked[0][2]["messages"], (name, [got[0] for got in GOT])
    assert not any("contexture" in str(got[1]).lower() for got in GOT), "nothing of the gateway is told"
    # What the framing of the cloud says of usage was read.
    output = sum(one["receipt"]["output"] for one in json.loads(receipts.stdout)["receipts"])
    assert output >= 7, (name, receipts.stdout, said)
    print("ok", name, f"{len(asked)} requests, output {output}")
    return asked


def refused():
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "CLAUDE_CODE_USE_BEDROCK": "1"}
    env |= {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up"}
    done = subprocess.run([CONTEXTURE, "run", "--no-config", CLAUDE_NAME, "-p", "x"], env=env, capture_output=True, text=True)
    assert done.returncode == 2 and "AWS_BEARER_TOKEN_BEDROCK" in done.stderr, done
    print("ok refused with a signature")


CLAUDE_NAME = "claude"
os.environ["PATH"] = f"{os.path.dirname(CLAUDE)}:{os.environ['PATH']}"
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
bedrock = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_BEARER_TOKEN_BEDROCK": "made-up-key", "AWS_REGION": "eu-west-1"}
asked = run("bedrock", {**bedrock, "ANTHROPIC_BEDROCK_BASE_URL": address}, "/invoke-with-response-stream")
assert asked[0][1].get("Authorization", asked[0][1].get("authorization")) == "Bearer made-up-key", asked[0][1]
vertex = {"CLAUDE_CODE_USE_VERTEX": "1", "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1", "CLOUD_ML_REGION": "us-east5"}
vertex |= {"ANTHROPIC_VERTEX_PROJECT_ID": "made-up", "ANTHROPIC_VERTEX_BASE_URL": f"{address}/v1"}
asked = run("vertex", vertex, ":streamRawPredict")
assert asked[0][0].startswith("/v1/projects/made-up/locations/us-east5/publishers/anthropic/models/"), asked[0][0]
refused()
