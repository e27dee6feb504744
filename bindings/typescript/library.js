// The compiled library, which is loaded when it is first used: the gateway works without it.
"use strict";

const { ContextureError, understood } = require("./errors.js");

const VARIABLE = "CONTEXTURE_LIBRARY";

let loaded;

/** The library: what CONTEXTURE_LIBRARY names, else that of the installed package. */
function library() {
  loaded ??= load();
  return loaded;
}

function load() {
  const named = process.env[VARIABLE];
  const place = named || `contexture-cli-${process.platform}-${process.arch}/lib/contexture.node`;
  try {
    return loadedFrom(place);
  } catch (error) {
    const hint = named
      ? `unset ${VARIABLE}, or correct it`
      : `the gateway works without it; otherwise name the library with the variable ${VARIABLE}`;
    throw new ContextureError(`load the library of contexture from \`${place}\`: ${error.message}`, hint);
  }
}

function loadedFrom(place) {
  if (!process.env[VARIABLE]) return require(place);
  // Under any name, as cargo has built it.
  const module = { exports: {} };
  process.dlopen(module, require("node:path").resolve(place));
  return module.exports;
}

/** Calls the library. Failures are errors of this package. */
function call(work) {
  try {
    return work(library());
  } catch (error) {
    throw understood(error);
  }
}

/** The same for what returns a promise. */
async function promised(work) {
  try {
    return await work(library());
  } catch (error) {
    throw understood(error);
  }
}

exports.call = call;
exports.promised = promised;
