import { defineConfig } from "vitest/config";

const areas = ["unit", "conformance", "property", "types", "house", "wire", "command", "examples"];

// Sources run without a build; only test/command starts the built command.
const conditions = ["@sluice/source"];

export default defineConfig({
  test: {
    pool: "forks",
    maxWorkers: 2,
    projects: areas.map((area) => ({
      resolve: { conditions: [...conditions, "node", "import", "module", "default"] },
      ssr: { resolve: { conditions: [...conditions, "node", "import", "module", "default"] } },
      test: {
        name: area,
        include: [`test/${area}/**/*.test.ts`],
        environment: "node",
        testTimeout: 30_000,
        hookTimeout: 30_000,
      },
    })),
  },
});
