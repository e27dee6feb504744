"""LiteLLM's `trim_messages` with the budget as `max_tokens`, called with the whole history before every request."""

import os
import sys

os.environ.setdefault('LITELLM_LOCAL_MODEL_COST_MAP', 'True')

from litellm import utils
from windows import Printer, as_chat, from_chat, recording, requests


real_counter = utils.token_counter
counts = {}


def message_count(model, message):
    """What the real counter says of one message, asked once."""
    calls = tuple((call['id'], call['function']['arguments']) for call in message.get('tool_calls') or [])
    key = (message['role'], message.get('content'), message.get('tool_call_id'), calls)
    if key not in counts:
        counts[key] = real_counter(model=model, messages=[message]) - real_counter(model=model, messages=[])
    return counts[key]


def counter(model='', messages=None, **others):
    """The same count by adding up: `trim_messages` counts the whole history once for each of its messages."""
    if messages is None or others:
        return real_counter(model=model, messages=messages, **others)
    return real_counter(model=model, messages=[]) + sum(message_count(model, message) for message in messages)


def main():
    budget = int(sys.argv[1])
    messages = recording()
    chat = [as_chat(message) for message in messages]
    printer = Printer(chat)
    if counter('gpt-4o', chat) != real_counter(model='gpt-4o', messages=chat):
        sys.exit('counts do not add up')
    utils.token_counter = counter
    for before in requests(messages):
        made = utils.trim_messages(chat[:before], model='gpt-4o', max_tokens=budget) if before else []
        printer.print(before, made, from_chat)


main()
