import { resolve } from "node:path";
import { type PipelineSpec, SluiceError } from "@sluice/core";
import { chooseModel, MODEL_PROVIDERS, type ModelChoice } from "@sluice/stages";

/** What of the command and its surroundings says which model a run gets. */
export interface ModelRequest extends ModelChoice {
  /** What was given by name: `--model`, or the model the run was started with. */
  readonly named: string | undefined;
  /** Where the user stands. */
  readonly here: string;
}

/** A model for a run. */
export interface RunModel {
  readonly id: string;
  /** Why it is this one; said wherever it was not given by name. */
  readonly why?: string;
}

/** The model a run is started with; undefined only where every stage names its own. Throws Session `no_model`. */
export async function modelFor(spec: PipelineSpec, wish: ModelRequest): Promise<RunModel | undefined> {
  const { named, here } = wish;
  if (named !== undefined) return { id: absolute(named, here) };
  const needsOne = [...spec.states.values()].some(({ agent }) => agent !== undefined && agent.model === undefined);
  if (!needsOne) return undefined;
  const chosen = await chooseModel(wish);
  if (chosen === undefined) throw noModel();
  return { id: absolute(chosen.id, here), why: chosen.why };
}

/** A file is named from where the user stands, and a resumed run must find it from anywhere. */
function absolute(model: string, here: string): string {
  const [, kind, file] = /^(scripted|cassette):(.+)$/s.exec(model) ?? [];
  return kind === undefined || file === undefined ? model : `${kind}:${resolve(here, file)}`;
}

function noModel(): SluiceError {
  const ways = MODEL_PROVIDERS.map(({ form, variables }) => {
    const needed = variables.filter(({ required }) => required).map(({ name }) => name);
    return `  --model ${form}${needed.length === 0 ? "" : ` with ${needed.join(", ")} set`}`;
  });
  const variables = MODEL_PROVIDERS.flatMap((provider) => provider.variables.map(({ name }) => name));
  return new SluiceError(
    "Session",
    "no_model",
    [
      "no model was named, no provider's key is set, and no Ollama answers. Give a model, or put it into SLUICE_MODEL:",
      ...ways,
    ].join("\n"),
    {
      detail: { variables: [...new Set(["SLUICE_MODEL", ...variables])] },
    },
  );
}
