#!/usr/bin/env python3
"""Writes the recordings in `recordings`: made work of three agents, the same bytes every time.

    make_recordings.py

Each reads files, changes lines that it read long before, runs tests, and is told by a person what to keep to. Names and
outputs are those of Claude Code, Codex and a chat format, so that importers and dialects are used as with real work.
"""

import json
import random
from pathlib import Path

HERE = Path(__file__).resolve().parent / 'recordings'
NOUNS = 'berth cargo crane depot ferry gauge hatch invoice journal keeper ledger manifest notice order pallet quota'.split()
VERBS = 'admit book claim defer enter file grant hold issue join keep list mark note open post'.split()
RULES = [
    'Never change the public names in ledger_00.py: other programs of the harbour import them by name.',
    'All amounts stay integers in cents; no floats anywhere, not even in tests.',
    'Write comments in full sentences, and none that repeat what the line below says.',
    'Do not touch the files of the old tariff system; they are removed next month.',
]


class Work:
    """A directory of made files, and the conversation about it."""

    def __init__(self, seed):
        self.random, self.files, self.messages, self.calls = random.Random(seed), {}, [], 0
        for at in range(9):
            noun = self.random.choice(NOUNS)
            self.files[f'/harbour/src/{noun}_{at:02}.py'] = self.source(noun, at)
        self.files['/harbour/src/ledger_00.py'] = self.source('ledger', 99)

    def source(self, noun, at):
        lines = [f'"""Keeps the {noun} of the harbour, part {at}."""', '']
        for number in range(26):
            verb, other = self.random.choice(VERBS), self.random.choice(NOUNS)
            lines += [f'def {verb}_{noun}_{at}_{number}({other}, cents):', f'    limit = {self.random.randrange(100, 9999)}',
                      f'    return cents if {other}.{verb}s(limit + {number}) else -cents', '']
        return lines

    def user(self, text):
        self.messages.append({'role': 'user', 'text': text})

    def agent(self, text, name=None, arguments=None, output=None):
        call = f'call_{self.calls:03}'
        self.calls += name is not None
        calls = [{'id': call, 'name': name, 'arguments': arguments}] if name else []
        self.messages.append({'role': 'assistant', 'text': text, 'tool_calls': calls})
        if name:
            self.messages.append({'role': 'tool', 'text': output, 'tool_call_id': call, 'name': name})

    def line(self, path):
        return self.random.choice([at for at, line in enumerate(self.files[path]) if 'limit = ' in line])

    def tests(self, failed):
        lines = [f'tests/test_{self.random.choice(NOUNS)}.py::test_{self.random.choice(VERBS)}_{at} PASSED' for at in range(60)]
        return '\n'.join(lines + [f'{failed} failed, {60 - failed} passed in {self.random.randrange(2, 9)}.1s'])


def claude(work):
    read = lambda path: '\n'.join(f'{at + 1:6}→{line}' for at, line in enumerate(work.files[path]))
    paths = sorted(work.files)
    for path in paths:
        work.agent(f'I read {path} first.', 'Read', {'file_path': path}, read(path))
    for turn in range(3):
        work.user(f'{RULES[turn]} Then raise the limits that I marked in round {turn}.')
        for path in work.random.sample(paths, 5):
            at = work.line(path)
            old = '\n'.join(work.files[path][at - 1:at + 1])
            work.files[path][at] = f'    limit = {work.random.randrange(100, 9999)}  # round {turn}'
            new = '\n'.join(work.files[path][at - 1:at + 1])
            work.agent(f'The limit of {path} in line {at + 1} is too low.', 'Edit', {'file_path': path, 'old_string': old, 'new_string': new},
                       f'The file {path} has been updated.')
        work.agent('Now the tests.', 'Bash', {'command': 'pytest -v'}, work.tests(turn))
        work.agent(f'Round {turn} is done: five limits were raised, and {turn} tests fail that failed before.')


def codex(work):
    paths = sorted(work.files)
    for path in paths:
        work.agent('', 'exec_command', {'cmd': f'cat {path}'}, '\n'.join(work.files[path]))
    for turn in range(3):
        work.user(f'{RULES[turn + 1]} Lower the limits of round {turn}.')
        for path in work.random.sample(paths, 4):
            at = work.line(path)
            before, old = work.files[path][at - 1], work.files[path][at]
            new = f'    limit = {work.random.randrange(10, 99)}'
            work.files[path][at] = new
            patch = f'*** Begin Patch\n*** Update File: {path}\n@@\n {before}\n-{old}\n+{new}\n*** End Patch'
            work.agent(f'Next is {path}.', 'apply_patch', {'input': patch}, f'Success. Updated the following files:\nM {path}')
        work.agent('', 'exec_command', {'cmd': 'python -m pytest -v'}, work.tests(0))
        work.agent(f'All limits of round {turn} are lower now, and the tests pass.')


def written(name, work):
    with open(HERE / name, 'w') as file:
        for message in work.messages:
            file.write(json.dumps(message, ensure_ascii=False) + '\n')


def as_chat(work):
    """The same kind of work in the chat format, as one document."""
    chat = []
    for message in work.messages:
        made = {'role': message['role'], 'content': message['text']}
        if message.get('tool_calls'):
            functions = [{'id': call['id'], 'type': 'function', 'function': {'name': call['name'], 'arguments': json.dumps(call['arguments'])}} for call in message['tool_calls']]
            made['tool_calls'] = functions
        if message['role'] == 'tool':
            made['tool_call_id'] = message['tool_call_id']
        chat.append(made)
    return json.dumps({'messages': chat}, ensure_ascii=False, indent=0) + '\n'


def main():
    HERE.mkdir(exist_ok=True)
    for name, seed, play in (('limits-raised.jsonl', 1, claude), ('limits-lowered.jsonl', 2, codex)):
        work = Work(seed)
        work.user(f'This is the bookkeeping of a harbour. {RULES[0]}')
        play(work)
        written(name, work)
    work = Work(3)
    work.user(f'Look through the harbour first. {RULES[2]}')
    claude(work)
    (HERE / 'chat.json').write_text(as_chat(work))


main()
