"""What adapters need: a recording from standard input, its messages as the formats of providers, and windows printed.

An adapter is a program that reads a recording in the plain form of `contexture replay --emit plain` from standard input, and prints
for every message of the agent the request that would have been sent before it:

    {"before": INDEX, "keep": K, "messages": [MESSAGE, …]}

that is, the first K messages of the request before it, then MESSAGES, in the plain form, or `{"at": INDEX}` for a
message of the recording as it is.
"""

import json
import sys


def recording():
    """The messages of the recording."""
    return [json.loads(line) for line in sys.stdin if line.strip()]


def requests(messages):
    """The positions of the agent's messages: before each of them there is a request."""
    return [at for at, message in enumerate(messages) if message['role'] == 'assistant']


def arguments_text(call):
    arguments = call.get('arguments')
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def as_chat(message):
    """A message in the chat format of OpenAI."""
    text = message.get('text') or ''
    if message['role'] == 'tool':
        return {'role': 'tool', 'tool_call_id': message.get('tool_call_id') or '', 'content': text}
    made = {'role': message['role'], 'content': text}
    calls = message.get('tool_calls') or []
    if calls:
        functions = [{'name': call['name'], 'arguments': arguments_text(call)} for call in calls]
        made['tool_calls'] = [{'id': call['id'], 'type': 'function', 'function': function} for call, function in zip(calls, functions)]
    return made


def as_anthropic(message):
    """A message in the format of Anthropic, with one message for each of the recording."""
    text = message.get('text') or ''
    if message['role'] == 'tool':
        block = {'type': 'tool_result', 'tool_use_id': message.get('tool_call_id') or '', 'content': text}
        return {'role': 'user', 'content': [block]}
    blocks = [{'type': 'text', 'text': text}] if text else []
    for call in message.get('tool_calls') or []:
        given = call.get('arguments')
        given = given if isinstance(given, dict) else {'input': given}
        blocks.append({'type': 'tool_use', 'id': call['id'], 'name': call['name'], 'input': given})
    return {'role': 'assistant' if message['role'] == 'assistant' else 'user', 'content': blocks}


def content_text(content):
    """The text of a content, which is a text or a list of blocks."""
    if isinstance(content, str) or content is None:
        return content or ''
    texts = [block if isinstance(block, str) else block.get('text') or '' for block in content]
    return '\n'.join(text for text in texts if text)


def from_chat(message):
    """A message of the chat format in the plain form."""
    made = {'role': message['role'], 'text': content_text(message.get('content'))}
    if message['role'] == 'tool':
        made['tool_call_id'] = message.get('tool_call_id')
    calls = [{'id': call['id'], **call['function']} for call in message.get('tool_calls') or []]
    return {**made, 'tool_calls': calls} if calls else made


def from_anthropic(message):
    """A message of Anthropic's format in the plain form: one for each output, and one for the rest."""
    content = message['content']
    blocks = [{'type': 'text', 'text': content}] if isinstance(content, str) else content
    made = []
    for block in blocks:
        if block['type'] == 'tool_result':
            made.append({'role': 'tool', 'text': content_text(block.get('content')), 'tool_call_id': block['tool_use_id']})
    text = '\n'.join(block['text'] for block in blocks if block['type'] == 'text')
    calls = [{'id': block['id'], 'name': block['name'], 'arguments': block['input']} for block in blocks if block['type'] == 'tool_use']
    if text or calls:
        made.append({'role': message['role'], 'text': text, **({'tool_calls': calls} if calls else {})})
    return made


class Printer:
    """Prints requests as differences to the one before."""

    def __init__(self, sent):
        """`sent` are the messages of the recording in the tool's format: one that comes back equal was not changed."""
        self.same = {}
        for at, message in enumerate(sent):
            self.same.setdefault(key(message), at)
        self.window = []

    def plain(self, message, back):
        """A message that a tool returned, in the plain form."""
        at = self.same.get(key(message))
        if at is not None:
            return [{'at': at}]
        made = back(message)
        return made if isinstance(made, list) else [made]

    def print(self, before, messages, back):
        window = [made for message in messages for made in self.plain(message, back)]
        keep = 0
        while keep < min(len(window), len(self.window)) and window[keep] == self.window[keep]:
            keep += 1
        self.window = window
        print(json.dumps({'before': before, 'keep': keep, 'messages': window[keep:]}, ensure_ascii=False), flush=False)


def key(message):
    return json.dumps(message, ensure_ascii=False, sort_keys=True)
