// `start.ts` loads it before a command. It reports CPU time and loaded packages on descriptor 3 when the process ends.
import { writeSync } from "node:fs";
import { registerHooks } from "node:module";

const packages = new Set<string>();
registerHooks({
  load(url, context, nextLoad) {
    const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
    if (name !== undefined) packages.add(name);
    return nextLoad(url, context);
  },
});
process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  writeSync(3, JSON.stringify({ cpuMs: (user + system) / 1000, packages: [...packages].sort() }));
});
