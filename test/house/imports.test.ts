import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { circlesIn } from "./circles.ts";
import { breachesOf, type Manifests } from "./rules.ts";
import { parseSource, readSources, root } from "./sources.ts";

const manifestSchema = z.object({
  dependencies: z.record(z.string(), z.string()).default({}),
  peerDependencies: z.record(z.string(), z.string()).default({}),
});

function readManifests(): Manifests {
  const entries = globSync("packages/*/package.json", { cwd: root }).map((path) => {
    const manifest = manifestSchema.parse(JSON.parse(readFileSync(join(root, path), "utf8")));
    const [, name = ""] = path.split(/[\\/]/);
    return [name, { dependencies: Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }) }] as const;
  });
  return Object.fromEntries(entries);
}

const manifests = readManifests();

function breachesIn(path: string, text: string): readonly string[] {
  return breachesOf(parseSource(path, text), manifests);
}

test("every source file keeps the import rules", () => {
  const sources = readSources();
  expect(sources.length).toBeGreaterThan(4);
  expect(sources.flatMap((file) => breachesOf(file, manifests))).toEqual([]);
});

describe("no source file leads back to itself by its imports", () => {
  test("not in any package", () => {
    expect(circlesIn(readSources())).toEqual([]);
  });

  test("a circle is told with its files, also one of types", () => {
    const sources = [
      parseSource("packages/core/src/a.ts", 'import type { B } from "./b/b.ts";'),
      parseSource("packages/core/src/b/b.ts", 'import { c } from "./c.ts";'),
      parseSource("packages/core/src/b/c.ts", 'export { a } from "../a.ts";'),
      parseSource("packages/core/src/d.ts", 'import { a } from "./a.ts";'),
    ];
    const circle = ["packages/core/src/a.ts", "packages/core/src/b/b.ts", "packages/core/src/b/c.ts"];
    expect(circlesIn(sources)).toEqual([circle]);
  });
});

describe("a package imports only those below it", () => {
  test.each([
    ["packages/core/src/run/loop.ts", "@sluice/stages"],
    ["packages/core/src/run/loop.ts", "@sluice/core"],
    ["packages/stages/src/session/session.ts", "@sluice/sqlite"],
    ["packages/stages/src/session/session.ts", "@sluice/cli"],
    ["packages/sqlite/src/host.ts", "@sluice/stages"],
    ["packages/stages/src/session/session.ts", "../../core/src/run/loop.ts"],
    ["packages/stages/src/session/session.ts", "@sluice/core/testing"],
    ["packages/other/src/thing.ts", "@sluice/core"],
  ])("%s may not import %s", (path, specifier) => {
    expect(breachesIn(path, `import "${specifier}";`)).not.toEqual([]);
  });

  test.each([
    ["packages/stages/src/session/session.ts", "@sluice/core"],
    ["packages/sqlite/src/host.ts", "@sluice/core"],
    ["packages/cli/src/commands/run/options.ts", "@sluice/sqlite"],
  ])("%s may import %s", (path, specifier) => {
    expect(breachesIn(path, `import "${specifier}";`)).toEqual([]);
  });
});

describe("a folder of core imports only those below it", () => {
  test.each([
    ["base", "definition"],
    ["definition", "gate"],
    ["gate", "journal"],
    ["routing", "gate"],
    ["interaction", "run"],
    ["journal", "routing"],
    ["unheard-of", "base"],
  ])("%s may not import %s", (folder, target) => {
    expect(breachesIn(`packages/core/src/${folder}/a.ts`, `import "../${target}/b.ts";`)).not.toEqual([]);
  });

  test.each([
    ["definition", "base"],
    ["gate", "definition"],
    ["run", "journal"],
    ["run", "base"],
  ])("%s may import %s", (folder, target) => {
    expect(breachesIn(`packages/core/src/${folder}/a.ts`, `import "../${target}/b.ts";`)).toEqual([]);
  });

  test("no folder imports the package's entry", () => {
    expect(breachesIn("packages/core/src/run/a.ts", 'import { pipeline } from "../index.ts";')).not.toEqual([]);
  });
});

describe("a folder imports only those below it", () => {
  test.each([
    ["cli", "output", "runs"],
    ["cli", "runs", "commands"],
    ["cli", "project", "commands"],
    ["tui", "user", "app"],
    ["tui", "run", "cards"],
    ["tui", "cards", "commands"],
    ["view", "text", "projection"],
    ["view", "projection", "html"],
    ["view", "unheard-of", "text"],
  ])("in %s, %s may not import %s", (name, folder, target) => {
    expect(breachesIn(`packages/${name}/src/${folder}/a.ts`, `import "../${target}/b.ts";`)).not.toEqual([]);
  });

  test("what lies beside the folders is for all of them", () => {
    expect(breachesIn("packages/cli/src/output/a.ts", 'import "../command-context.ts";')).toEqual([]);
  });
});

test.each([
  'import { a } from "../gate/b.ts";',
  'import type { A } from "../gate/b.ts";',
  'import { type A } from "../gate/b.ts";',
  'export { a } from "../gate/b.ts";',
  'export type * from "../gate/b.ts";',
  'await import("../gate/b.ts");',
  "await import(`../gate/b.ts`);",
  'let a: import("../gate/b.ts").A;',
  'let a: typeof import("../gate/b.ts");',
  'require("../gate/b.ts");',
  'import a = require("../gate/b.ts");',
])("the checker sees %s", (statement) => {
  expect(parseSource("packages/core/src/journal/a.ts", statement).imports).toEqual(["../gate/b.ts"]);
  expect(breachesIn("packages/core/src/journal/a.ts", statement)).not.toEqual([]);
});

describe("modules are known only where they belong", () => {
  test.each([
    ["packages/stages/src/session/session.ts", "ai"],
    ["packages/stages/src/tools/bash.ts", "@ai-sdk/provider"],
    ["packages/core/src/run/loop.ts", "ai"],
    ["packages/cli/src/commands/run/options.ts", "@ai-sdk/anthropic"],
    ["packages/cli/src/commands/run/options.ts", "node:sqlite"],
    ["packages/stages/src/telemetry/telemetry.ts", "@opentelemetry/api"],
    ["packages/stages/src/opentelemetry.ts", "@opentelemetry/api"],
    ["packages/stages/src/opentelemetry/a.ts", "@opentelemetry/sdk-trace-base"],
    ["packages/core/src/run/a.ts", "@opentelemetry/api"],
    ["packages/core/src/journal/a.ts", "node:sqlite"],
    ["packages/core/src/journal/a.ts", "node:fs"],
    ["packages/core/src/journal/a.ts", "fs"],
    ["packages/core/src/journal/a.ts", "node:fs/promises"],
    ["packages/core/src/journal/a.ts", "node:child_process"],
    ["packages/core/src/journal/a.ts", "node:net"],
    ["packages/core/src/journal/a.ts", "fast-check"],
    ["packages/sqlite/src/host.ts", "zod"],
    ["packages/tui/src/app/app.ts", "ink"],
    ["packages/tui/src/run/progress-bar.ts", "react"],
  ])("%s may not import %s", (path, specifier) => {
    expect(breachesIn(path, `import "${specifier}";`)).not.toEqual([]);
  });

  test.each([
    ["packages/stages/src/models/providers/anthropic.ts", "@ai-sdk/anthropic"],
    ["packages/stages/src/agent/turn.ts", "ai"],
    ["packages/stages/src/opentelemetry/a.ts", "@opentelemetry/api"],
    ["packages/sqlite/src/host.ts", "node:sqlite"],
    ["packages/tui/src/screen/screen.tsx", "ink"],
    ["packages/core/src/gate/digest.ts", "node:crypto"],
    ["packages/core/src/schema/compile-schema.ts", "zod/v4"],
  ])("%s may import %s", (path, specifier) => {
    expect(breachesIn(path, `import "${specifier}";`)).toEqual([]);
  });

  test("what needs OpenTelemetry comes in by its own entry, and by no other", () => {
    const room = 'from "./opentelemetry/opentelemetry.ts";';
    const byEntry = `export { openTelemetry } ${room}`;
    expect(breachesIn("packages/stages/src/opentelemetry.ts", byEntry)).toEqual([]);
    expect(breachesIn("packages/stages/src/index.ts", byEntry)).not.toEqual([]);
    expect(
      breachesIn(
        "packages/stages/src/session/session.ts",
        `import { openTelemetry } from "../opentelemetry/opentelemetry.ts";`,
      ),
    ).not.toEqual([]);
  });

  test("core imports nothing by a computed name", () => {
    expect(breachesIn("packages/core/src/run/a.ts", "await import(name);")).not.toEqual([]);
  });
});

describe("exports are named and defined where they are exported", () => {
  test.each([
    "export default 1;",
    "const a = 1; export { a as default };",
    'export * from "./b.ts";',
    'export { b } from "./b.ts";',
    'import { b } from "./b.ts"; export { b };',
  ])("%s is refused inside a package", (text) => {
    expect(breachesIn("packages/core/src/run/a.ts", text)).not.toEqual([]);
  });

  test("a package's entry hands on what it offers", () => {
    expect(breachesIn("packages/core/src/index.ts", 'export { pipeline } from "./definition/pipeline.ts";')).toEqual(
      [],
    );
  });

  test("an index file inside a package is refused", () => {
    expect(breachesIn("packages/stages/src/tools/index.ts", "export const a = 1;")).not.toEqual([]);
  });
});
