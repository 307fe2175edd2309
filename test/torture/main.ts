// What `npm run torture` starts; see README.md beside this. Prints counts, and ends with 1 when a run was harmed.
import { parseArgs } from "node:util";
import { messageOf } from "@sluice/core/runtime";
import { setup } from "../support/own-home.ts";
import { type Campaign, type Case, killedAt, killedResuming, openCampaign, randomCase, type Sum } from "./campaign.ts";
import type { CaseOptions } from "./case.ts";
import { shortForm } from "./short-form.ts";
import type { WorldName } from "./worlds.ts";

const { values } = parseArgs({
  allowNegative: true,
  options: {
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000_000)) },
    random: { type: "string", default: "500" },
    sweep: { type: "boolean", default: true },
    case: { type: "string" },
    at: { type: "string" },
    changed: { type: "boolean", default: false },
    zombie: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
  },
});
const started = Date.now();
const print = (line: string): void => void process.stdout.write(`${line}\n`);

let failed = false;
const removeHome = setup();
process.once("exit", removeHome);
await using campaign = await begun();
const { references } = campaign;
const printSum = (what: string, { cases, kills, processes, modelCalls, toolCalls, unknown, failures }: Sum): void => {
  print(
    `${what}: ${cases} runs, ${kills} kills, ${processes} processes, ${modelCalls} model calls, ${toolCalls} tool calls, ${unknown} cut off`,
  );
  for (const failure of failures) print(`FAILED ${failure}`);
  failed ||= failures.length > 0;
};
const sweep = async (world: WorldName, labels: readonly string[], options?: CaseOptions): Promise<void> => {
  if (failed) return;
  const { journals, points } = references[world];
  const records = journals.reduce((sum, journal) => sum + journal.records.length, 0);
  const what = `${world}: ${labels.length} of ${points.length} places around ${records} records`;
  printSum(what, await campaign.run(killedAt(references[world], labels, options)));
};

if (values.at !== undefined) {
  const world = references.pipeline.points.includes(values.at) ? "pipeline" : "steps";
  await sweep(world, [values.at], values.changed ? { changed: true } : {});
} else if (values.zombie) {
  await presumedDead();
} else if (values.case !== undefined) {
  printSum("one random run", await campaign.run([randomCase(references, Number(values.case))]));
} else if (values.quick) {
  await presumedDead();
  if (!failed) printSum("the shortened form", await campaign.run(shortForm(references)));
} else {
  const seed = Number(values.seed);
  print(`seed ${seed}`);
  await presumedDead();
  for (const world of values.sweep ? (["steps", "pipeline"] as const) : []) {
    await sweep(world, references[world].points);
    if (!failed) printSum(`${world}: killed while it resumes`, await campaign.run([killedResuming(references[world])]));
  }
  await randomly(seed, Number(values.random));
}
print(`${failed ? "FAILED" : "ok"} after ${((Date.now() - started) / 1000).toFixed(0)} s`);
process.exitCode = failed ? 1 : 0;

/** What fails where nobody was killed fails all the more. */
async function begun(): Promise<Campaign> {
  try {
    return await openCampaign(process.env.NODE_COMPILE_CACHE);
  } catch (thrown) {
    print(`FAILED undisturbed: ${messageOf(thrown)}`);
    process.exit(1);
  }
}

async function presumedDead(): Promise<void> {
  try {
    await campaign.zombie();
    print("a process that was presumed dead recorded nothing");
  } catch (thrown) {
    print(`FAILED a process that was presumed dead: ${messageOf(thrown)}`);
    failed = true;
  }
}

/** So many runs that were really killed twice or three times. */
async function randomly(seed: number, wanted: number): Promise<void> {
  if (failed || wanted === 0) return;
  const times = [0, 0, 0, 0];
  const enough = (): boolean => (times[2] ?? 0) + (times[3] ?? 0) >= wanted;
  function* cases(): Generator<Case> {
    for (let at = 0; !enough(); at += 1) yield randomCase(references, seed + at);
  }
  const sum = await campaign.run(cases(), ({ kills }) => {
    times[kills] = (times[kills] ?? 0) + 1;
  });
  printSum(
    `random: ${times[2]} runs killed twice, ${times[3]} three times, ${(times[0] ?? 0) + (times[1] ?? 0)} over before that`,
    sum,
  );
}
