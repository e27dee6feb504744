#!/usr/bin/env python3
"""Asks a language model how likely each recorded action is after each window.

    score.py moments.json.xz MODEL --out likelihood.json
    score.py moments.json.xz DIRECTORY --gguf FILE --out likelihood.json

MODEL is anything that transformers loads; it needs torch and transformers, and a GPU helps. A window that does not fit
into the model is left out, never cut.
"""

import argparse
import json
import lzma
import sys
import time

MOST_ACTION_TOKENS = 1_536
PARTS = ('text', 'name', 'arguments')


def main():
    arguments = parsed()
    try:
        judge = Judge(arguments.model, arguments.gguf, arguments.max_tokens)
    except ImportError as error:
        sys.exit(f'error: {error}\nhint: `pip install torch transformers`, and `gguf` for --gguf')
    with lzma.open(arguments.moments) as file:
        data = json.load(file)
    texts = [judge.ids(text) for text in data['texts']]
    print(f'{len(data["moments"])} moments, ready after {judge.seconds():.0f} s', flush=True)
    scored = []
    for moment in data['moments']:
        if judge.seconds() > arguments.seconds:
            print(f'time is up: {len(data["moments"]) - len(scored)} moments are missing')
            break
        scored.append(judge.judged(moment, texts))
    with open(arguments.out, 'w') as file:
        json.dump({'model': arguments.gguf or arguments.model, 'seed': data['seed'], 'moments': scored}, file)
    print(f'{len(scored)} moments in {judge.seconds():.0f} s')


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('moments')
    parser.add_argument('model')
    parser.add_argument('--gguf', help='the file in the directory MODEL, for models in that format')
    parser.add_argument('--max-tokens', type=int, default=32_768)
    parser.add_argument('--seconds', type=float, default=float('inf'), help='stop after this long')
    parser.add_argument('--out', default='likelihood.json')
    return parser.parse_args()


class Judge:
    """A language model that says how likely a text is."""

    def __init__(self, name, gguf, max_tokens):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.begun, self.torch, self.max_tokens = time.monotonic(), torch, max_tokens
        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        more = {'gguf_file': gguf} if gguf else {}
        kind = torch.bfloat16 if self.device == 'cuda' else torch.float32
        self.tokenizer = AutoTokenizer.from_pretrained(name, **more)
        self.model = AutoModelForCausalLM.from_pretrained(name, dtype=kind, **more).to(self.device).eval()
        self.head = self.ids('<assistant>\n')
        begin = self.tokenizer.bos_token_id
        self.begin = [] if begin is None else [begin]

    def seconds(self):
        return time.monotonic() - self.begun

    def ids(self, text):
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def judged(self, moment, texts):
        action, of = list(self.head), [None] * len(self.head)
        for part, text in moment['parts']:
            ids = self.ids(text)
            action += ids
            of += [part] * len(ids)
        action, of = action[:MOST_ACTION_TOKENS], of[:MOST_ACTION_TOKENS]
        found = {key: moment[key] for key in ('set', 'file', 'at', 'kind')} | {'nats': {}, 'tokens': {}}
        for policy, window in moment['windows'].items():
            before = self.begin + [token for text in window for token in texts[text]]
            if len(before) + len(action) <= self.max_tokens:
                found['nats'][policy] = self.nats(before, action, of)
                found['tokens'][policy] = len(before)
        return found

    def nats(self, before, action, of):
        """For each part of the action the sum of nats, and the number of tokens."""
        torch = self.torch
        with torch.inference_mode():
            ids = torch.tensor([before + action], device=self.device)
            logits = self.model(ids, logits_to_keep=len(action) + 1).logits[0, :-1].float()
            target = torch.tensor(action, device=self.device)[:, None]
            found = torch.log_softmax(logits, -1).gather(1, target)[:, 0].tolist()
        return {part: [-sum(value for value, which in zip(found, of) if which == part), of.count(part)] for part in PARTS}


if __name__ == '__main__':
    main()
