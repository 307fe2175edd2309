import { cleanInline, type Line } from "@sluice/view/text";
import type { AppContext, Engine } from "./engine.ts";

/** The first lines of the app: version, workspace and what to type. */
export function greeting({ workspace, version }: Pick<AppContext, "workspace" | "version">): readonly Line[] {
  return [
    [
      { text: `Sluice ${version}`, style: "strong" },
      { text: `  ${cleanInline(workspace)}`, style: "dim" },
    ],
    [
      { text: "/run codeReview <task>", style: "accent" },
      { text: " starts a run, " },
      { text: "/help", style: "accent" },
      { text: " shows all commands, " },
      { text: "Ctrl-D", style: "accent" },
      { text: " quits" },
    ],
  ];
}

/** How to configure a model, and what works without one; undefined if a model is found. */
export async function modelHelp(engine: Engine): Promise<readonly Line[] | undefined> {
  if (!(await engine.lacksModel())) return undefined;
  return [
    [],
    [{ text: "No model found: no provider's key is set, and no Ollama answers.", style: "notice" }],
    [{ text: "Set a key and start again, such as " }, { text: "export ANTHROPIC_API_KEY=…", style: "code" }],
    [
      { text: "or name a model for later runs: " },
      { text: "/model openai-compatible/<model>", style: "accent" },
      { text: ", " },
      { text: "/model ollama/<model>", style: "accent" },
    ],
    [{ text: "sluice doctor", style: "code" }, { text: " lists what else is missing." }],
    [
      { text: "Without one: " },
      { text: "/demo", style: "accent" },
      { text: " runs codeReview on a sample repository, offline, with a scripted model." },
    ],
  ];
}
