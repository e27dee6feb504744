"""A provider on loopback that answers Claude Code from a recorded session, by what each request contains.

It is no model. Before each recorded action it looks whether the request still has what the action needs: for an edit the
text that it replaces, for other calls the rare words of their arguments that had occurred before. If so, the action is
its answer. If not, it asks to read again where that was last seen: by the same call, then by printing the file. What was
only said and cannot be read again is counted as lost, and the action follows all the same.
"""

import itertools
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NUMBER = re.compile(r'^ *\d+(?:→|\t)', re.M)
WORD = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_./:-]{4,}[A-Za-z0-9_]')
# Words in more messages than this are known from everywhere.
RARE = 5
BYTES_PER_TOKEN = 4


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def words(text):
    return set(WORD.findall(text))


class Source:
    """A recorded message, and the call that shows it again if it is an output."""

    def __init__(self, text, call=None):
        self.text, self.words, self.call = text, words(text), call


class Script:
    """Where the session is, and what was counted."""

    def __init__(self, session, place, kept_outputs=None):
        """With `kept_outputs`, only so many of the newest outputs arrive: a control, for which harm is known."""
        self.session, self.place, self.kept_outputs = session, place, kept_outputs
        self.at, self.asked, self.pending = 0, set(), 0
        self.sources = [Source(session.prompts[0])]
        self.counts = dict.fromkeys(('requests', 'read_again', 'printed', 'repeated', 'lost', 'unmet', 'tokens', 'cost', 'failed_calls'), 0)
        self.last, self.read, self.seen_results, self.lock, self.turn, self.is_over = [], 0, set(), threading.Lock(), 0, False

    # What is asked for.

    def answer(self, body):
        """The blocks of the answer to a request."""
        with self.lock:
            if self.kept_outputs is not None:
                body = cleared(body, self.kept_outputs)
            self.measure(body)
            shown = shown_text(body['messages'])
            if self.at >= len(self.session.actions):
                return [text_block('That was all.')]
            action = self.session.actions[self.at]
            if action.turn > self.turn and not self.is_over:
                # The person was next in the recording, so this turn ends here.
                self.is_over = True
                return [text_block('I wait for you.')]
            if action.turn > self.turn:
                self.turn = action.turn
                self.sources.append(Source(self.session.prompts[action.turn]))
            self.is_over = False
            extra = self.missing(action, shown)
            return extra if extra else self.play(action)

    def missing(self, action, shown):
        """The call that brings back what an action needs, or nothing."""
        for call in action.calls:
            if call.name == 'Edit' and call.is_file:
                old = call.arguments['old_string'].strip('\n')
                if old and old not in shown:
                    return self.read_again(call, old)
                continue
            for word in sorted(self.needed(call)):
                if word not in shown and word not in self.asked:
                    self.asked.add(word)
                    found = self.show_again(word)
                    if found:
                        return found
        return None

    def needed(self, call):
        """Rare words of the arguments that had occurred before."""
        given = words('\n'.join(strings(call.arguments)))
        often = {word: sum(word in source.words for source in self.sources) for word in given}
        return {word for word, count in often.items() if 0 < count <= RARE}

    def read_again(self, call, old):
        for way in ('read_again', 'printed'):
            if (way, self.at, old) not in self.asked:
                self.asked.add((way, self.at, old))
                self.counts[way] += 1
                path = self.place.path(call.path)
                if way == 'read_again':
                    return [text_block('I need to see that file again.'), self.tool('Read', {'file_path': path})]
                return [text_block('I print it.'), self.tool('Bash', {'command': f'cat {path}', 'description': 'Print a file'})]
        self.unmet_once((self.at, old))
        return None

    def unmet_once(self, key):
        if ('unmet', key) not in self.asked:
            self.asked.add(('unmet', key))
            self.counts['unmet'] += 1

    def show_again(self, word):
        source = next((source for source in reversed(self.sources) if word in source.words), None)
        if source is None or source.call is None:
            self.counts['lost'] += 1
            return None
        self.counts['repeated'] += 1
        return [text_block('I look at that again.'), self.as_tool(source.call)]

    # What was recorded.

    def play(self, action):
        self.at += 1
        self.is_over = not action.calls
        self.sources.append(Source('\n'.join([action.text, *(text for call in action.calls for text in strings(call.arguments))])))
        self.sources += [Source(call.text, call) for call in action.calls]
        return [text_block(action.text or 'I go on.'), *(self.as_tool(call) for call in action.calls)]

    def as_tool(self, call):
        if not call.is_file:
            # Commands are not run: what they printed then is printed again.
            given = ' '.join(json.dumps(call.arguments, ensure_ascii=False).split())
            return self.tool('Bash', {'command': f'cat {self.place.output(call)} # {call.name} {given}', 'description': 'Print a recorded output'})
        return self.tool(call.name, {**call.arguments, 'file_path': self.place.path(call.path)})

    def tool(self, name, given):
        self.pending += 1
        return {'type': 'tool_use', 'id': f'toolu_{self.pending:06}', 'name': name, 'input': given}

    # What is counted.

    def measure(self, body):
        system = body.get('system') or []
        # Claude Code's block for the bill differs in every request, and is no part of what a provider caches.
        blocks = [json.dumps(body.get('tools'), sort_keys=True)]
        blocks += [json.dumps(block.get('text')) for block in system if not block.get('text', '').startswith('x-anthropic-billing')]
        for message in body['messages']:
            content = message['content'] if isinstance(message['content'], list) else [{'type': 'text', 'text': message['content']}]
            for block in content:
                if block.get('type') == 'tool_result' and block['tool_use_id'] not in self.seen_results:
                    self.seen_results.add(block['tool_use_id'])
                    self.counts['failed_calls'] += bool(block.get('is_error'))
                blocks.append(json.dumps({key: value for key, value in block.items() if key != 'cache_control'}, sort_keys=True))
        sizes = [len(block.encode('utf8', 'replace')) / BYTES_PER_TOKEN for block in blocks]
        same = 0
        while same < min(len(blocks), len(self.last)) and blocks[same] == self.last[same]:
            same += 1
        self.last = blocks
        self.read = round(sum(sizes[:same]))
        self.counts['requests'] += 1
        self.counts['tokens'] += sum(sizes)
        # Anthropic's prices: a cached prefix at a tenth, the rest at a quarter more.
        self.counts['cost'] += 0.1 * sum(sizes[:same]) + 1.25 * sum(sizes[same:])


def cleared(body, kept):
    """A request in which all outputs but the newest are replaced by a note."""
    messages = [dict(message) for message in body['messages']]
    outputs = []
    for message in messages:
        if isinstance(message['content'], list):
            message['content'] = [dict(block) for block in message['content']]
            outputs += [block for block in message['content'] if block.get('type') == 'tool_result']
    for block in outputs[:-kept] if kept else outputs:
        block['content'] = '[old output cleared]'
    return {**body, 'messages': messages}


def shown_text(messages):
    texts = []
    for message in messages:
        texts += strings(message['content'])
    text = '\n'.join(texts).replace('\r\n', '\n')
    return text + '\n' + NUMBER.sub('', text)


def text_block(text):
    return {'type': 'text', 'text': text}


def serve(script):
    """Starts a provider for a script, and returns it with its address."""
    # Claude Code takes two messages of one id for parts of one.
    numbers = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def do_HEAD(self):
            self.send_response(200)
            self.send_header('Content-Length', '0')
            self.end_headers()

        do_GET = do_HEAD

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers['Content-Length'])) or b'{}')
            tokens = len(json.dumps(body)) // BYTES_PER_TOKEN
            if 'count_tokens' in self.path:
                return self.send(json.dumps({'input_tokens': tokens}), 'application/json')
            is_agent = any(tool.get('name') == 'Edit' for tool in body.get('tools') or [])
            # Titles and the like are asked for without tools.
            blocks = script.answer(body) if is_agent else [text_block('{"title": "work"}')]
            message = answered(body.get('model'), blocks, (min(script.read, tokens) if is_agent else 0, tokens), next(numbers))
            if body.get('stream'):
                return self.send(''.join(events(message)), 'text/event-stream')
            return self.send(json.dumps(message), 'application/json')

        def send(self, text, kind):
            data = text.encode()
            self.send_response(200)
            self.send_header('Content-Type', kind)
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f'http://127.0.0.1:{server.server_port}'


def answered(model, blocks, billed, number):
    """A message whose usage says what is counted as cost: what was read from the cache, of so many tokens."""
    read, tokens = billed
    reason = 'tool_use' if any(block['type'] == 'tool_use' for block in blocks) else 'end_turn'
    usage = {'input_tokens': 0, 'output_tokens': 1, 'cache_read_input_tokens': read, 'cache_creation_input_tokens': tokens - read}
    return {'id': f'msg_{number:06}', 'type': 'message', 'role': 'assistant', 'model': model, 'content': blocks, 'stop_reason': reason, 'stop_sequence': None, 'usage': usage}


def events(message):
    """A message as the events of Anthropic's streaming format."""
    def event(kind, **fields):
        return f'event: {kind}\ndata: {json.dumps({"type": kind, **fields})}\n\n'

    yield event('message_start', message={**message, 'content': [], 'stop_reason': None})
    for index, block in enumerate(message['content']):
        if block['type'] == 'text':
            yield event('content_block_start', index=index, content_block={'type': 'text', 'text': ''})
            yield event('content_block_delta', index=index, delta={'type': 'text_delta', 'text': block['text']})
        else:
            yield event('content_block_start', index=index, content_block={**block, 'input': {}})
            yield event('content_block_delta', index=index, delta={'type': 'input_json_delta', 'partial_json': json.dumps(block['input'])})
        yield event('content_block_stop', index=index)
    yield event('message_delta', delta={'stop_reason': message['stop_reason'], 'stop_sequence': None}, usage={'output_tokens': 1})
    yield event('message_stop')
