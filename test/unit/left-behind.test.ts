import { execFileSync } from "node:child_process";
import { homedir, tmpdir } from "node:os";
import { join, sep } from "node:path";
import { describe, expect, test } from "vitest";
import { withOwnersHome } from "../support/own-home.ts";
import { tempFolder } from "../support/tools.ts";

const root = join(import.meta.dirname, "../..");

describe("tests have a home of their own", () => {
  const VARIABLES = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"];

  test("which is a temporary folder, for what they start too", () => {
    const program = `const { env } = process; console.log(JSON.stringify(${JSON.stringify(VARIABLES)}.map((name) => env[name])))`;
    const homes: unknown = JSON.parse(execFileSync(process.execPath, ["-e", program], { encoding: "utf8" }));
    expect(homes).toEqual(VARIABLES.map((name) => process.env[name]));
    expect(homes).toEqual(VARIABLES.map(() => expect.stringContaining(join(tmpdir(), `sluice-home-`))));
    expect(homedir()).toBe(process.env.HOME);
  });

  test("and only package managers get the developer's", () => {
    const env = withOwnersHome(process.env);
    for (const name of VARIABLES) expect(env[name] ?? "").not.toContain(`${sep}sluice-home-`);
  });
});

describe("the last check of npm test", () => {
  /** What the check says that appeared between two looks. */
  function seen(base: string, home: string, between: () => void): readonly string[] {
    const program = `
      import { appeared, pathsNow } from ${JSON.stringify(join(root, "scripts/left-behind.mjs"))};
      import { readFileSync } from "node:fs";
      const paths = pathsNow(process.argv[1], process.argv[2]);
      const before = readFileSync(0, "utf8");
      console.log(JSON.stringify(before === "" ? [...paths] : appeared(new Set(JSON.parse(before)), paths)));
    `;
    const look = (input: string): string =>
      execFileSync(process.execPath, ["--input-type=module", "-e", program, base, home], { input, encoding: "utf8" });
    const before = look("");
    between();
    const found: unknown = JSON.parse(look(before));
    if (!Array.isArray(found)) throw new Error("no list");
    return found.map(String);
  }

  test("names what appeared in the home and in the checkout", () => {
    const home = tempFolder();
    const base = tempFolder();
    home.put(".config/other/a", "");
    home.put(".local/state/sluice/trust.json", "");
    base.put("test/a.test.ts", "");
    const between = (): void => {
      home.put(".local/state/sluice/machine-id", "");
      home.put(".config/new/deep/file", "");
      home.put("notes.txt", "");
      base.put("test/left.txt", "");
      base.put("examples/testing/node_modules/.vite/results.json", "");
    };
    expect(seen(base.root, home.root, between)).toEqual([
      "./examples",
      "./test/left.txt",
      "~/.config/new",
      "~/.local/state/sluice/machine-id",
      "~/notes.txt",
    ]);
  });

  test("says nothing of what checks make, of caches and of what others keep to themselves", () => {
    const home = tempFolder();
    const base = tempFolder();
    home.put(".config/other/a", "");
    base.put("packages/core/src/a.ts", "");
    const between = (): void => {
      home.put(".npm/_cacache/x", "");
      home.put(".cache/pnpm/x", "");
      home.put(".config/other/b", "");
      for (const file of [".reports/a.json", "node_modules/a/b", "packages/core/dist/a.js", "tsconfig.tsbuildinfo"])
        base.put(file, "");
    };
    expect(seen(base.root, home.root, between)).toEqual([]);
  });
});
