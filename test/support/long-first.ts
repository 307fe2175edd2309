import { join } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const TESTS = join(import.meta.dirname, "..");
/** The files that take longest, in seconds of an idle machine: started late, they would run on when all others are over. */
const LONG = [
  "attack/shell-ordinary.test.ts",
  "attack/shell-corpus.test.ts",
  "command/serve.test.ts",
  "command/action.test.ts",
  "attack/answers-behind-the-wall.test.ts",
  "torture/torture.test.ts",
  "attack/shell-writes.test.ts",
  "command/kill-signals.test.ts",
  "packages/packed.test.ts",
  "command/long-runs.test.ts",
  "facts/gateway/kills.test.ts",
  "terminal/storm.test.ts",
  "terminal/life.test.ts",
  "facts/duet/kills.test.ts",
  "property/model-streams.test.ts",
  "conformance/store-faults.test.ts",
  "property/reference-machine.test.ts",
  "unit/sandbox-view.test.ts",
  "wire/echoed-keys.test.ts",
].map((file) => join(TESTS, file));

/** Runs the longest files first, and then the others of each project together, which share what they have loaded. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = new Map(LONG.map((file, at) => [file, at]));
    const rankOf = ({ moduleId }: TestSpecification): number => rank.get(moduleId) ?? LONG.length;
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
