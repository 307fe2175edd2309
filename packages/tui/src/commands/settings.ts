import { SluiceError } from "@sluice/core";
import { SECURITY_MODES } from "@sluice/core/runtime";
import { MODEL_PROVIDERS } from "@sluice/stages/runtime";
import { type Command, usageError } from "../app/command.ts";

export const model: Command = {
  name: "model",
  description: "set the model for later runs",
  usage: "[provider/model]",
  takes: [{ kind: "model", optional: true }],
  run: (words, app) => {
    if (words === "") {
      app.say(`later runs: ${app.engine.flags.model ?? "the project's model, else the first with a key"}`);
      return;
    }
    const fault = faultIn(words);
    if (fault !== undefined) throw new SluiceError("Validation", "unknown_provider", fault);
    app.engine.set({ model: words });
    app.say(`later runs use ${words}; active runs keep their model`, "good");
  },
};

/** What is wrong with the form of a model id; whether the model exists is known only when it is called. */
function faultIn(id: string): string | undefined {
  const prefixes = MODEL_PROVIDERS.map(({ form }) => form.slice(0, form.indexOf("<")));
  const prefix = prefixes.find((one) => id.startsWith(one));
  const forms = `valid forms: ${MODEL_PROVIDERS.map(({ form }) => form).join(", ")}`;
  if (prefix === undefined) return `${id} names no known provider; ${forms}`;
  return id === prefix || id.includes("<") ? `${id} names no model; ${forms}` : undefined;
}

export const mode: Command = {
  name: "mode",
  description: "set the mode of stages without an envelope, for later runs",
  usage: "[ask|allowlist|yolo]",
  takes: [{ kind: "mode", optional: true }],
  run: (words, app) => {
    if (words === "") {
      app.say(`later runs: ${app.engine.flags.mode ?? "the project's mode, else ask"}`);
      return;
    }
    const chosen = SECURITY_MODES.find((known) => known === words);
    if (chosen === undefined) throw usageError(`${words} is not a mode; the modes are ${SECURITY_MODES.join(", ")}`);
    app.engine.set({ mode: chosen });
    app.say(`later runs use mode ${chosen}; stages with an envelope are not affected`, "good");
  },
};

export const reload: Command = {
  name: "reload",
  description: "reload config, pipelines and MCP servers for later runs",
  usage: "",
  run: async (_words, app) => {
    app.engine.reload();
    await app.engine.project();
    app.say("config, pipelines and MCP servers are reloaded; active runs keep theirs", "good");
  },
};
