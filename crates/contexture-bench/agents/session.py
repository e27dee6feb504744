"""A recorded session of Claude Code, and the files that it worked on as far as it shows them."""

import json
import random
import re
import subprocess

NUMBERED = re.compile(r'^ *(\d+)(?:→|\t)(.*)$')
REMINDER = re.compile(r'\n*<system-reminder>.*?</system-reminder>\s*', re.S)
# A line of a file that nobody has seen; each is different, so that it is found again after changes.
UNSEEN = '~ line {} was not read in the recorded session ~'


class Unrebuilt(Exception):
    """Why the files of a session cannot be rebuilt."""


class Call:
    """A call with its result."""

    def __init__(self, recorded, result):
        self.name, self.arguments = recorded['name'], recorded['arguments'] if isinstance(recorded['arguments'], dict) else {}
        self.text = (result or {}).get('text') or ''
        meta = (result or {}).get('meta') or {}
        self.failed = result is None or bool(meta.get('error') or meta.get('missing') or meta.get('outcome') in ('failed', 'missing'))

    @property
    def path(self):
        path = self.arguments.get('file_path')
        return path if isinstance(path, str) else None

    @property
    def is_file(self):
        """Whether it is run in the replay: others print their recorded output."""
        return self.name in ('Read', 'Edit', 'Write') and not self.failed and self.path is not None


class Action:
    """One message of the agent: its text and its calls. `turn` is the number of the person's request it belongs to."""

    def __init__(self, text, calls, turn):
        self.text, self.calls, self.turn = text, calls, turn


class Files:
    """Files at the start, rebuilt from what was read, and their current lines while the session is gone through."""

    def __init__(self):
        self.start, self.now, self.unseen, self.known = {}, {}, 0, {}

    def blank(self):
        self.unseen += 1
        return UNSEEN.format(self.unseen)

    def read(self, call):
        lines = [NUMBERED.match(line) for line in REMINDER.sub('', call.text).split('\n')]
        lines = [(int(match[1]), match[2]) for match in lines if match]
        if not lines:
            return
        if call.path not in self.now:
            self.start[call.path], self.now[call.path] = [], []
        now = self.now[call.path]
        while len(now) < lines[-1][0]:
            blank = self.blank()
            now.append(blank)
            self.start[call.path].append(blank)
        for number, text in lines:
            shown = self.known.get(now[number - 1], now[number - 1])
            if shown == text:
                continue
            if not now[number - 1].startswith('~ line ') or now[number - 1] in self.known:
                raise Unrebuilt('a file was changed by something else than an edit')
            self.known[now[number - 1]] = text

    def text(self, lines):
        return '\n'.join(self.known.get(line, line) for line in lines)

    def edit(self, call):
        if call.path not in self.now:
            raise Unrebuilt('a file was changed that was not read')
        old, new = call.arguments.get('old_string'), call.arguments.get('new_string')
        if not isinstance(old, str) or not isinstance(new, str) or not old:
            raise Unrebuilt('an edit without its texts')
        now = self.text(self.now[call.path])
        count = now.count(old)
        if count == 0:
            raise Unrebuilt('an edit of text that was not read')
        if count > 1 and not call.arguments.get('replace_all'):
            raise Unrebuilt('an edit of text that is there twice')
        # Lines that are still unseen keep their names, as nothing else is replaced.
        self.now[call.path] = now.replace(old, new).split('\n')

    def write(self, call):
        content = call.arguments.get('content')
        if not isinstance(content, str):
            raise Unrebuilt('a file was written without its content')
        self.now[call.path] = content.split('\n')


class Session:
    """The requests of a person, the actions of the agent, and the files before and after."""

    def __init__(self, name, messages):
        self.name, self.prompts, self.actions = name, [], []
        results = {message.get('tool_call_id'): message for message in messages if message['role'] == 'tool'}
        said = []
        for message in messages:
            if message['role'] == 'user':
                said.append(message.get('text') or '')
            elif message['role'] == 'assistant':
                if said:
                    self.prompts.append('\n\n'.join(said))
                    said = []
                calls = [Call(call, results.get(call['id'])) for call in message.get('tool_calls') or []]
                self.act(Action(message.get('text') or '', calls, len(self.prompts) - 1))
        self.rebuild()

    def act(self, action):
        """Adds an action. Words that were not the last of a turn belong to what was done next: alone they would end it."""
        last = self.actions[-1] if self.actions else None
        if last and last.turn == action.turn and not last.calls:
            action.text = f'{last.text}\n\n{action.text}'
            self.actions.pop()
        self.actions.append(action)

    def rebuild(self):
        files, written = Files(), set()
        if not self.prompts or self.actions[0].turn < 0:
            raise Unrebuilt('nobody asked for anything')
        for action in self.actions:
            for call in action.calls:
                if not call.is_file:
                    continue
                if call.path.startswith('/') and '..' not in call.path and not call.path.endswith(('.ipynb', '.png', '.pdf', '.jpg')):
                    {'Read': files.read, 'Edit': files.edit, 'Write': files.write}[call.name](call)
                    written |= {call.path} if call.name != 'Read' else set()
                else:
                    raise Unrebuilt('a file that is not text, or whose path is not absolute')
        if not any(call.name == 'Edit' and call.is_file for action in self.actions for call in action.calls):
            raise Unrebuilt('no file is edited')
        self.before = {path: files.text(lines) for path, lines in files.start.items()}
        self.after = {path: files.text(files.now[path]) for path in written}


def read(path, program):
    """The session of a recording; Unrebuilt if its files cannot be rebuilt."""
    printed = subprocess.run([program, 'import', path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return Session(str(path), [json.loads(line) for line in printed.stdout.splitlines() if line.strip()])


def drawn(found, count, seed):
    """So many sessions, or all, in an order of chance: the first of them are a sample too, if the rest is broken off."""
    return random.Random(seed).sample(found, len(found))[:count]
