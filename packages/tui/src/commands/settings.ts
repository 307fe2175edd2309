import { type SecurityMode, SluiceError } from "@sluice/core";
import { MODEL_PROVIDERS } from "@sluice/stages";
import type { Command } from "./command.ts";

export const model: Command = {
  name: "model",
  description: "the model of later runs",
  usage: "[provider/model]",
  takes: [{ kind: "model", optional: true }],
  run: (words, app) => {
    if (words === "") {
      app.say(`later runs: ${app.engine.flags.model ?? "the project's model, else by the keys that are set"}`);
      return;
    }
    const fault = faultIn(words);
    if (fault !== undefined) throw new SluiceError("Validation", "unknown_provider", fault);
    app.engine.set({ model: words });
    app.say(`later runs use ${words}; running ones keep theirs`, "good");
  },
};

/** What is wrong with how a model is written. Whether there is such a one its provider says, when it is called. */
function faultIn(id: string): string | undefined {
  const starts = MODEL_PROVIDERS.map(({ form }) => form.slice(0, form.indexOf("<")));
  const start = starts.find((one) => id.startsWith(one));
  const known = `a model is written ${MODEL_PROVIDERS.map(({ form }) => form).join(", ")}`;
  if (start === undefined) return `${id} names no provider that is known; ${known}`;
  return id === start || id.includes("<") ? `${id} names no model; ${known}` : undefined;
}

const MODES: readonly SecurityMode[] = ["ask", "allowlist", "yolo"];

export const mode: Command = {
  name: "mode",
  description: "what decides in stages without an envelope, for later runs",
  usage: "[ask|allowlist|yolo]",
  takes: [{ kind: "mode", optional: true }],
  run: (words, app) => {
    if (words === "") {
      app.say(`later runs: ${app.engine.flags.mode ?? "the project's mode, else ask"}`);
      return;
    }
    const chosen = MODES.find((known) => known === words);
    if (chosen === undefined)
      throw new SluiceError("Validation", "usage", `${words} is no mode; there are ${MODES.join(", ")}`);
    app.engine.set({ mode: chosen });
    app.say(`later runs work in mode ${chosen}; stages with an envelope are gated by it in every mode`, "good");
  },
};

export const reload: Command = {
  name: "reload",
  description: "read config, pipelines and MCP servers anew, for later runs",
  usage: "",
  run: async (_words, app) => {
    app.engine.reload();
    await app.engine.project();
    app.say("config, pipelines and MCP servers are read anew; running runs keep theirs", "good");
  },
};
