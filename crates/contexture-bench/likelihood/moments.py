#!/usr/bin/env python3
"""Chooses moments of recorded work, and writes the window of each policy at each of them.

    moments.py RECORDINGS --program contexture --out moments.json.xz

A moment is a request that was followed by an action of the agent: an edit, another call, or an answer. There are two
sets. In `short` the whole past fits into a model of 32 000 tokens, so that there is a scale from no history to all of
it. In `long` it does not fit into any window here, and policies are compared with each other.

Windows: `none` (the last two messages), `whole`, `sliding`, `clearing`, `ours`, and one for each --policy NAME=COMMAND,
where {file} and {budget} are replaced and the command prints windows as `contexture replay --emit windows` does.
Controls: `again` (ours a second time), `without-file` (the whole past without the messages that have the name of the file
that the action names) and `without-random` (without other messages of as many bytes, at random).
"""

import argparse
import collections
import json
import lzma
import random
import sys
from pathlib import Path

from recording import Recording, kind, parts, windows_of

# Bytes of the past at least and at most, and the budget in tokens.
SETS = {'short': (40_000, 60_000, 7_000), 'long': (200_000, 900_000, 14_000)}
ACTION_BYTES = (60, 4_000)
OURS = '{program} replay {{file}} --budget {{budget}} --counter estimate --emit windows'


def main():
    arguments = parsed()
    policies = dict(policy.split('=', 1) for policy in arguments.policy)
    policies['ours'] = OURS.format(program=arguments.program)
    choice = random.Random(arguments.seed)
    files = sorted(path for path in Path(arguments.recordings).rglob('*') if path.suffix in ('.json', '.jsonl'))
    if not files:
        sys.exit(f'error: {arguments.recordings} has no recordings\nhint: name a directory of .jsonl or .json files')
    choice.shuffle(files)
    texts, moments = Texts(), []
    taken = collections.Counter()
    for path in files:
        wanted = [name for name in arguments.set or SETS if taken[name] < arguments.recordings_each]
        if not wanted:
            break
        recording = Recording(str(path), arguments.program)
        for name in wanted:
            found = list(of_recording(recording, name, policies, arguments.each, choice, texts))
            taken[name] += bool(found)
            moments += found
    for name in SETS:
        count = sum(moment['set'] == name for moment in moments)
        print(f'{name}: {count} moments of {taken[name]} recordings', file=sys.stderr)
    data = {'seed': arguments.seed, 'policies': policies, 'texts': texts.all, 'moments': moments}
    Path(arguments.out).write_bytes(lzma.compress(json.dumps(data).encode('utf8', 'replace'), preset=6))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('recordings', help='a directory of recordings that `contexture replay` reads')
    parser.add_argument('--program', default='contexture')
    parser.add_argument('--policy', action='append', default=[], metavar='NAME=COMMAND')
    parser.add_argument('--recordings-each', type=int, default=60, help='recordings for each set')
    parser.add_argument('--each', type=int, default=1, help='moments of each kind in a recording')
    parser.add_argument('--set', action='append', choices=SETS, help='only this set')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--out', default='moments.json.xz')
    return parser.parse_args()


class Texts:
    """The texts of all windows, each once."""

    def __init__(self):
        self.all, self.numbers = [], {}

    def numbered(self, window):
        for text in window:
            if text not in self.numbers:
                self.numbers[text] = len(self.all)
                self.all.append(text)
        return [self.numbers[text] for text in window]


def of_recording(recording, name, policies, each, choice, texts):
    low, high, budget = SETS[name]
    found = collections.defaultdict(list)
    for at in recording.actions:
        action = recording.messages[at]
        length = sum(len(text) for _, text in parts(action))
        if low <= recording.before[at] <= high and ACTION_BYTES[0] <= length <= ACTION_BYTES[1]:
            found[kind(action)].append(at)
    chosen = [at for which in sorted(found) for at in choice.sample(found[which], min(each, len(found[which])))]
    if not chosen:
        return
    printed = {policy: windows_of(command, recording.path, budget) for policy, command in policies.items()}
    for at in sorted(chosen):
        windows = {policy: of_policy[at] for policy, of_policy in printed.items()}
        windows['again'] = windows['ours']
        windows['none'] = recording.whole(at)[-2:]
        windows['sliding'] = recording.sliding(at, budget)
        windows['clearing'] = recording.clearing(at, budget)
        if name == 'short':
            windows['whole'] = recording.whole(at)
            naming = recording.naming(at)
            others = recording.as_much_else(at, naming, choice) if naming else None
            if others is not None:
                windows['without-file'] = recording.without(at, naming)
                windows['without-random'] = recording.without(at, others)
        yield {
            'set': name,
            'file': Path(recording.path).name,
            'at': at,
            'kind': kind(recording.messages[at]),
            'parts': parts(recording.messages[at]),
            'windows': {policy: texts.numbered(window) for policy, window in windows.items()},
        }


if __name__ == '__main__':
    main()
