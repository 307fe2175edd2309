import { systemClock } from "@sluice/core";
import { chooseModel } from "@sluice/stages";
import type { Line } from "../text/line.ts";
import type { CommandContext } from "../work/context.ts";
import type { Engine } from "./engine.ts";

/** Where no model can be found: how to set a key, and what can be done without one. Undefined where there is one. */
export async function modelHelp(engine: Engine, { env }: CommandContext): Promise<readonly Line[] | undefined> {
  const { flags } = engine;
  const { config } = await engine.project();
  if ((flags.model ?? config?.settings.model) !== undefined) return undefined;
  const chosen = await chooseModel({
    configured: undefined,
    ...(config?.settings.defaultModels === undefined ? {} : { defaultModels: config.settings.defaultModels }),
    baseUrls: config?.settings.baseUrls ?? {},
    env,
    clock: systemClock,
  });
  if (chosen !== undefined) return undefined;
  return [
    [],
    [{ text: "No model yet: no provider's key is set, and no Ollama answers.", style: "notice" }],
    [{ text: "Set a key and start again, such as " }, { text: "export ANTHROPIC_API_KEY=…", style: "code" }],
    [
      { text: "or name a model for later runs: " },
      { text: "/model openai-compatible/<model>", style: "accent" },
      { text: ", " },
      { text: "/model ollama/<model>", style: "accent" },
    ],
    [{ text: "sluice doctor", style: "code" }, { text: " says what else is missing." }],
    [
      { text: "Without one: " },
      { text: "/demo", style: "accent" },
      { text: " runs codeReview on a sample repository, offline, with a scripted model." },
    ],
  ];
}
