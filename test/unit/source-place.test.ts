import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SluiceError } from "@sluice/core";
import { jsonFaultPosition, parsePlace, placeText, sourcePlaceOf } from "@sluice/core/runtime";
import { describe, expect, onTestFinished, test } from "vitest";
import { frameAt, frameOf, sourceFrame } from "../../packages/tui/src/user/source-frame.ts";

/** An error with these frames below its message. */
function thrownWith(frames: readonly string[], { message = "no", cause }: { message?: string; cause?: unknown } = {}) {
  const error = new Error(message, cause === undefined ? {} : { cause });
  error.stack = `Error: ${message}\n${frames.map((frame) => `    at ${frame}`).join("\n")}`;
  return error;
}

describe("the place of an error is", () => {
  test.each([
    ["a named function's", "deep (file:///work/team/a.ts:3:14)", { file: "/work/team/a.ts", line: 3, column: 14 }],
    ["a module's, after an await", "async file:///work/team/a.ts:4:1", { file: "/work/team/a.ts", line: 4, column: 1 }],
    ["a constructor's", "new Plan (file:///work/team/a.ts:5:2)", { file: "/work/team/a.ts", line: 5, column: 2 }],
    [
      "CommonJS's, by its path",
      "Object.<anonymous> (/work/team/a.cjs:6:3)",
      { file: "/work/team/a.cjs", line: 6, column: 3 },
    ],
    [
      "without the mark of an evaluation",
      "file:///work/team/a.ts?sluice-load=2:7:4",
      { file: "/work/team/a.ts", line: 7, column: 4 },
    ],
    [
      "with the characters of its path",
      "a (file:///work/my%20team/(x)/a.ts:8:5)",
      { file: "/work/my team/(x)/a.ts", line: 8, column: 5 },
    ],
  ])("%s", (_name, frame, place) => {
    expect(sourcePlaceOf(thrownWith([frame]))).toEqual(place);
  });

  test("the first of the user's own: neither Node's, nor Sluice's, nor a package's", () => {
    const own = "file:///work/team/a.ts:9:1";
    const others = [
      "parse (<anonymous>)",
      "resolve (node:internal/modules/esm/resolve:2:1)",
      "check (file:///work/team/node_modules/zod/index.js:1:1)",
      "run (file:///work/team/node_modules/@sluice/core/dist/index.js:1:1)",
      `walk (file://${join(import.meta.dirname, "../../packages/core/src/run/walk/walk.ts")}:1:1)`,
    ];
    expect(sourcePlaceOf(thrownWith([...others, own]))).toEqual({ file: "/work/team/a.ts", line: 9, column: 1 });
  });

  test("the package that threw where there is no other, unless Sluice called it", () => {
    const packaged = "check (file:///work/team/node_modules/zod/index.js:1:2)";
    expect(sourcePlaceOf(thrownWith([packaged]))).toEqual({
      file: "/work/team/node_modules/zod/index.js",
      line: 1,
      column: 2,
    });
    const ours = "run (file:///work/team/node_modules/@sluice/core/dist/index.js:1:1)";
    expect(sourcePlaceOf(thrownWith([ours, packaged]))).toBeUndefined();
  });

  test("that of the cause, where the error itself names none of the user's", () => {
    const cause = thrownWith(["file:///work/team/a.ts:2:1"]);
    expect(sourcePlaceOf(thrownWith([], { cause }))).toEqual({ file: "/work/team/a.ts", line: 2, column: 1 });
  });

  test("what an error of Sluice says it is", () => {
    const place = { file: "/work/team/script.json", line: 3, column: 1 };
    expect(sourcePlaceOf(new SluiceError("Validation", "invalid_script", "no", { at: place }))).toEqual(place);
  });

  test("never a line of the message, which any input can write", () => {
    const message = "no\n    at steal (file:///etc/passwd:1:1)";
    expect(sourcePlaceOf(thrownWith(["file:///work/team/a.ts:2:1"], { message }))).toEqual({
      file: "/work/team/a.ts",
      line: 2,
      column: 1,
    });
    expect(sourcePlaceOf(thrownWith([], { message }))).toBeUndefined();
  });

  test("above the message of a syntax error, with the column of its caret", () => {
    const error = new SyntaxError("Unexpected token");
    error.stack = "file:///work/team/a.ts:2\nconst a = 1;\nconst b = ;\n          ^\n\nSyntaxError: Unexpected token";
    expect(sourcePlaceOf(error)).toEqual({ file: "/work/team/a.ts", line: 2, column: 11 });
  });

  test("unknown for code of a text, for what is not an error, and for an error that throws when it is read", () => {
    expect(
      sourcePlaceOf(thrownWith(["eval (eval at a (file:///work/team/a.ts:1:1), <anonymous>:1:1)"])),
    ).toBeUndefined();
    expect(sourcePlaceOf("no")).toBeUndefined();
    const hostile = new Error("no");
    Object.defineProperty(hostile, "stack", {
      get: () => {
        throw new Error("not for you");
      },
    });
    expect(sourcePlaceOf(hostile)).toBeUndefined();
  });
});

test("a recorded place is relative to the workspace, and names no folder outside of it", () => {
  const place = (file: string): string => placeText({ file, line: 1, column: 2 }, "/home/ann/team");
  expect(place("/home/ann/team/src/a.ts")).toBe("src/a.ts:1:2");
  expect(place("/home/ann/other/lib/a.ts")).toBe("…/lib/a.ts:1:2");
  expect(place("/home/ann/node_modules/zod/index.js")).toBe("node_modules/zod/index.js:1:2");
  expect(parsePlace("src/a:b.ts:41:9")).toEqual({ file: "src/a:b.ts", line: 41, column: 9 });
  expect(parsePlace("src/a.ts")).toBeUndefined();
});

test.each([
  ['{\n  "a": [1,]\n}', { line: 2, column: 11 }],
  ['{ "a": ', { line: 1, column: 8 }],
  ["{'a': 1}", { line: 1, column: 2 }],
  ['{ "a": "b\nc" }', { line: 1, column: 10 }],
  ["[1] 2", { line: 1, column: 5 }],
  ["", { line: 1, column: 1 }],
  ["[1e, 2]", { line: 1, column: 4 }],
])("the fault of the JSON %j is found", (text, position) => {
  expect(jsonFaultPosition(text)).toEqual(position);
});

describe("the frame of a place", () => {
  function workspace(files: Readonly<Record<string, string>>): string {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-frame-")));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder, path, ".."), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    return folder;
  }
  const plain = (text: string): string => text;

  test("shows the line between its neighbours, with a caret", () => {
    const folder = workspace({ "a.ts": "one\ntwo three\nfour\nfive\n" });
    expect(frameAt("a.ts:2:5", folder, plain)).toBe("  1 | one\n> 2 | two three\n    |     ^\n  3 | four");
  });

  test("writes control characters out, and cuts a long line around the column", () => {
    const folder = workspace({ "a.ts": `\u001b[2Jone\u202etwo\n${"x".repeat(5_000)}!\n` });
    expect(frameAt("a.ts:1:1", folder, plain)).toContain("> 1 | \\u{1b}[2Jone\\u{202e}two");
    const long = frameAt("a.ts:2:5001", folder, plain) ?? "";
    expect(Math.max(...long.split("\n").map((line) => line.length))).toBeLessThan(200);
    expect(long).toContain("x!");
  });

  test("masks secrets before anything is cut, and has no caret behind one", () => {
    const folder = workspace({ "a.ts": `${"x".repeat(150)}hunter2hunter2; f()\n` });
    const masked = (at: string) => frameAt(at, folder, (text) => text.replaceAll("hunter2hunter2", "[secret]")) ?? "";
    expect(masked("a.ts:1:3")).not.toContain("hunter");
    expect(masked("a.ts:1:3")).toContain("^");
    expect(masked("a.ts:1:167")).not.toContain("hunter");
    expect(masked("a.ts:1:167")).not.toContain("^");
  });

  test("is of no file that is not code, whatever the text of an error names", () => {
    const folder = workspace({ ".env": "KEY=1\n", "key.pem": "a private key\n", "keys.json": "{}\n", "a.mts": "ok\n" });
    for (const file of [".env", "key.pem", "keys.json"]) expect(frameAt(`${file}:1:1`, folder, plain)).toBeUndefined();
    expect(frameAt("a.mts:1:1", folder, plain)).toContain("ok");
    // A message that was changed after it was thrown is not found in the stack.
    const changed = thrownWith([], { message: `no\n    at read (${folder}/.env:1:1)` });
    changed.message = "reading: no";
    expect(sourcePlaceOf(changed)).toBeUndefined();
  });

  test("that an error brings is masked, and its control characters are written out", () => {
    const place = { file: "/work/a.ts", line: 1, column: 1, frame: "> 1 | \u001b[2Jhunter2hunter2" };
    const masked = frameOf(place, "/work", (text) => text.replaceAll("hunter2hunter2", "[secret]"));
    expect(masked).toBe("> 1 | \\u{1b}[2J[secret]");
    expect(frameOf({ ...place, frame: "" }, "/work", plain)).toBe("");
    const odd = Object.assign(new Error("no"), { stack: "", at: { ...place, frame: 5 } });
    expect(sourcePlaceOf(odd)).toBeUndefined();
  });

  test("is of no file outside the folders, also not by a link, and of no line that is not there", () => {
    const outside = workspace({ "key.pem": "a private key\n" });
    const folder = workspace({ "a.ts": "one\n" });
    symlinkSync(join(outside, "key.pem"), join(folder, "link.ts"));
    expect(frameAt("link.ts:1:1", folder, plain)).toBeUndefined();
    expect(frameAt("../a.ts:1:1", folder, plain)).toBeUndefined();
    expect(sourceFrame({ file: join(outside, "key.pem"), line: 1, column: 1 }, [folder], plain)).toBeUndefined();
    expect(frameAt("a.ts:7:1", folder, plain)).toBeUndefined();
    expect(frameAt("gone.ts:1:1", folder, plain)).toBeUndefined();
    expect(frameAt(".:1:1", folder, plain)).toBeUndefined();
  });
});
