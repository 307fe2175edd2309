import { Session } from "node:inspector";
import { join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { z } from "zod";

/** The repository. */
export const root = join(import.meta.dirname, "..", "..");

/** How often each function ran, by its source file, and then by its name and its offset in the file. */
export type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>;

export interface Counter {
  /** Counts from 0 from now on. */
  start(): void;
  /** The calls since `start`. */
  stop(): Counts;
}

const ROOT_URL = pathToFileURL(root + sep).href;
const SOURCE = /^packages\/[^/]+\/src\/.+\.tsx?$/;

/** What is read of V8's coverage. The first range of a function holds its calls. */
const coverageSchema = z.object({
  result: z.array(
    z.object({
      url: z.string(),
      functions: z.array(
        z.object({
          functionName: z.string(),
          ranges: z.array(z.object({ startOffset: z.number(), count: z.number() })),
        }),
      ),
    }),
  ),
});

/** Counts calls in this process. Start and stop are synchronous, so that a hook in the middle of a run can be either end. */
export function openCounter(): Counter {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const take = (): unknown => {
    let taken: unknown;
    session.post("Profiler.takePreciseCoverage", (error, coverage) => {
      if (error !== null) throw error;
      taken = coverage;
    });
    return taken;
  };
  return { start: take, stop: () => callsIn(take()) };
}

/** The calls of functions in the packages. The evaluation of a module is no call. */
export function callsIn(coverage: unknown): Counts {
  const counts: Record<string, Record<string, number>> = {};
  for (const { source, functions } of sourcesIn(coverage)) {
    const ran: Record<string, number> = {};
    for (const { functionName, ranges } of functions) {
      const [first] = ranges;
      if (first === undefined || first.count === 0) continue;
      if (functionName === "" && first.startOffset === 0) continue;
      ran[`${functionName}@${first.startOffset}`] = first.count;
    }
    if (Object.keys(ran).length > 0) counts[source] = ran;
  }
  return counts;
}

/** How many modules of the packages were loaded. */
export function modulesIn(coverage: unknown): number {
  return sourcesIn(coverage).length;
}

function sourcesIn(coverage: unknown) {
  return coverageSchema.parse(coverage).result.flatMap(({ url, functions }) => {
    if (!url.startsWith(ROOT_URL)) return [];
    const source = relative(root, fileURLToPath(url)).split(sep).join("/");
    return SOURCE.test(source) ? [{ source, functions }] : [];
  });
}
