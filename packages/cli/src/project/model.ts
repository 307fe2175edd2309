import { resolve } from "node:path";
import { type PipelineSpec, SluiceError, systemClock } from "@sluice/core";
import { chooseModel, type ModelChoice } from "@sluice/stages";
import { agentsWithin, MODEL_PROVIDERS } from "@sluice/stages/runtime";
import type { Environment } from "@sluice/tui/user";
import type { LoadedConfig } from "./load-config.ts";

/** Everything that determines the model of a run. */
export interface ModelRequest extends ModelChoice {
  /** `--model`, or the model that the run was started with. */
  readonly named: string | undefined;
  /** The current folder. */
  readonly here: string;
}

export interface RunModel {
  readonly id: string;
  /** Why it was chosen; absent if it was set by name. */
  readonly why?: string;
}

/** What a config and an environment say about the model. */
export function choiceOf(config: LoadedConfig | undefined, env: Environment): ModelChoice {
  const { model: configured, defaultModels = {}, baseUrls = {} } = config?.settings ?? {};
  return { configured, defaultModels, baseUrls, env, clock: systemClock };
}

/** The model of a new run; undefined only if every stage sets its own. Throws Session `no_model`. */
export async function modelFor(spec: PipelineSpec, request: ModelRequest): Promise<RunModel | undefined> {
  const { named, here } = request;
  if (named !== undefined) return { id: absolute(named, here) };
  const needsOne = agentsWithin(spec).some(([, agent]) => agent.model === undefined);
  if (!needsOne) return undefined;
  const chosen = await chooseModel(request);
  if (chosen === undefined) throw noModel();
  return { id: absolute(chosen.id, here), why: chosen.why };
}

/** Makes file names absolute, since a run can be resumed from another folder. */
function absolute(model: string, here: string): string {
  const [, kind, file] = /^(scripted|cassette):(.+)$/s.exec(model) ?? [];
  return kind === undefined || file === undefined ? model : `${kind}:${resolve(here, file)}`;
}

function noModel(): SluiceError {
  const forms = MODEL_PROVIDERS.map(({ form, variables }) => {
    const needed = variables.filter(({ required }) => required).map(({ name }) => name);
    return `  --model ${form}${needed.length === 0 ? "" : ` with ${needed.join(", ")} set`}`;
  });
  const variables = MODEL_PROVIDERS.flatMap((provider) => provider.variables.map(({ name }) => name));
  return new SluiceError(
    "Session",
    "no_model",
    [
      "no model is set, no provider's key is set, and no Ollama answers. Set a model with --model or SLUICE_MODEL:",
      ...forms,
    ].join("\n"),
    { detail: { variables: [...new Set(["SLUICE_MODEL", ...variables])] } },
  );
}
