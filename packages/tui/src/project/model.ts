import { resolve } from "node:path";
import { type PipelineSpec, SluiceError } from "@sluice/core";
import { MODEL_PROVIDERS } from "@sluice/stages";

/** The model a run is started with; undefined only where every stage names its own. Throws Session `no_model`. */
export function modelFor(spec: PipelineSpec, named: string | undefined, here: string): string | undefined {
  if (named !== undefined) return absolute(named, here);
  const needsOne = [...spec.states.values()].some(({ agent }) => agent !== undefined && agent.model === undefined);
  if (needsOne) throw noModel();
  return undefined;
}

/** A script is named from where the user stands, and a resumed run must find it from anywhere. */
function absolute(model: string, here: string): string {
  const file = /^scripted:(.+)$/s.exec(model)?.[1];
  return file === undefined ? model : `scripted:${resolve(here, file)}`;
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
    ["no model was named. Give one, or put it into SLUICE_MODEL:", ...ways].join("\n"),
    {
      detail: { variables: ["SLUICE_MODEL", ...variables] },
    },
  );
}
