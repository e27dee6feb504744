// A conversation with much work in it: an agent that reads files, as its provider is asked turn by turn.

export function fileText(number, lines = 260) {
  return Array.from({ length: lines }, (_, line) => `def f_${number}_${line}(value): return value * ${line} + ${number}\n`).join("");
}

/** The body of a request in one of the formats, after so many calls. */
export function request(format, turns) {
  if (format === "messages") return { model: "claude-opus-4-8", max_tokens: 100, messages: anthropic(turns) };
  return format === "responses" ? { model: "gpt-5", input: responses(turns) } : { model: "gpt-5", messages: chat(turns) };
}

const TASK = { role: "user", content: "Read all modules, and say what they have in common." };

function numbers(turns) {
  return Array.from({ length: turns }, (_, number) => number);
}

export function chat(turns) {
  const read = (n) => {
    const call = { id: `call_${n}`, type: "function", function: { name: "read_file", arguments: `{"path":"src/m${n}.py"}` } };
    const content = fileText(n);
    return [
      { role: "assistant", content: `Now module ${n}.`, tool_calls: [call] },
      { role: "tool", tool_call_id: `call_${n}`, content },
    ];
  };
  return [TASK, ...numbers(turns).flatMap(read)];
}

function anthropic(turns) {
  const read = (n) => {
    const use = { type: "tool_use", id: `toolu_${n}`, name: "Read", input: { file_path: `/w/m${n}.py` } };
    const result = { type: "tool_result", tool_use_id: `toolu_${n}`, content: fileText(n) };
    return [
      { role: "assistant", content: [{ type: "text", text: `Now module ${n}.` }, use] },
      { role: "user", content: [result] },
    ];
  };
  return [TASK, ...numbers(turns).flatMap(read)];
}

function responses(turns) {
  const read = (n) => [
    { type: "function_call", call_id: `call_${n}`, name: "read_file", arguments: `{"path":"src/m${n}.py"}` },
    { type: "function_call_output", call_id: `call_${n}`, output: fileText(n) },
  ];
  return [TASK, ...numbers(turns).flatMap(read)];
}

/** The same as contents of Gemini. */
export function gemini(turns) {
  const read = (n) => [
    { role: "model", parts: [{ functionCall: { name: "read_file", args: { path: `src/m${n}.py` } } }] },
    { role: "user", parts: [{ functionResponse: { name: "read_file", response: { output: fileText(n) } } }] },
  ];
  return [{ role: "user", parts: [{ text: TASK.content }] }, ...numbers(turns).flatMap(read)];
}
