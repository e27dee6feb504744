// Mastra: an input processor that folds what a model is sent.
"use strict";

const { Folder } = require("../folder.js");
const { bill, foldPrompt } = require("./prompt.js");

class Folding {
  id = "contexture";
  name = "contexture";

  constructor(options = {}) {
    this.folder = options instanceof Folder ? options : new Folder({ ...options, format: "chat" });
  }

  async processLLMRequest({ prompt: came, model, state }) {
    const { folded, prompt } = await foldPrompt(this.folder, { model: model?.modelId, prompt: came });
    state.contextureFolded = folded;
    return { prompt };
  }

  async processLLMResponse({ chunks, fromCache, state }) {
    const folded = state.contextureFolded;
    delete state.contextureFolded;
    const usage = chunks.findLast(({ type }) => type === "finish")?.payload?.output?.usage;
    if (folded === undefined || fromCache || usage === undefined) return;
    bill(this.folder, folded, { input: usage.inputTokens, output: usage.outputTokens, cached: usage.cachedInputTokens });
  }
}

exports.Folding = Folding;
