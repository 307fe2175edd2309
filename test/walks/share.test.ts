import { globSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { callsIn, modulesIn, root } from "./coverage.ts";
import { fewest, figuresOf, shareOf } from "./share.ts";

const walk = { "a.ts": { "f@1": 3, "g@9": 1 }, "b.ts": { "h@1": 2 }, "c.ts": { "i@1": 1 } };
const baseline = { "a.ts": { "f@1": 2 }, "b.ts": { "h@1": 2 }, "d.ts": { "j@1": 5 } };

test("a file is part of a walk when a function of it ran more often than in the baseline", () => {
  const { more } = shareOf(walk, baseline);
  expect(more).toEqual({ "a.ts": { "f@1": 1, "g@9": 1 }, "c.ts": { "i@1": 1 } });
  expect(figuresOf(more)).toEqual({ files: 2, functions: 3, calls: 3 });
});

test("what the baseline does not call at all is the walk's own", () => {
  expect(shareOf(walk, baseline).own).toEqual({ "a.ts": { "g@9": 1 }, "c.ts": { "i@1": 1 } });
});

test("a walk has nothing beyond itself", () => {
  expect(shareOf(walk, walk)).toEqual({ more: {}, own: {} });
});

test("of two rounds only the calls of both count", () => {
  expect(fewest(walk, baseline)).toEqual({ "a.ts": { "f@1": 2 }, "b.ts": { "h@1": 2 } });
});

test("functions of the packages count, modules that only load and other files do not", () => {
  const at = (path: string, ...functions: readonly (readonly [string, number, number])[]) => ({
    url: pathToFileURL(`${root}/${path}`).href,
    functions: functions.map(([functionName, startOffset, count]) => ({
      functionName,
      ranges: [{ startOffset, count }],
    })),
  });
  const [component = ""] = globSync("packages/*/src/**/*.tsx", { cwd: root });
  const coverage = {
    result: [
      at("packages/core/src/base/json.ts", ["", 0, 1], ["field", 10, 4], ["isJson", 90, 0]),
      at(component, ["", 0, 1], ["", 8, 2]),
      at("packages/core/src/base/clock.ts", ["", 0, 1]),
      at("test/walks/share.ts", ["shareOf", 10, 4]),
    ],
  };
  expect(callsIn(coverage)).toEqual({
    "packages/core/src/base/json.ts": { "field@10": 4 },
    [component]: { "@8": 2 },
  });
  expect(modulesIn(coverage)).toBe(3);
});
