import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Load } from "../support/project-loads.ts";

const LOADS = join(import.meta.dirname, "../fixtures/command/loads.ts");

/** A folder that a config lies in, with a neighbour that it has no business with. */
interface Place {
  readonly above: string;
  readonly root: string;
  put(path: string, content: string): string;
  /** Code that says that it was evaluated. */
  readonly evil: string;
}
/** Prepares a folder; returns what is done to it between the question of trust and the load. */
type Prepare = (place: Place) => Omit<Load, "root"> | undefined;

const NOTHING = "export default {};\n";
const COMMON = "module.exports = {};\n";

const SWAPS: Readonly<Record<string, Prepare>> = {
  "the config becomes a link": ({ root, put, evil }) => {
    put("sluice.config.mjs", NOTHING);
    return { link: [join(root, "sluice.config.mjs"), put("../evil.mjs", evil + NOTHING)] };
  },
  "the workspace becomes a link": ({ above, root, put, evil }) => {
    put("sluice.config.mjs", NOTHING);
    put("../other/sluice.config.mjs", evil + NOTHING);
    return { link: [root, join(above, "other")] };
  },
  "a folder of the pipelines becomes a link": ({ above, root, put, evil }) => {
    put("sluice.config.mjs", 'import "./.sluice/pipelines/lib/a.mjs";\nexport default {};\n');
    put(".sluice/pipelines/lib/a.mjs", "");
    put("../other/a.mjs", evil);
    return { link: [join(root, ".sluice/pipelines/lib"), join(above, "other")] };
  },
  ...Object.fromEntries(
    ["mjs", "js", "ts", "mts"].map((extension): [string, Prepare] => [
      `the config (.${extension}) gets another content`,
      ({ put, evil }) => ({ write: [put(`sluice.config.${extension}`, NOTHING), evil + NOTHING] }),
    ]),
  ),
  "what it requires gets another content": ({ put, evil }) => {
    put("sluice.config.js", 'require("./.sluice/pipelines/lib.cjs");\nmodule.exports = {};\n');
    return { write: [put(".sluice/pipelines/lib.cjs", COMMON), evil + COMMON] };
  },
};

const IMPORTS: Readonly<Record<string, Prepare>> = {
  ...Object.fromEntries(
    ["core", "view/words"].map((name): [string, Prepare] => [
      `by require, with a package.json that calls the project @sluice/${name}`,
      ({ put, evil }) => {
        const [own = "", entry] = name.split("/");
        const exported = entry === undefined ? "." : `./${entry}`;
        put("evil.cjs", evil);
        put("package.json", JSON.stringify({ name: `@sluice/${own}`, exports: { [exported]: "./evil.cjs" } }));
        put("sluice.config.js", `require("@sluice/${name}");\nmodule.exports = {};\n`);
        return undefined;
      },
    ]),
  ),
  "by require of a path behind a package's name": ({ put, evil }) => {
    put("node_modules/.keep", "");
    put("evil.cjs", evil);
    put("sluice.config.js", 'require("@sluice/core/../../../evil.cjs");\nmodule.exports = {};\n');
    return undefined;
  },
  "by require": ({ put, evil }) => {
    put("../outside.cjs", evil);
    put("sluice.config.js", 'require("../outside.cjs");\nmodule.exports = {};\n');
    return undefined;
  },
  "by createRequire": ({ put, evil }) => {
    put("../outside.cjs", evil);
    put(
      "sluice.config.mjs",
      'import { createRequire } from "node:module";\ncreateRequire(import.meta.url)("../outside.cjs");\nexport default {};\n',
    );
    return undefined;
  },
  ...Object.fromEntries(
    ["?x", "#x"].map((end): [string, Prepare] => [
      `by require in what was imported with ${end}`,
      ({ put, evil }) => {
        put("../outside.cjs", evil);
        put(".sluice/pipelines/lib.cjs", 'require("../../../outside.cjs");\n');
        put("sluice.config.mjs", `import "./.sluice/pipelines/lib.cjs${end}";\nexport default {};\n`);
        return undefined;
      },
    ]),
  ),
  "by createRequire in what was imported with ?x": ({ put, evil }) => {
    put("../outside.cjs", evil);
    put(
      ".sluice/pipelines/lib.mjs",
      'import { createRequire } from "node:module";\ncreateRequire(import.meta.url)("../../../outside.cjs");\n',
    );
    put("sluice.config.mjs", 'import "./.sluice/pipelines/lib.mjs?x";\nexport default {};\n');
    return undefined;
  },
  "dynamically in CommonJS that was imported with ?x": ({ put, evil }) => {
    put("../outside.mjs", evil);
    put(".sluice/pipelines/lib.cjs", 'module.exports = import("../../../outside.mjs");\n');
    put("sluice.config.mjs", 'import lib from "./.sluice/pipelines/lib.cjs?x";\nawait lib;\nexport default {};\n');
    return undefined;
  },
  "by its address": ({ put, evil }) => {
    const outside = pathToFileURL(put("../outside.mjs", evil)).href;
    put("sluice.config.mjs", `import ${JSON.stringify(outside)};\nexport default {};\n`);
    return undefined;
  },
  "with a query": ({ put, evil }) => {
    put("../outside.mjs", evil);
    put("sluice.config.mjs", 'import "../outside.mjs?x";\nexport default {};\n');
    return undefined;
  },
  dynamically: ({ put, evil }) => {
    put("../outside.mjs", evil);
    put("sluice.config.mjs", 'await import("../outside.mjs");\nexport default {};\n');
    return undefined;
  },
  "from code that stands in an address": ({ put, evil }) => {
    const outside = pathToFileURL(put("../outside.mjs", evil)).href;
    const data = `data:text/javascript,import ${JSON.stringify(outside)}`;
    put("sluice.config.mjs", `import ${JSON.stringify(data)};\nexport default {};\n`);
    return undefined;
  },
  "by a name of the manifest": ({ put, evil }) => {
    put("package.json", '{ "imports": { "#out": "./src/out.mjs" } }');
    put("src/out.mjs", evil);
    put("sluice.config.mjs", 'import "#out";\nexport default {};\n');
    return undefined;
  },
  "by the name of its own package": ({ put, evil }) => {
    put("package.json", '{ "name": "mine", "exports": { "./out": "./src/out.mjs" } }');
    put("src/out.mjs", evil);
    put("sluice.config.mjs", 'import "mine/out";\nexport default {};\n');
    return undefined;
  },
  "through a link among the installed packages": ({ root, put, evil }) => {
    put("linked/index.js", evil);
    put("linked/package.json", '{ "name": "linked", "exports": "./index.js" }');
    mkdirSync(join(root, "node_modules"));
    symlinkSync("../linked", join(root, "node_modules/linked"));
    put("sluice.config.mjs", 'import "linked";\nexport default {};\n');
    return undefined;
  },
  "from an installed package that is not installed there": ({ put, evil }) => {
    put("../outside.mjs", evil);
    put("node_modules/leads-out/index.js", 'import "../../../outside.mjs";\n');
    put("node_modules/leads-out/package.json", '{ "type": "module", "exports": "./index.js" }');
    put("sluice.config.mjs", 'import "leads-out";\nexport default {};\n');
    return undefined;
  },
  "as data": ({ put }) => {
    put("../outside.json", '{ "mode": "yolo" }');
    put("sluice.config.mjs", 'import data from "../outside.json" with { type: "json" };\nexport default data;\n');
    return undefined;
  },
  "where the workspace lies among installed packages": ({ put, evil }) => {
    put("lib.mjs", evil);
    put("sluice.config.mjs", 'import "./lib.mjs";\nexport default {};\n');
    return undefined;
  },
};

describe.each([
  ["the code of a folder is evaluated as it was trusted or not at all, when in between", SWAPS],
  ["what a config imports has to be covered by trust, also", IMPORTS],
])("%s", (_what, cases) => {
  const names = Object.keys(cases);
  const base = realpathSync(mkdtempSync(join(tmpdir(), "sluice-attack-")));
  let outcomes: readonly (readonly [outcome: string | undefined, evaluated: boolean])[] = [];
  beforeAll(() => {
    const loads = names.map((name, index): Load => {
      const above = join(base, `${index}`);
      const root = name.includes("among installed packages") ? join(above, "node_modules/mine") : join(above, "work");
      const put: Place["put"] = (path, content) => {
        const file = join(root, path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, content);
        return file;
      };
      mkdirSync(root, { recursive: true });
      const evil = `process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(join(base, `${index}.ran`))}, "");\n`;
      return { root, ...cases[name]?.({ above, root, put, evil }) };
    });
    const codes: readonly string[] = JSON.parse(
      execFileSync(process.execPath, [LOADS, JSON.stringify(loads)], { encoding: "utf8" }),
    );
    outcomes = names.map((_name, index) => [codes[index], existsSync(join(base, `${index}.ran`))]);
  });
  afterAll(() => rmSync(base, { recursive: true, force: true }));

  test.each(names.map((name, index) => [name, index] as const))("%s", (_name, index) => {
    expect(outcomes[index]).toEqual(["folder_untrusted", false]);
  });
});
