"""LLMSlim's proxy for agents: `rewrite_request` on every request of Anthropic's format, with its defaults.

Only the outputs of shells and searches of Claude Code are shortened, each once. It has no budget.
"""

from llmslim.proxy.rewrite import Policy, rewrite_request
from llmslim.proxy.store import ProxyStore
from windows import Printer, as_anthropic, from_anthropic, recording, requests


def main():
    messages = recording()
    sent = [as_anthropic(message) for message in messages]
    printer, store, policy = Printer(sent), ProxyStore(':memory:'), Policy()
    for before in requests(messages):
        body = {'model': 'claude-sonnet-4-5', 'max_tokens': 1024, 'messages': sent[:before]}
        made, _ = rewrite_request(body, store, policy)
        printer.print(before, made['messages'], from_anthropic)


main()
