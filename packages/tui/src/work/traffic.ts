import { resolve } from "node:path";
import { SluiceError } from "@sluice/core";
import { type ModelTraffic, recordTraffic, replayTraffic } from "@sluice/stages";
import type { RunModel } from "../project/model.ts";

/** What stands between a run of the command and its models. */
export interface CommandTraffic {
  readonly traffic: ModelTraffic;
  /** What is said aside when the run has ended here, a line each. */
  said(): readonly string[];
}

export interface TrafficWish {
  /** `--record`. */
  readonly record: string | undefined;
  readonly model: RunModel | undefined;
  /** Where the user stands. */
  readonly here: string;
  /** Whether the run was begun before: its recording goes on. */
  readonly resumed: boolean;
}

/** Undefined where models are called as they are. Throws Validation `usage` where a replay would be recorded. */
export function trafficOf({ record, model, here, resumed }: TrafficWish): CommandTraffic | undefined {
  const replay = /^replay:(.+)$/s.exec(model?.id ?? "")?.[1];
  if (replay !== undefined && record !== undefined)
    throw new SluiceError("Validation", "usage", "--record needs a model to record, and a replay is none");
  if (record !== undefined) return recorded(resolve(here, record), resumed);
  return replay === undefined ? undefined : replayed(replay);
}

function recorded(file: string, resumed: boolean): CommandTraffic {
  const traffic = recordTraffic(file, { existing: resumed ? "append" : "refuse" });
  return {
    traffic,
    said: () =>
      traffic.fault === undefined ? [`recorded in ${file}`] : [`not all is recorded: ${traffic.fault.message}`],
  };
}

function replayed(file: string): CommandTraffic {
  const traffic = replayTraffic(file);
  return {
    traffic,
    said: () => {
      if (traffic.divergence !== undefined) return [traffic.divergence.message];
      const unused = traffic.unused().map(({ stage, turn, line }) => `stage ${stage}, turn ${turn + 1} (line ${line})`);
      return unused.length === 0 ? [] : [`answers of ${file} that the run did not come to: ${unused.join("; ")}`];
    },
  };
}
