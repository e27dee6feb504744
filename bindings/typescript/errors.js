// What can go wrong, as errors: a sentence, and a hint where something can be done.
"use strict";

class ContextureError extends Error {
  constructor(sentence, hint) {
    super(hint === undefined ? sentence : `${sentence}\nhint: ${hint}`);
    this.name = new.target.name;
    this.sentence = sentence;
    this.hint = hint;
  }
}
class InputError extends ContextureError {}
class ClosedError extends ContextureError {}
class GatewayError extends ContextureError {}
class StoreError extends ContextureError {}

const CLASSES = { ContextureError, InputError, ClosedError, GatewayError, StoreError };

/** The error for a failure of the library, whose message is JSON. */
function understood(error) {
  try {
    const { class: name, sentence, hint } = JSON.parse(error.message);
    return new CLASSES[name](sentence, hint ?? undefined);
  } catch {
    // The library was given a value of another type.
    const isWrongType = /^(InvalidArg|\w+Expected)$/.test(error.code);
    return isWrongType ? new TypeError(error.message, { cause: error }) : error;
  }
}

exports.ContextureError = ContextureError;
exports.InputError = InputError;
exports.ClosedError = ClosedError;
exports.GatewayError = GatewayError;
exports.StoreError = StoreError;
exports.understood = understood;
