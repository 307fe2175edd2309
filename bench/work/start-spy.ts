// `start.ts` loads it before a command. It reports on descriptor 3 when the process ends: how many files of ours it loaded, and which packages.
import { writeSync } from "node:fs";
import { registerHooks } from "node:module";

const packages = new Set<string>();
let files = 0;
registerHooks({
  load(url, context, nextLoad) {
    const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
    if (name !== undefined) packages.add(name);
    else if (url.includes("/packages/")) files += 1;
    return nextLoad(url, context);
  },
});
process.on("exit", () => writeSync(3, JSON.stringify({ files, packages: [...packages].sort() })));
