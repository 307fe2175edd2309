import { resolve } from "node:path";
import { SluiceError } from "@sluice/core";
import { playbackTraffic } from "../models/cassettes/playback.ts";
import type { ModelTraffic, TrafficScope } from "../models/cassettes/traffic.ts";
import type { ResolvedModel } from "../models/model.ts";
import type { ModelOptions } from "../models/providers/settings.ts";
import { type ModelObject, resolveModel } from "../models/registry.ts";

/** What of a session's options its models are made of. */
export interface SessionModelOptions {
  readonly model?: string | ModelObject | ResolvedModel | undefined;
  readonly traffic?: ModelTraffic | undefined;
  readonly baseUrls?: ModelOptions["baseUrls"] | undefined;
}

/** The model of each state of a session, by the state's id and the model it names; each is resolved once. */
export function sessionModels(options: SessionModelOptions, place: TrafficScope) {
  const { model: usual, baseUrls } = options;
  const traffic = options.traffic ?? replayed(usual, place.root);
  const settings = {
    env: place.env,
    cwd: place.root,
    clock: place.clock,
    ...(baseUrls === undefined ? {} : { baseUrls }),
  };
  const models = new Map<string, Promise<ResolvedModel>>();
  const make = (stage: string, named: string | undefined): Promise<ResolvedModel> => {
    const model = named ?? usual;
    const load = async (): Promise<ResolvedModel> => {
      if (model === undefined) throw noModel();
      return typeof model === "object" && "at" in model ? model : await resolveModel(model, settings);
    };
    if (traffic === undefined) return load();
    return traffic.model({ stage, load, ...(typeof model === "string" ? { named: model } : {}) }, place);
  };
  return {
    of(stage: string, named: string | undefined): Promise<ResolvedModel> {
      const key = named ?? "";
      const known = models.get(key) ?? make(stage, named);
      models.set(key, known);
      return known;
    },
    /** Files no run may write. */
    files: (): readonly string[] => traffic?.files ?? [],
  };
}

/** A session whose model is a cassette calls no other model either: a replay costs nothing, whatever its stages name. */
function replayed(model: SessionModelOptions["model"], root: string): ModelTraffic | undefined {
  const file = typeof model === "string" ? /^cassette:(.+)$/su.exec(model)?.[1] : undefined;
  return file === undefined ? undefined : playbackTraffic(resolve(root, file));
}

export function noModel(): SluiceError {
  return new SluiceError(
    "Session",
    "no_model",
    "no model: give one, such as anthropic/<model> with ANTHROPIC_API_KEY set, or scripted:<file>",
  );
}
