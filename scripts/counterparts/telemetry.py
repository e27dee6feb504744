"""What `contexture serve` sends to OpenTelemetry, read with the messages that opentelemetry-proto makes of OTLP itself."""

import http.server
import json
import os
import re
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
# A busy machine may have no time to search for some of them.
QUESTIONS = [f"How did we fix the flaky walrus test number {number}?" for number in range(8)]


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


def ask(url, question):
    tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 5, "tools": tools}
    body["messages"] = [{"role": "user", "content": question}]
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        assert b"ok" in response.read()


def serve(address, directory):
    """Has requests pass, of which some find in the memory what others said."""
    own = {"HOME": directory, "XDG_STATE_HOME": directory, "XDG_DATA_HOME": directory, "XDG_CONFIG_HOME": directory}
    env = {**os.environ, **own, "OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SERVICE_NAME": "trial"}
    command = [PROGRAM, "serve", "--no-config", "--listen", "127.0.0.1:0", "--memory", "--upstream", address]
    program = subprocess.Popen(command, env=env, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = "".join(program.stdout.readline() for _ in range(3))
    url = re.search(r"ANTHROPIC_BASE_URL=(\S+)", said)[1]
    for question in QUESTIONS:
        ask(url, question)
    program.terminate()
    program.communicate(timeout=60)
    assert program.returncode == 0, program.returncode


def pairs(of):
    return {one.key: one.value for one in of.attributes}


def check():
    spans = [span for one in RECEIVED["/v1/traces"] for of in one.resource_spans for scope in of.scope_spans for span in scope.spans]
    named = [span for span in spans if span.name == "chat claude-sonnet-4-5"]
    assert len(named) == len(QUESTIONS), [span.name for span in spans]
    assert pairs(named[0])["gen_ai.usage.input_tokens"].int_value == 130, named[0]
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    assert "search_memory" in [span.name for span in spans] and "create_memory" in [span.name for span in spans]
    resource = RECEIVED["/v1/metrics"][-1].resource_metrics[0]
    assert resource.resource.attributes[0].value.string_value == "trial"
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    used = metrics["gen_ai.client.inference.usage.input_tokens"].sum
    assert used.is_monotonic and used.data_points[0].as_int == 130 * len(QUESTIONS), used
    durations = metrics["gen_ai.client.inference.duration"].histogram.data_points[0]
    assert durations.count == sum(durations.bucket_counts) == len(QUESTIONS)
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
