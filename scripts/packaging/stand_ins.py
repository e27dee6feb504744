"""A provider and an agent for trying a package: both do one request and are as small as that allows.

The provider speaks OpenAI's chat completions as their reference describes them: a JSON object with `choices` and
`usage`. The agent asks it through the address that it finds in a variable, and prints what it was told.
"""

import http.server
import json
import threading

# Where the agent finds the gateway.
VARIABLE = "TRIED_BASE_URL"

AGENT = f"""
import json, os, urllib.request
body = json.dumps({{"model": "gpt-5", "messages": [{{"role": "user", "content": "say when"}}]}}).encode()
headers = {{"content-type": "application/json", "authorization": "Bearer sk-not-a-key"}}
request = urllib.request.Request(os.environ["{VARIABLE}"] + "/chat/completions", body, headers)
answer = json.load(urllib.request.urlopen(request, timeout=30))
print("the provider said:", answer["choices"][0]["message"]["content"])
raise SystemExit(7)
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((self.path, self.headers.get("authorization"), body))
        message = {"role": "assistant", "content": "when"}
        usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = json.dumps({"id": "c1", "object": "chat.completion", "model": "gpt-5", "choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


class Provider:
    """A provider on a free port of this machine, for as long as the block runs."""

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.seen = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    @property
    def seen(self):
        return self.server.seen
