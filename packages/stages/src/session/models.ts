import { resolve } from "node:path";
import { SluiceError } from "@sluice/core";
import { playbackTraffic } from "../models/cassettes/playback.ts";
import type { ModelTraffic, TrafficScope } from "../models/cassettes/traffic.ts";
import type { ResolvedModel } from "../models/model.ts";
import { resolveModel } from "../models/registry.ts";
import type { SessionOptions } from "./options.ts";

/** Resolves the models of a session's states, each one once. */
export function sessionModels(
  options: Pick<SessionOptions, "model" | "traffic" | "baseUrls" | "promptCache">,
  scope: TrafficScope,
) {
  const { model: sessionModel, baseUrls, promptCache } = options;
  const traffic = options.traffic ?? playbackOf(sessionModel, scope.root);
  const settings = {
    env: scope.env,
    cwd: scope.root,
    clock: scope.clock,
    ...(baseUrls === undefined ? {} : { baseUrls }),
    ...(promptCache === undefined ? {} : { promptCache }),
  };
  const models = new Map<string, Promise<ResolvedModel>>();
  const resolveFor = (stage: string, named: string | undefined): Promise<ResolvedModel> => {
    const model = named ?? sessionModel;
    const load = async (): Promise<ResolvedModel> => {
      if (model === undefined) throw noModel();
      return typeof model === "object" && "at" in model ? model : await resolveModel(model, settings);
    };
    if (traffic === undefined) return load();
    return traffic.model({ stage, load, ...(typeof model === "string" ? { named: model } : {}) }, scope);
  };
  return {
    of(stage: string, named: string | undefined): Promise<ResolvedModel> {
      const key = named ?? "";
      const known = models.get(key) ?? resolveFor(stage, named);
      models.set(key, known);
      return known;
    },
    /** Files that runs must not write. */
    files: (): readonly string[] => traffic?.files ?? [],
  };
}

/** If the session's model is a cassette, it also answers stages that name another model, so that playback never costs anything. */
function playbackOf(model: SessionOptions["model"], root: string): ModelTraffic | undefined {
  const file = typeof model === "string" ? /^cassette:(.+)$/su.exec(model)?.[1] : undefined;
  return file === undefined ? undefined : playbackTraffic(resolve(root, file));
}

export function noModel(): SluiceError {
  return new SluiceError(
    "Session",
    "no_model",
    "no model is configured: use anthropic/<model> with ANTHROPIC_API_KEY set, scripted:<file> or another model id",
  );
}
