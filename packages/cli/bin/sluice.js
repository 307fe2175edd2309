#!/usr/bin/env node
// Old syntax on purpose: a Node that is too old must be able to read this file and say so.
var needed = [22, 18, 0];
var running = process.versions.node.split(".").map(Number);

function olderThan(a, b) {
  if (a[0] !== b[0]) return a[0] < b[0];
  if (a[1] !== b[1]) return a[1] < b[1];
  return a[2] < b[2];
}

function stop(line) {
  process.stderr.write("sluice: " + line + "\n");
  process.exitCode = 4;
}

// Node 22 announces node:sqlite as experimental at every start, and every Node that a config's folder has a package.json
// without a type; all other warnings stay.
function silenceNotices() {
  var emitWarning = process.emitWarning;
  process.emitWarning = function (warning, ...rest) {
    if (rest[0] === "ExperimentalWarning" && String(warning).indexOf("SQLite ") === 0) return;
    if (rest[0] && rest[0].code === "MODULE_TYPELESS_PACKAGE_JSON") return;
    emitWarning.call(process, warning, ...rest);
  };
}

function isMissingBuild(error) {
  return error && error.code === "ERR_MODULE_NOT_FOUND" && /\/dist\//.test(String(error.url || error.message));
}

if (olderThan(running, needed)) {
  stop(
    "this is Node " +
      process.versions.node +
      ", Sluice needs " +
      needed.join(".") +
      " or newer: install it from https://nodejs.org, or in a clone of the repository run `npm start`, which brings its own.",
  );
} else {
  silenceNotices();
  // Stacks then lead to the sources; reading the maps of all bundles takes as long as most commands.
  if (process.argv.indexOf("--debug") !== -1 || (process.env.SLUICE_DEBUG || "0") !== "0") {
    process.setSourceMapsEnabled(true);
  }
  import("../../cli/dist/main.js").catch(function (error) {
    if (!isMissingBuild(error)) throw error;
    stop("it is not built yet: run `npm run build` in the root of the repository (`npm start` installs and builds).");
  });
}
