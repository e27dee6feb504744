"""Headroom's `compress`, called before every request.

    with_headroom.py whole     the whole history every time, as its quick start shows
    with_headroom.py loop      an agent's own loop: what was compressed is kept, and passed as the frozen prefix

Its model for prose is fetched from a hub at run time and is switched off; everything else is as it comes. It has no
budget: `model_limit` is the size of the window.
"""

import os
import sys

os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('LITELLM_LOCAL_MODEL_COST_MAP', 'True')
os.environ.setdefault('HEADROOM_TELEMETRY', 'off')

from headroom import compress
from windows import Printer, as_anthropic, from_anthropic, recording, requests

MODEL = 'claude-sonnet-4-5-20250929'


def main():
    is_loop, budget = sys.argv[1] == 'loop', int(sys.argv[2])
    messages = recording()
    sent = [as_anthropic(message) for message in messages]
    printer, kept, seen = Printer(sent), [], 0
    for before in requests(messages):
        frozen = len(kept) if is_loop else 0
        given = kept + sent[seen:before] if is_loop else sent[:before]
        if given:
            kept = compress(given, model=MODEL, model_limit=budget, kompress_model='disabled', frozen_message_count=frozen).messages
        seen = before
        printer.print(before, kept, from_anthropic)


main()
