// Contexture for JavaScript and TypeScript: sends a model only what is still needed of the past.
"use strict";

const { ClosedError, ContextureError, GatewayError, InputError, StoreError } = require("./errors.js");
const { Folder, countTokens, references } = require("./folder.js");
const { Gateway, gateway } = require("./gateway.js");
const { Memory } = require("./memory.js");
const { foldingFetch } = require("./transport.js");

exports.ClosedError = ClosedError;
exports.ContextureError = ContextureError;
exports.Folder = Folder;
exports.Gateway = Gateway;
exports.GatewayError = GatewayError;
exports.InputError = InputError;
exports.Memory = Memory;
exports.StoreError = StoreError;
exports.countTokens = countTokens;
exports.foldingFetch = foldingFetch;
exports.gateway = gateway;
exports.references = references;
