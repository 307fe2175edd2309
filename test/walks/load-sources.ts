// Loaded before everything else: the packages run from their sources, one module a file, since bundles have fewer.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { transformSync } from "rolldown/utils";

registerHooks({
  resolve(specifier, context, nextResolve) {
    // The command imports its bundle by path.
    return nextResolve(specifier.replace(/^(.*\/cli)\/dist\/main\.js$/, "$1/src/main.ts"), context);
  },
  load(url, context, nextLoad) {
    // Node strips types of `.ts` files alone.
    if (!url.endsWith(".tsx")) return nextLoad(url, context);
    const file = fileURLToPath(url);
    const { code, errors } = transformSync(file, readFileSync(file, "utf8"));
    if (errors.length > 0)
      throw new Error(`${file} cannot be compiled: ${errors.map(({ message }) => message).join(", ")}`);
    return { format: "module", source: code, shortCircuit: true };
  },
});
