import { bundledPipelines, DEFAULT_MODELS, MODEL_PROVIDERS } from "@sluice/stages/runtime";
import type { RunView } from "@sluice/view";
import { executionName } from "@sluice/view/words";
import type { Choice } from "../composer/completion/completion.ts";
import type { Engine } from "./engine.ts";

/** Newest runs that can be completed. */
const MAX_RUNS = 50;

const MODES: readonly Choice[] = [
  { value: "ask", description: "calls outside the rules need your approval" },
  { value: "allowlist", description: "calls that --allow or the config names run; all others are denied" },
  { value: "yolo", description: "all calls run; hard limits still apply" },
];

/** The completions of command arguments, read in advance so that no key waits for them. */
export class Choices {
  readonly #engine: Engine;
  readonly #view: () => RunView | undefined;
  #pipelines: readonly Choice[] = bundled();
  #runs: readonly Choice[] = [];

  constructor(engine: Engine, view: () => RunView | undefined) {
    this.#engine = engine;
    this.#view = view;
  }

  of(kind: string): readonly Choice[] {
    switch (kind) {
      case "pipeline":
        return this.#pipelines;
      case "run":
        return this.#runs;
      case "execution":
        return (this.#view()?.executions ?? []).map((execution) => ({
          value: executionName(execution),
          description: execution.status,
        }));
      case "mode":
        return MODES;
      case "model":
        return [
          ...DEFAULT_MODELS.map(({ id }) => ({ value: id })),
          ...MODEL_PROVIDERS.map(({ form }) => ({ value: form })),
        ];
      default:
        return [];
    }
  }

  async refresh(): Promise<void> {
    const { pipelines } = await this.#engine.project();
    this.#pipelines = [...pipelines.map((value) => ({ value, description: "of this project" })), ...bundled()];
    const runs = await this.#engine.list(MAX_RUNS);
    this.#runs = runs.map(({ runId, status }) => ({ value: runId, description: status }));
  }
}

function bundled(): readonly Choice[] {
  // `auto` comes with the command, since it compiles what a model writes.
  return [...bundledPipelines().keys(), "auto"].map((value) => ({ value, description: "bundled" }));
}
