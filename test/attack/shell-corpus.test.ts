import { expect, test } from "vitest";
import {
  ATTACKS,
  type Came,
  comesOf,
  described,
  ENVELOPES,
  type ShellAttack,
  type WallMode,
} from "../support/shell-lanes.ts";

// Every line of the corpus is given to a stage by a model. Each was confirmed to have its effect in plain bash
// (test/fixtures/shell/confirm.ts); here none may have any.

/**
 * Most lines are of the stage that only reads, and all of them take minutes: a third runs, another each day. `SLUICE_CORPUS=all` runs
 * every line, and 0, 1 or 2 that third.
 */
const THIRDS = 3;
const CHOSEN = process.env.SLUICE_CORPUS ?? String(Math.floor(Date.now() / 86_400_000) % THIRDS);

function summary(stageName: string, mode: WallMode, came: readonly Came[]): string {
  const outcomes = Map.groupBy(came, ({ outcome }) => outcome);
  const counts = [...outcomes].map(([outcome, { length }]) => `${length} ${outcome}`).join(", ");
  const had = came.filter(({ effects }) => effects.length > 0).length;
  const which = stageName === "read-only" ? ` (SLUICE_CORPUS=${CHOSEN})` : "";
  return `${stageName}${which}, sandbox ${mode}: ${had} of ${came.length} had an effect (${counts})`;
}

test.each((["off", "try"] as const).flatMap((mode) => Object.keys(ENVELOPES).map((name) => [name, mode] as const)))(
  "lines of a stage that is %s, sandbox %s: none has an effect",
  async (stageName, mode) => {
    // What a command may eat behind the wall is tested with the wall: memory is filled here for nothing.
    const eats = ({ effect, name }: ShellAttack): boolean => effect === "eaten" && name.startsWith("memory");
    const attacks = ATTACKS.filter((attack) => attack.stage === stageName && !(mode === "try" && eats(attack))).filter(
      (_, at) => CHOSEN === "all" || stageName !== "read-only" || at % THIRDS === Number(CHOSEN),
    );
    const came = await comesOf(attacks, { sandbox: mode, allowedTools: ENVELOPES[stageName] ?? [] });
    console.log(summary(stageName, mode, came));
    const had = came.filter(({ effects }) => effects.length > 0);
    const known = mode === "off" ? had.filter(unguarded) : [];
    if (known.length > 0) console.log(`without a wall these stay:\n${known.map(described).join("\n")}`);
    expect(had.filter((each) => !known.includes(each)).map(described)).toEqual([]);
  },
  900_000,
);

/** Without a wall, a stage that may run everything writes what its user can, and a rule's command runs with any words behind it. */
function unguarded({ attack: { stage: its, family } }: Came): boolean {
  return its === "writing" || family === "words that a rule lets through";
}
