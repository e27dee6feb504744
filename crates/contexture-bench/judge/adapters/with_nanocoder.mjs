// Nanocoder's automatic compaction with its defaults and the budget as the size of the window.
//
//   with_nanocoder.mjs DIST BUDGET     DIST is the folder `dist` of the package
//
// It is called where the agent calls it: after each of its messages, before the calls of that message are run. What it
// returns replaces the conversation. Tokens are counted by its tokenizer for unknown models.

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [dist, budget] = process.argv.slice(2);
const load = path => import(pathToFileURL(`${dist}/${path}`));
const { performAutoCompact } = await load('utils/auto-compact.js');
const { setSessionContextLimit } = await load('models/index.js');
setSessionContextLimit(Number(budget));
const DEFAULTS = { enabled: true, threshold: 60, mode: 'conservative', notifyUser: false };

const text = value => (typeof value === 'string' ? value : JSON.stringify(value ?? ''));

function asNanocoder(message) {
	const calls = (message.tool_calls ?? []).map(call => ({
		id: call.id,
		function: { name: call.name, arguments: call.arguments },
	}));
	return {
		role: message.role,
		content: message.text ?? '',
		...(calls.length ? { tool_calls: calls } : {}),
		...(message.role === 'tool' ? { tool_call_id: message.tool_call_id, name: message.name ?? 'tool' } : {}),
	};
}

function plain(message) {
	if (recorded.has(message)) return { at: recorded.get(message) };
	const calls = (message.tool_calls ?? []).map(call => ({ id: call.id, ...call.function }));
	return {
		role: message.role,
		text: text(message.content),
		...(calls.length ? { tool_calls: calls } : {}),
		...(message.role === 'tool' ? { tool_call_id: message.tool_call_id } : {}),
	};
}

const recording = readFileSync(0, 'utf8').split('\n').filter(line => line.trim()).map(line => JSON.parse(line));
const messages = recording.map(asNanocoder);
// What comes back as the same object was not changed.
const recorded = new Map(messages.map((message, at) => [message, at]));
let conversation = [];
let window = [];
const lines = [];
for (const [at, message] of messages.entries()) {
	if (message.role === 'assistant') {
		const next = conversation.map(plain);
		let keep = 0;
		while (keep < Math.min(next.length, window.length) && JSON.stringify(next[keep]) === JSON.stringify(window[keep])) keep++;
		window = next;
		lines.push(JSON.stringify({ before: at, keep, messages: next.slice(keep) }));
	}
	conversation = [...conversation, message];
	if (message.role === 'assistant') {
		const system = { role: 'system', content: '' };
		conversation = (await performAutoCompact(conversation, system, 'custom', 'custom', DEFAULTS)) ?? conversation;
	}
}
// What it has started keeps a program alive; an exit before all is written would cut the output.
process.stdout.write(`${lines.join('\n')}\n`, () => process.exit(0));
