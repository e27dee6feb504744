"""Recorded work in the plain form that `contexture replay --emit plain` prints, and what the judge reads of it."""

import json
import shlex
import subprocess

PATH_ARGUMENTS = ('file_path', 'filePath', 'path', 'filename', 'file', 'target_file', 'absolute_path')
OLD_TEXT_ARGUMENTS = ('old_string', 'oldString', 'old_str', 'oldText')
CLEARED = '[old output cleared]'
BYTES_PER_TOKEN = 4


def arguments_text(call):
    """The arguments of a call as text, as a model would write them."""
    arguments = call.get('arguments')
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def rendered(message, text=None):
    """A message as the judge reads it, with another text if one is given."""
    text = (message.get('text') or '') if text is None else text
    calls = ''.join(f'\n[call {call["name"]}] {arguments_text(call)}' for call in message.get('tool_calls') or [])
    return f'<{message["role"]}>\n{text}{calls}\n'


def parts(message):
    """An action in parts, so that words, names of tools and arguments can be told apart."""
    found = [('text', message.get('text') or '')]
    for call in message.get('tool_calls') or []:
        found += [('name', f'\n[call {call["name"]}] '), ('arguments', arguments_text(call))]
    return found


def size(message):
    return len(rendered(message).encode('utf8', 'replace'))


def fields(call):
    arguments = call.get('arguments')
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {}
    return arguments if isinstance(arguments, dict) else {}


def path_of(call):
    """The file that a call names, if it names one."""
    found = (fields(call).get(name) for name in PATH_ARGUMENTS)
    return next((path for path in found if isinstance(path, str) and path), None)


def is_edit(call):
    given = fields(call)
    has_old = any(isinstance(given.get(name), str) for name in OLD_TEXT_ARGUMENTS) or isinstance(given.get('edits'), list)
    return has_old or '*** Begin Patch' in arguments_text(call)


def kind(message):
    """What an action is: an edit, another call, or an answer."""
    calls = message.get('tool_calls') or []
    if any(is_edit(call) for call in calls):
        return 'edit'
    return 'call' if calls else 'answer'


class Recording:
    """One recording with the requests that were made in it."""

    def __init__(self, path, program):
        self.path = path
        printed = subprocess.run([program, 'import', path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        self.messages = [json.loads(line) for line in printed.stdout.splitlines() if line.strip()]
        self.actions = [at for at, message in enumerate(self.messages) if message.get('role') == 'assistant']
        self.before = [0]
        for message in self.messages:
            self.before.append(self.before[-1] + size(message))

    def whole(self, at):
        return [rendered(message) for message in self.messages[:at]]

    def sliding(self, at, budget):
        """The newest messages that fit, from a message of the user or the agent on."""
        start, left = at, budget * BYTES_PER_TOKEN
        while start > 0 and size(self.messages[start - 1]) <= left:
            start -= 1
            left -= size(self.messages[start])
        while start < at and self.messages[start]['role'] == 'tool':
            start += 1
        return [rendered(message) for message in self.messages[start:at]]

    def clearing(self, at, budget, kept=3):
        """Everything; above the budget all outputs but the newest few are cleared, as providers do it."""
        if self.before[at] <= budget * BYTES_PER_TOKEN:
            return self.whole(at)
        outputs = [index for index in range(at) if self.messages[index]['role'] == 'tool']
        cleared = set(outputs[:-kept] if kept else outputs)
        return [rendered(message, CLEARED if index in cleared else None) for index, message in enumerate(self.messages[:at])]

    def naming(self, at):
        """The messages of the past that have the name of the file that the action names; None if it names none."""
        named = [path_of(call) for call in self.messages[at].get('tool_calls') or []]
        names = {path.replace('\\', '/').rsplit('/', 1)[-1] for path in named if path}
        if not names:
            return None
        has_name = [any(name in rendered(message) for name in names) for message in self.messages[:at]]
        calls = {call.get('id'): index for index, message in enumerate(self.messages[:at]) for call in message.get('tool_calls') or []}
        return {index for index in range(at) if has_name[index] or has_name[calls.get(self.messages[index].get('tool_call_id'), index)]}

    def newest_request(self, at):
        """What a person asked for last: the task itself."""
        return max((index for index in range(at) if self.messages[index]['role'] == 'user'), default=-1)

    def without(self, at, gone):
        """The whole past without some messages, but with what a person asked for last."""
        kept = self.newest_request(at)
        return [rendered(message) for index, message in enumerate(self.messages[:at]) if index not in gone or index == kept]

    def as_much_else(self, at, naming, random):
        """Other messages of about as many bytes, at random; None if there are not that many."""
        kept = self.newest_request(at)
        others = [index for index in range(at) if index not in naming and index != kept]
        random.shuffle(others)
        wanted = sum(size(self.messages[index]) for index in naming if index != kept)
        gone, taken = set(), 0
        while others and taken < wanted:
            gone.add(others.pop())
            taken = sum(size(self.messages[index]) for index in gone)
        return gone if taken >= wanted > 0 else None


def windows_of(command, path, budget):
    """The windows that a program prints as `contexture replay --emit windows` does, by the position of the action."""
    words = [word.format(file=path, budget=budget) for word in shlex.split(command)]
    printed = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    window, windows = [], {}
    for line in printed.splitlines():
        request = json.loads(line)
        window = window[: request['keep']] + [rendered(message) for message in request['messages']]
        windows[request['before']] = list(window)
    return windows
