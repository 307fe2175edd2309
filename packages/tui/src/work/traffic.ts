import { isAbsolute, relative, resolve, sep } from "node:path";
import { SluiceError } from "@sluice/core";
import { type ModelTraffic, recordTraffic, replayTraffic } from "@sluice/stages";
import type { RunModel } from "../project/model.ts";
import { realPath } from "../project/place.ts";

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
  readonly workspace: string;
  /** Whether the run was begun before: its recording goes on. */
  readonly resumed: boolean;
}

/** Undefined where models are called as they are. Throws Validation `usage` where a replay would be recorded. */
export function trafficOf({ record, model, here, workspace, resumed }: TrafficWish): CommandTraffic | undefined {
  const replay = /^replay:(.+)$/s.exec(model?.id ?? "")?.[1];
  if (replay !== undefined && record !== undefined)
    throw new SluiceError("Validation", "usage", "--record needs a model to record, and a replay is none");
  if (record !== undefined) return recorded(resolve(here, record), workspace, resumed);
  return replay === undefined ? undefined : replayed(replay);
}

function recorded(file: string, workspace: string, resumed: boolean): CommandTraffic {
  const traffic = recordTraffic(file, { existing: resumed ? "append" : "refuse" });
  return {
    traffic,
    said: () => {
      if (traffic.fault !== undefined) return [`not all is recorded: ${traffic.fault.message}`];
      return isWithin(workspace, file) ? [`recorded in ${file}`, IN_SIGHT] : [`recorded in ${file}`];
    },
  };
}

/** What a run's tools find is part of what its model is asked next. */
const IN_SIGHT = "that is in the workspace: move it elsewhere before it is played, since a Grep would find it there";

function isWithin(folder: string, file: string): boolean {
  const way = relative(realPath(folder), realPath(file));
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
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
