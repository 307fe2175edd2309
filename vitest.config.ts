import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LongFirst } from "./test/support/long-first.ts";

/** Each folder of test/ is a project: `vitest run --project unit`. */
const folders = readdirSync(new URL("test", import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "fixtures")
  .map((entry) => entry.name);

// Tests run the sources, without a build; what starts the command itself runs the built one.
const conditions = ["@sluice/source", "node", "import", "default"];

/** The folders whose files share what they have loaded. */
const shared = new Set(["attack", "command", "docs", "unit", "wire", "conformance", "property", "app", "facts"]);

/** The folders that hold property tests. */
const withProperties = new Set(["app", "conformance", "house", "property", "terminal", "unit"]);

export default defineConfig({
  test: {
    pool: "forks",
    // Many tests wait for processes and disks: more workers than cores keep the cores at work.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongFirst },
    globalSetup: ["test/support/own-home.ts", "test/support/current-bundles.ts"],
    coverage: { provider: "v8", include: ["packages/*/src/**"], reporter: ["text", "html"] },
    projects: folders.map((folder) => ({
      resolve: { conditions },
      ssr: { resolve: { conditions } },
      test: {
        name: folder,
        include: [`test/${folder}/**/*.test.ts`],
        exclude: ["**/node_modules/**", "**/fixtures/**"],
        environment: "node",
        setupFiles: withProperties.has(folder) ? ["test/support/property-seed.ts"] : [],
        // Tests leave nothing behind for the next file, and loading everything again for each would cost more than they do.
        isolate: !shared.has(folder),
        // Only for what hangs: a machine under load takes many times as long for everything.
        testTimeout: 300_000,
        hookTimeout: 300_000,
        expect: { poll: { timeout: 90_000, interval: 20 } },
      },
    })),
  },
});
