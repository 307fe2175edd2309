// One scenario in a process of its own: two rounds that warm up, thirty that count. Prints the fewest calls of each function as JSON:
// what a round does more often comes from when timers and files of the machine were ready.
import { openCounter } from "./coverage.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import { fewest } from "./share.ts";

const warmUps = 2;
const rounds = 30;
const [, , name = ""] = process.argv;
const scenario = await scenarioOf(name);
const counter = openCounter();
for (let round = 0; round < warmUps; round += 1) await scenario(counter);
let counts = await scenario(counter);
for (let round = 1; round < rounds; round += 1) counts = fewest(counts, await scenario(counter));
process.stdout.write(JSON.stringify(counts));

async function scenarioOf(name: string): Promise<Scenario> {
  if (name === "a letter") return (await import("./key.ts")).letter;
  const found = new Map<string, Scenario>(Object.entries(SCENARIOS)).get(name);
  if (found === undefined) throw new Error(`no scenario is called ${JSON.stringify(name)}`);
  return found;
}
