// One process's work on a run, which may end at any place: `node life.ts '{"world": "pipeline", "folder": …}'`.
import { join } from "node:path";
import { isSluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { type Death, deadlyPoints, filesArePoints, say } from "./points.ts";
import { WORLDS, type WorldName } from "./worlds.ts";

export interface LifePlan {
  readonly world: WorldName;
  readonly folder: string;
  /** The run to resume; a new one is started when omitted. */
  readonly runId?: string;
  readonly death?: Death;
  readonly napMs?: number;
  readonly changed?: boolean;
}

const { world, folder, runId, death = {}, ...options }: LifePlan = JSON.parse(process.argv[2] ?? "");
const points = deadlyPoints(death, join(folder, "store"));
filesArePoints(points);
const opened = WORLDS[world].open({ folder, points, ...options });
try {
  say({ ended: await (runId === undefined ? opened.start() : opened.resume(runId)) });
} catch (thrown) {
  say({ refused: isSluiceError(thrown) ? thrown.code : "unexpected", why: messageOf(thrown) });
}
await opened.close();
