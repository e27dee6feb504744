"""A loop around the official Python libraries: library.py FORMAT STREAMS TASK"""

import json
import subprocess
import sys

FORMAT, STREAMS, TASK = sys.argv[1], sys.argv[2] == "true", sys.argv[3]
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SYSTEM = "You run commands until the task is done."


def output(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout


def messages():
    from anthropic import Anthropic

    client = Anthropic()
    said = [{"role": "user", "content": TASK}]
    tools = [{"name": "bash", "description": "Runs a command.", "input_schema": SCHEMA}]
    while True:
        request = dict(model="claude-sonnet-4-5", max_tokens=1000, system=SYSTEM, tools=tools, messages=said, cache_control={"type": "ephemeral"})
        if STREAMS:
            with client.messages.stream(**request) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**request)
        said.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return answer.content[0].text
        said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": output(call.input["command"])} for call in calls]})


def chat():
    from openai import OpenAI

    client = OpenAI()
    said = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
    tools = [{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": SCHEMA}}]
    while True:
        request = dict(model="gpt-5.1", tools=tools, messages=said)
        if STREAMS:
            with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
                for _ in stream:
                    pass
                answer = stream.get_final_completion().choices[0].message
        else:
            answer = client.chat.completions.create(**request).choices[0].message
        if not answer.tool_calls:
            return answer.content
        calls = [{"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}} for call in answer.tool_calls]
        said.append({"role": "assistant", "content": answer.content, "tool_calls": calls})
        for call in answer.tool_calls:
            said.append({"role": "tool", "tool_call_id": call.id, "content": output(json.loads(call.function.arguments)["command"])})


def responses():
    from openai import OpenAI

    client = OpenAI()
    said = [{"role": "user", "content": TASK}]
    tools = [{"type": "function", "name": "bash", "description": "Runs a command.", "parameters": SCHEMA, "strict": False}]
    while True:
        request = dict(model="gpt-5.1", instructions=SYSTEM, tools=tools, input=said, store=False)
        if STREAMS:
            with client.responses.stream(**request) as stream:
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**request)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        for call in calls:
            said.append({"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments})
            said.append({"type": "function_call_output", "call_id": call.call_id, "output": output(json.loads(call.arguments)["command"])})


print({"messages": messages, "chat": chat, "responses": responses}[FORMAT]())
