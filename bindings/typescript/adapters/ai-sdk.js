// Vercel AI SDK: a middleware that folds what a model is sent.
"use strict";

const { Folder } = require("../folder.js");
const { bill, foldPrompt } = require("./prompt.js");

function folding(options = {}) {
  const folder = options instanceof Folder ? options : new Folder({ ...options, format: "chat" });
  const sent = new WeakMap();
  const billed = (params, { inputTokens, outputTokens } = {}) => {
    const folded = sent.get(params);
    if (folded === undefined) return;
    sent.delete(params);
    bill(folder, folded, { input: inputTokens?.total, output: outputTokens?.total, cached: inputTokens?.cacheRead });
  };
  return {
    specificationVersion: "v4",
    folder,

    async transformParams({ params, model }) {
      const tools = (params.tools ?? []).filter(({ type }) => type === "function");
      const { folded, prompt } = await foldPrompt(folder, { model: model.modelId, prompt: params.prompt, tools });
      const changed = { ...params, prompt };
      sent.set(changed, folded);
      return changed;
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      billed(params, result.usage);
      return result;
    },

    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      const watched = new TransformStream({
        transform(part, controller) {
          if (part.type === "finish") billed(params, part.usage);
          controller.enqueue(part);
        },
      });
      return { stream: stream.pipeThrough(watched), ...rest };
    },
  };
}

exports.folding = folding;
