// One scenario in a process of its own: two rounds that warm up, thirty that count. Prints the fewest calls of each function as JSON:
// what a round does more often comes from when timers and files of the machine were ready.
import { existsSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { openCounter } from "./coverage.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import { fewest } from "./share.ts";

// What a scenario imports of a package's sources is its build: modules that no entry exports have no other name.
registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const resolved = nextResolve(specifier, context);
    const built = resolved.url.replace(/(\/packages\/[^/]+)\/src\/(.+)\.tsx?$/, "$1/dist/$2.js");
    if (built === resolved.url) return resolved;
    if (!existsSync(fileURLToPath(built))) throw new Error(`${built} is not built`);
    return nextResolve(built, context);
  },
});

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
