"""A conversation with much work in it: an agent that reads files, as its provider is asked turn by turn."""

from __future__ import annotations

import json
from typing import Any


def file_text(number: int, lines: int = 260) -> str:
    return "".join(f"def function_{number}_{line}(value): return value * {line} + {number}\n" for line in range(lines))


def chat(turns: int) -> list[dict[str, Any]]:
    """The messages of a conversation in OpenAI's chat format, after so many calls."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful programmer."},
        {"role": "user", "content": "Read all modules, and say what they have in common."},
    ]
    for number in range(turns):
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/module_{number}.py"})}
        calls = [{"id": f"call_{number}", "type": "function", "function": call}]
        messages.append({"role": "assistant", "content": f"Now module {number}.", "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": file_text(number)})
    return messages


def anthropic(turns: int) -> list[dict[str, Any]]:
    """The same in Anthropic's format."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all modules, and say what they have in common."}]
    for number in range(turns):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": f"/w/m{number}.py"}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"Now module {number}."}, use]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": file_text(number)}
        messages.append({"role": "user", "content": [result]})
    return messages


def responses(turns: int) -> list[dict[str, Any]]:
    """The same as input items of OpenAI's responses."""
    items: list[dict[str, Any]] = [{"role": "user", "content": "Read all modules, and say what they have in common."}]
    for number in range(turns):
        arguments = json.dumps({"path": f"src/module_{number}.py"})
        call = {"type": "function_call", "call_id": f"call_{number}", "name": "read_file", "arguments": arguments}
        items += [call, {"type": "function_call_output", "call_id": f"call_{number}", "output": file_text(number)}]
    return items


def gemini(turns: int) -> list[dict[str, Any]]:
    """The same as contents of Gemini."""
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Read all modules, and say what they have in common."}]}]
    for number in range(turns):
        call = {"name": "read_file", "args": {"path": f"src/m{number}.py"}}
        result = {"name": "read_file", "response": {"output": file_text(number)}}
        contents.append({"role": "model", "parts": [{"text": f"Now module {number}."}, {"functionCall": call}]})
        contents.append({"role": "user", "parts": [{"functionResponse": result}]})
    return contents
