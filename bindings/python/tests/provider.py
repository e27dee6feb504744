"""A provider on this machine, written from the public references of the four APIs.

- https://platform.openai.com/docs/api-reference/chat/create and …/chat-streaming
- https://platform.openai.com/docs/api-reference/responses/create
- https://docs.anthropic.com/en/api/messages and …/messages-streaming
- https://ai.google.dev/api/generate-content

It refuses what they refuse: calls without results, results without calls, and empty conversations. A test gives it a
script: a function of the request that returns a text, or calls of tools.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Union

Call = tuple[str, str, dict[str, Any]]
Script = Callable[[dict[str, Any]], Union[str, list[Call]]]


class Provider:
    """A provider that answers by a script, and keeps the bodies and headers that it was sent."""

    def __init__(self, script: Script = lambda body: "done") -> None:
        self.script = script
        self.refuses: Callable[[dict[str, Any]], str | None] = lambda body: None
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[str] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                provider.bodies.append(body)
                provider.headers.append({name.lower(): value for name, value in self.headers.items()})
                kind, answer = provider.answered(self.path, json.loads(body))
                status = 400 if kind == "refusal" else 200
                self.send_response(status)
                self.send_header("content-type", kind if status == 200 else "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answered(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        forms: dict[str, Any] = {"/v1/chat/completions": Chat, "/v1/messages": Messages, "/v1/responses": Responses}
        form = Gemini(path) if ":" in path else forms.get(path.split("?")[0])
        if form is None:
            return "application/json", b"{}"
        wrong = form.refused(body) or self.refuses(body)
        if wrong:
            self.refusals.append(wrong)
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": wrong}}
            return "refusal", json.dumps(error).encode()
        said = self.script(body)
        tokens = len(json.dumps(body)) // 4
        return form.answer(body, said, tokens)


def events(parts: list[tuple[str | None, Any]]) -> bytes:
    lines = []
    for name, data in parts:
        lines.append(f"event: {name}\n" if name else "")
        lines.append(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
    return "".join(lines).encode()


def unpaired(calls: list[str], results: list[str]) -> str | None:
    if sorted(calls) != sorted(results):
        return f"calls {sorted(set(calls) - set(results))} and results {sorted(set(results) - set(calls))} are unpaired"
    return None


class Chat:
    @staticmethod
    def refused(body: dict[str, Any]) -> str | None:
        if not body.get("messages"):
            return "messages: at least one message is required"
        calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or []]
        return unpaired(calls, [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"])

    @staticmethod
    def answer(body: dict[str, Any], said: str | list[Call], tokens: int) -> tuple[str, bytes]:
        usage = {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}
        usage["prompt_tokens_details"] = {"cached_tokens": 0}  # type: ignore[assignment]
        about = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
        message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
        reason = "stop"
        if not isinstance(said, str):
            functions = [(id, {"name": name, "arguments": json.dumps(given)}) for id, name, given in said]
            message["tool_calls"] = [{"id": id, "type": "function", "function": function} for id, function in functions]
            reason = "tool_calls"
        if not body.get("stream"):
            choice = {"index": 0, "message": {**message, "refusal": None}, "finish_reason": reason, "logprobs": None}
            whole = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
            return "application/json", json.dumps(whole).encode()
        about["object"] = "chat.completion.chunk"
        for index, call in enumerate(message.get("tool_calls", [])):
            call["index"] = index
        chunks = [
            {**about, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**about, "choices": [], "usage": usage},
        ]
        return "text/event-stream", events([*((None, chunk) for chunk in chunks), (None, "[DONE]")])


class Messages:
    @staticmethod
    def refused(body: dict[str, Any]) -> str | None:
        messages = body.get("messages") or []
        if not messages or messages[0]["role"] != "user":
            return "messages: first message must use the \"user\" role"
        waiting: list[str] = []
        for message in messages:
            blocks = message["content"] if isinstance(message["content"], list) else []
            if message["content"] in ("", []):
                return "messages: all messages must have non-empty content"
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            wrong = unpaired(waiting, results)
            if wrong:
                return wrong
            waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        return None

    @staticmethod
    def answer(body: dict[str, Any], said: str | list[Call], tokens: int) -> tuple[str, bytes]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": said}] if isinstance(said, str) else []
        if not isinstance(said, str):
            blocks = [{"type": "tool_use", "id": id, "name": name, "input": given} for id, name, given in said]
        reason = "end_turn" if isinstance(said, str) else "tool_use"
        usage = {"input_tokens": tokens, "output_tokens": 5}
        usage.update(cache_creation_input_tokens=0, cache_read_input_tokens=0)
        whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": blocks}
        whole.update(stop_reason=reason, stop_sequence=None, usage=usage)
        if not body.get("stream"):
            return "application/json", json.dumps(whole).encode()
        start = {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
        parts: list[tuple[str | None, Any]] = [("message_start", start)]
        for index, block in enumerate(blocks):
            is_text = block["type"] == "text"
            empty = {**block, "text": ""} if is_text else {**block, "input": {}}
            parts.append(
                ("content_block_start", {"type": "content_block_start", "index": index, "content_block": empty})
            )
            delta = {"type": "text_delta", "text": block["text"]} if is_text else {"type": "input_json_delta"}
            if not is_text:
                delta["partial_json"] = json.dumps(block["input"])
            parts.append(("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}))
            parts.append(("content_block_stop", {"type": "content_block_stop", "index": index}))
        ended = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}}
        parts += [("message_delta", {**ended, "usage": {"output_tokens": 5}}), ("message_stop", {"type": "message_stop"})]
        return "text/event-stream", events(parts)


class Responses:
    @staticmethod
    def refused(body: dict[str, Any]) -> str | None:
        items = body.get("input")
        if not items:
            return "input: at least one item is required"
        if isinstance(items, str):
            return None
        calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
        return unpaired(calls, [item["call_id"] for item in items if item.get("type") == "function_call_output"])

    @staticmethod
    def answer(body: dict[str, Any], said: str | list[Call], tokens: int) -> tuple[str, bytes]:
        output: list[dict[str, Any]] = []
        if isinstance(said, str):
            text = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
            output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]})
        else:
            for id, name, given in said:
                call = {"id": f"fc_{id}", "type": "function_call", "call_id": id, "name": name}
                output.append({**call, "arguments": json.dumps(given), "status": "completed"})
        usage = {"input_tokens": tokens, "output_tokens": 5, "total_tokens": tokens + 5}
        usage["input_tokens_details"] = {"cached_tokens": 0}  # type: ignore[assignment]
        usage["output_tokens_details"] = {"reasoning_tokens": 0}  # type: ignore[assignment]
        whole: dict[str, Any] = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed"}
        whole.update(model=body["model"], output=output, usage=usage, error=None, incomplete_details=None)
        whole.update(instructions=None, metadata={}, parallel_tool_calls=True, temperature=1.0, top_p=1.0)
        whole.update(tool_choice="auto", tools=[])
        if not body.get("stream"):
            return "application/json", json.dumps(whole).encode()
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        parts: list[tuple[str | None, Any]] = [("response.created", {"type": "response.created", "response": begun})]
        for index, item in enumerate(output):
            for kind in ("added", "done"):
                name = f"response.output_item.{kind}"
                parts.append((name, {"type": name, "output_index": index, "item": item}))
        parts.append(("response.completed", {"type": "response.completed", "response": whole}))
        for number, (_, data) in enumerate(parts):
            data["sequence_number"] = number
        return "text/event-stream", events(parts)


class Gemini:
    def __init__(self, path: str) -> None:
        self.streams = ":streamGenerateContent" in path

    @staticmethod
    def refused(body: dict[str, Any]) -> str | None:
        contents = body.get("contents") or []
        if not contents or any(not content.get("parts") for content in contents):
            return "contents is not specified, or has no parts"
        parts = [part for content in contents for part in content["parts"]]
        calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        return unpaired(calls, [part["functionResponse"]["name"] for part in parts if "functionResponse" in part])

    def answer(self, body: dict[str, Any], said: str | list[Call], tokens: int) -> tuple[str, bytes]:
        parts: list[dict[str, Any]] = [{"text": said}] if isinstance(said, str) else []
        if not isinstance(said, str):
            parts = [{"functionCall": {"id": id, "name": name, "args": given}} for id, name, given in said]
        usage = {"promptTokenCount": tokens, "candidatesTokenCount": 5, "totalTokenCount": tokens + 5}
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3"}
        if self.streams:
            return "text/event-stream", events([(None, whole)])
        return "application/json", json.dumps(whole).encode()
