import { bundledPipelines, DEFAULT_MODELS, MODEL_PROVIDERS } from "@sluice/stages";
import type { RunView } from "@sluice/view";
import type { Choice } from "../composer/completion/completion.ts";
import type { Engine } from "./engine.ts";

/** Runs that are offered, newest first. */
const MOST_RUNS = 50;

const MODES: readonly Choice[] = [
  { value: "ask", description: "what no envelope covers is put to you" },
  { value: "allowlist", description: "what --allow or the config names runs, all else is denied" },
  { value: "yolo", description: "stages without an envelope run everything; hard limits still hold" },
];

/** What a command's words may be, by kind. What has to be read is read beforehand: a key never waits for it. */
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
        // Of the run that is looked at.
        return (this.#view()?.executions ?? []).map(({ executionId, status }) => ({
          value: executionId,
          description: status,
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

  /** Reads anew what there is. */
  async refresh(): Promise<void> {
    const { pipelines: own } = await this.#engine.project();
    this.#pipelines = [...own.map((value) => ({ value, description: "of this project" })), ...bundled()];
    const runs = await this.#engine.list(MOST_RUNS);
    this.#runs = runs.map(({ runId, status }) => ({ value: runId, description: status }));
  }
}

function bundled(): readonly Choice[] {
  return [...bundledPipelines().keys()].map((value) => ({ value, description: "bundled" }));
}
