"""Tests of the scripted provider and of rebuilt files: `python3 -m unittest discover -s crates/contexture-bench/agents`."""

import json
import unittest
import urllib.request
from pathlib import Path

import provider
import session

FILE = '/w/a.py'


def call(number, name, text, error=False, **arguments):
    made = {'role': 'assistant', 'text': f'step {number}', 'tool_calls': [{'id': f'c{number}', 'name': name, 'arguments': arguments}]}
    return [made, {'role': 'tool', 'text': text, 'tool_call_id': f'c{number}', 'meta': {'error': True} if error else {}}]


def recorded(*parts):
    return [{'role': 'user', 'text': 'please'}, *(message for part in parts for message in part), {'role': 'assistant', 'text': 'done'}]


READ = call(1, 'Read', '     3→three\n     4→four', file_path=FILE, offset=3)
EDIT = call(2, 'Edit', 'updated', file_path=FILE, old_string='four', new_string='4')


class Place:
    def path(self, path):
        return f'/place{path}'

    def output(self, _):
        return Path('/place/outputs/0')


def asked(*texts):
    return {'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': text} for text in texts]}]}


class Drawn(unittest.TestCase):
    def test_fewer_are_the_first_of_more_and_another_seed_gives_others(self):
        found = list(range(40))
        whole = session.drawn(found, None, 1)
        self.assertEqual(sorted(whole), found)
        self.assertNotEqual(whole, found)
        for count in (1, 5, 10, 40, 50):
            self.assertEqual(session.drawn(found, count, 1), whole[:count])
        self.assertNotEqual(session.drawn(found, None, 2), whole)


class Rebuilt(unittest.TestCase):
    def test_lines_that_were_not_read_have_placeholders_that_stay(self):
        made = session.Session('s', recorded(READ, EDIT, call(3, 'Read', '     1→one', file_path=FILE)))
        before, after = made.before[FILE].split('\n'), made.after[FILE].split('\n')
        self.assertEqual((before[0], before[2:]), ('one', ['three', 'four']))
        self.assertEqual((after[0], after[2:]), ('one', ['three', '4']))
        self.assertTrue(before[1].startswith('~ line') and before[1] == after[1])

    def test_what_cannot_be_rebuilt_is_said(self):
        def reason(*parts):
            with self.assertRaises(session.Unrebuilt) as raised:
                session.Session('s', recorded(*parts))
            return str(raised.exception)

        self.assertIn('not read', reason(EDIT))
        self.assertIn('text that was not read', reason(READ, call(2, 'Edit', '', file_path=FILE, old_string='nine', new_string='9')))
        self.assertIn('something else', reason(READ, EDIT, call(3, 'Read', '     4→changed', file_path=FILE)))
        self.assertIn('no file is edited', reason(READ))
        # An edit that failed then changes nothing.
        failed = call(7, 'Edit', 'error', error=True, file_path=FILE, old_string='nine', new_string='9')
        self.assertEqual(list(session.Session('s', recorded(READ, failed, EDIT)).after), [FILE])

    def test_words_in_the_middle_of_a_turn_do_not_end_it(self):
        made = session.Session('s', recorded(READ, [{'role': 'assistant', 'text': 'now I edit'}], EDIT))
        self.assertEqual([len(action.calls) for action in made.actions], [1, 1, 0])
        self.assertIn('now I edit', made.actions[1].text)


class Scripted(unittest.TestCase):
    def script(self, *parts):
        return provider.Script(session.Session('s', recorded(*parts)), Place())

    def uses(self, blocks):
        return [(block['name'], block['input']) for block in blocks if block['type'] == 'tool_use']

    def test_an_edit_whose_text_is_there_follows(self):
        script = self.script(READ, EDIT)
        script.answer(asked('please'))
        ((name, given),) = self.uses(script.answer(asked('please', '     3→three\n     4→four')))
        self.assertEqual((name, given['file_path']), ('Edit', '/place/w/a.py'))
        self.assertEqual(script.counts['read_again'], 0)

    def test_an_edit_whose_text_is_gone_is_read_again_then_printed_then_counted(self):
        script = self.script(READ, EDIT)
        script.answer(asked('please'))
        names = [self.uses(script.answer(asked('please', 'a fold')))[0][0] for _ in range(3)]
        self.assertEqual(names, ['Read', 'Bash', 'Edit'])
        self.assertEqual([script.counts[name] for name in ('read_again', 'printed', 'unmet')], [1, 1, 1])

    def test_a_rare_word_that_is_gone_is_shown_again_by_its_call_or_is_lost(self):
        listed = call(8, 'Bash', 'src/quayside.py', command='ls')
        script = self.script(listed, call(9, 'Bash', 'x', command='wc src/quayside.py please-keep'), READ, EDIT)
        script.answer(asked('please'))
        ((name, given),) = self.uses(script.answer(asked('a fold')))
        self.assertEqual(name, 'Bash')
        self.assertIn('outputs/0', given['command'])
        self.assertEqual(script.counts['repeated'], 1)
        # It is asked for once only.
        script.answer(asked('a fold'))
        self.assertEqual((script.counts['repeated'], script.at), (1, 2))

    def test_the_control_takes_away_old_outputs_and_nothing_else(self):
        results = [{'type': 'tool_result', 'tool_use_id': f'u{at}', 'content': f'output {at}'} for at in range(3)]
        body = {'model': 'm', 'messages': [{'role': 'user', 'content': 'please'}, {'role': 'user', 'content': results}]}
        made = provider.cleared(body, 1)
        self.assertEqual([block['content'] for block in made['messages'][1]['content']], ['[old output cleared]'] * 2 + ['output 2'])
        self.assertEqual((made['messages'][0], results[0]['content']), (body['messages'][0], 'output 0'))

    def test_usage_says_what_is_counted(self):
        body = {**asked('one' * 100, 'two' * 100), 'model': 'm', 'tools': [{'name': 'Edit'}]}
        longer = {**asked('one' * 100, 'two' * 100, 'three' * 100), 'model': 'm', 'tools': [{'name': 'Edit'}]}
        server, url = provider.serve(provider.Script(session.Session('s', recorded(READ, EDIT)), Place()))
        try:
            usages = [self.usage(url, sent) for sent in (body, body, longer)]
        finally:
            server.shutdown()
            server.server_close()
        read = [usage['cache_read_input_tokens'] for usage in usages]
        self.assertEqual(read[0], 0)
        self.assertTrue(0 < read[1] == read[2])
        for usage, sent in zip(usages, (body, body, longer)):
            whole = usage['input_tokens'] + usage['cache_read_input_tokens'] + usage['cache_creation_input_tokens']
            self.assertEqual(whole, len(json.dumps(sent)) // provider.BYTES_PER_TOKEN)

    def usage(self, url, body):
        request = urllib.request.Request(f'{url}/v1/messages', json.dumps(body).encode())
        with urllib.request.urlopen(request) as response:
            return json.load(response)['usage']

    def test_a_cached_prefix_is_cheap_and_a_changed_one_is_not(self):
        grown, changed = self.script(READ, EDIT), self.script(READ, EDIT)
        long = 'x' * 40_000
        for script, second in ((grown, long), (changed, 'y' + long)):
            script.answer(asked(long))
            script.answer(asked(second, 'more'))
        self.assertLess(grown.counts['cost'], changed.counts['cost'] * 0.6)


if __name__ == '__main__':
    unittest.main()
