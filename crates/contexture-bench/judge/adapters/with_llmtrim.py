"""llmtrim's `compress`, called with the body of every request and its preset `agent`. It has no budget."""

import json
import sys

import llmtrim
from windows import Printer, as_chat, from_chat, recording, requests


def main():
    preset = sys.argv[1]
    messages = recording()
    chat = [as_chat(message) for message in messages]
    printer = Printer(chat)
    for before in requests(messages):
        if before == 0:
            printer.print(before, [], from_chat)
            continue
        body = json.dumps({'model': 'gpt-4o', 'messages': chat[:before]})
        made = json.loads(llmtrim.compress(body, llmtrim.Provider.OPEN_AI, preset).request_json)
        printer.print(before, made['messages'], from_chat)


main()
