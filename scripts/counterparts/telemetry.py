"""What `contexture serve` sends to OpenTelemetry, read with the messages that opentelemetry-proto makes of OTLP itself."""

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request

import yaml
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROGRAM, PAGE = sys.argv[1:]
KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
RECEIVED = {path: [] for path in KINDS}
QUESTION = "How did we fix the flaky walrus test?"


class Both(http.server.BaseHTTPRequestHandler):
    """A provider, and a receiver of telemetry, which refuses what is no message of the protocol."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        answer = {}
        if self.path in KINDS:
            # A field that the protocol does not have is an error.
            RECEIVED[self.path].append(json_format.Parse(body, KINDS[self.path]()))
        else:
            usage = {"input_tokens": 100, "output_tokens": 7, "cache_read_input_tokens": 30}
            answer = {"type": "message", "content": [{"type": "text", "text": "ok"}], "usage": usage}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def ask(url):
    tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 5, "tools": tools}
    body["messages"] = [{"role": "user", "content": QUESTION}]
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), {"content-type": "application/json"})
    assert urllib.request.urlopen(request).status == 200


def serve(address, directory):
    """Has two requests pass, of which the second finds in the memory what the first said."""
    own = {"HOME": directory, "XDG_STATE_HOME": directory, "XDG_DATA_HOME": directory, "XDG_CONFIG_HOME": directory}
    env = {**os.environ, **own, "OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SERVICE_NAME": "trial"}
    command = [PROGRAM, "serve", "--for-parent", "--memory", "--upstream", address]
    program = subprocess.Popen(command, env=env, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ready = json.loads(program.stdout.readline())["ready"]
    ask(ready["anthropic"])
    ask(ready["anthropic"])
    program.stdin.close()
    assert program.wait(30) == 0


def pairs(of):
    return {one.key: one.value for one in of.attributes}


def check():
    spans = [span for one in RECEIVED["/v1/traces"] for of in one.resource_spans for scope in of.scope_spans for span in scope.spans]
    named = [span for span in spans if span.name == "chat claude-sonnet-4-5"]
    assert len(named) == 2, [span.name for span in spans]
    assert pairs(named[0])["gen_ai.usage.input_tokens"].int_value == 130, named[0]
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    assert "search_memory" in [span.name for span in spans] and "create_memory" in [span.name for span in spans]
    resource = RECEIVED["/v1/metrics"][-1].resource_metrics[0]
    assert resource.resource.attributes[0].value.string_value == "trial"
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    used = metrics["gen_ai.client.inference.usage.input_tokens"].sum
    assert used.is_monotonic and used.data_points[0].as_int == 260, used
    durations = metrics["gen_ai.client.inference.duration"].histogram.data_points[0]
    assert durations.count == 2 and sum(durations.bucket_counts) == 2
    assert len(durations.bucket_counts) == len(durations.explicit_bounds) + 1
    everything = str(RECEIVED)
    assert "walrus" not in everything, "no texts"


def check_configuration():
    """The configuration for a collector on the page is one: every part that a pipeline names is there."""
    with open(PAGE) as page:
        text = page.read().split("```yaml\n")[1].split("```")[0]
    configuration = yaml.safe_load(text)
    for pipeline in configuration["service"]["pipelines"].values():
        for kind, names in pipeline.items():
            assert all(name in configuration[kind] for name in names), (kind, names)


with tempfile.TemporaryDirectory() as directory:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Both)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    serve(f"http://127.0.0.1:{server.server_port}", directory)
    check()
    check_configuration()
    print("ok telemetry")
