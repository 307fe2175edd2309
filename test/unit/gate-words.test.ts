import { digestOf } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import {
  denial,
  denialIn,
  invalidToolInput,
  outcomeUnknown,
  repeatedCall,
  truncatedCall,
  unknownTool,
} from "../../packages/core/src/gate/denial.ts";
import {
  argsSummary,
  excerptOf,
  grantRequestBody,
  replaceUnseen,
  visible,
  visibleJson,
} from "../../packages/core/src/gate/summary.ts";

const wayOut = { allowedTools: ["Read", "Grep"], completionTool: "submit_plan" };

describe("what a model reads", () => {
  test("a denial says why and what is allowed instead", () => {
    expect(denial("no_interactor", "Edit", "nobody was there", wayOut)).toEqual({
      code: "tool_call_denied",
      cause: "no_interactor",
      tool: "Edit",
      reason: "nobody was there",
      allowedTools: ["Read", "Grep"],
      completionTool: "submit_plan",
    });
  });

  test("an unknown tool is distinguished from a misspelt one", () => {
    expect(unknownTool("Raed", ["Read", "Grep"], wayOut)).toMatchObject({
      code: "unknown_tool",
      reason: 'there is no tool "Raed"; did you mean "Read"?',
      allowedTools: ["Read", "Grep"],
      completionTool: "submit_plan",
    });
    expect(unknownTool("Frobnicate", ["Read"], wayOut).reason).toBe('there is no tool "Frobnicate"');
  });

  test("a denial names the state it is read in, and what is no denial is left as it is", () => {
    const denied = denial("limit", "Edit", "too far", wayOut);
    expect(denialIn("plan", denied)).toEqual({ ...denied, state: "plan" });
    for (const other of [{ code: "truncated_call" }, ["allowedTools"], "allowedTools", null])
      expect(denialIn("plan", other)).toBe(other);
  });

  test("a denial in a state that completes by events names them", () => {
    expect(denial("limit", "Edit", "too far", { ...wayOut, events: ["DONE leads to b"] })).toHaveProperty("events", [
      "DONE leads to b",
    ]);
    expect(denial("limit", "Edit", "too far", wayOut)).not.toHaveProperty("events");
  });

  test("a name of any length is not repeated in full", () => {
    const long = `a name of ${"x".repeat(100_000)}`;
    expect(unknownTool(long, ["Read"], wayOut)).toMatchObject({
      tool: "a name of …",
      reason: expect.stringMatching(/^there is no tool "a name of …"/),
    });
    expect(denial("limit", long, "", wayOut).tool).toBe("a name of …");
    expect(denial("limit", "x".repeat(128), "", wayOut).tool).toBe("x".repeat(128));
  });

  test("of a secret in a name that is cut, no half is left", () => {
    for (let length = 80; length < 230; length += 1) {
      const name = `${"x".repeat(length)}-ghp_0123456789abcdefghij0123456789abcdefghij`;
      for (const text of [denial("limit", name, "", wayOut).tool, argsSummary(name, {})])
        if (text.includes("ghp_0")) expect(text).toContain(name);
    }
  });

  test("invalid input comes back with its issues", () => {
    expect(invalidToolInput("Edit", [{ path: "$.path", message: "is required" }])).toMatchObject({
      code: "invalid_tool_input",
      tool: "Edit",
      issues: [{ path: "$.path", message: "is required" }],
    });
  });

  test("calls that did not run, or perhaps did, have codes of their own", () => {
    expect(
      [repeatedCall("Grep", 3), truncatedCall("Write"), outcomeUnknown("Bash")].map(({ code, tool }) => [code, tool]),
    ).toEqual([
      ["repeated_call", "Grep"],
      ["truncated_call", "Write"],
      ["outcome_unknown", "Bash"],
    ]);
  });
});

describe("what a person is shown", () => {
  test.each([
    ["an escape sequence", "a\u001b[2Jb", "a\\u{1b}[2Jb"],
    ["a carriage return", "rm -rf /\rls", "rm -rf /\\u{d}ls"],
    ["a backspace and a bell", "a\bb\u0007", "a\\u{8}b\\u{7}"],
    ["an eight-bit control", "a\u009bb", "a\\u{9b}b"],
    ["text turned around", "a\u202egnp.exe", "a\\u{202e}gnp.exe"],
    ["an isolate", "\u2066x\u2069", "\\u{2066}x\\u{2069}"],
    ["zero width", "pass\u200bword\ufeff", "pass\\u{200b}word\\u{feff}"],
    ["a tag character", "a\u{e0041}", "a\\u{e0041}"],
    ["a filler that shows nothing", "a\u3164\u2800", "a\\u{3164}\\u{2800}"],
    ["a space that is not a space", "rm\u00a0-rf", "rm\\u{a0}-rf"],
    ["a line separator", "a\u2028b", "a\\u{2028}b"],
    ["half a character", "a\ud83d", "a\\u{d83d}"],
    ["a tab", "a\tb", "a\\u{9}b"],
    ["a separator of paragraphs", "a\u2029b", "a\\u{2029}b"],
    ["a character for private use", "a\ue000b", "a\\u{e000}b"],
  ])("%s is written out", (_, text, expected) => {
    expect(visible(text)).toBe(expected);
  });

  test("each unseen character is handed over with where it stands, and stands as what is returned", () => {
    const seen: [string, number][] = [];
    const text = replaceUnseen("a\u200b\n😀\u{e0041}b", (character, at) => {
      seen.push([character, at]);
      return "?";
    });
    expect(text).toBe("a?\n😀?b");
    expect(seen).toEqual([
      ["\u200b", 1],
      ["\u{e0041}", 5],
    ]);
  });

  test("letters of all languages, emoji and line breaks stay", () => {
    const text = "naïve 日本語 عربي 👍\nsecond line";
    expect(visible(text)).toBe(text);
  });

  test("an excerpt shows a short line as it is, with carets under what is meant", () => {
    expect(excerptOf("npm run \tdeploy now", 4, 3)).toEqual({ shown: "npm run  deploy now", caret: "    ^^^" });
    expect(excerptOf("npm", 3, 0)).toEqual({ shown: "npm", caret: "   ^" });
    expect(excerptOf("a\tb", 1, 1)).toEqual({ shown: "a b", caret: " ^" });
    expect(excerptOf("a\u200bb", 2, 1)).toEqual({ shown: "a\\u{200b}b", caret: `${" ".repeat(9)}^` });
  });

  test("an excerpt of a long line is cut around what is meant, and says where", () => {
    const line = `${"a".repeat(139)}b${"c".repeat(200)}`;
    expect(excerptOf(line, 139, 1)).toEqual({ shown: `${line.slice(0, 160)}…`, caret: `${" ".repeat(139)}^` });
    expect(excerptOf(line, 140, 2)).toEqual({ shown: `…${line.slice(100, 260)}…`, caret: `${" ".repeat(41)}^^` });
    expect(excerptOf(line, 300, 2)).toEqual({ shown: `…${line.slice(260)}`, caret: `${" ".repeat(41)}^^` });
    expect(excerptOf(line, 140, 500).caret).toBe(`${" ".repeat(41)}${"^".repeat(120)}`);
    expect(excerptOf("x".repeat(160), 0, 1).shown).toBe("x".repeat(160));
    expect(excerptOf("x".repeat(161), 0, 1).shown).toBe(`${"x".repeat(160)}…`);
  });

  test("a summary is one line with the arguments by name", () => {
    expect(argsSummary("Edit", { path: "src/a.ts", old: "a\nb", times: 2 })).toBe(
      'Edit(path: "src/a.ts", old: "a\\nb", times: 2)',
    );
    expect(argsSummary("Echo", ["a", 1])).toBe('Echo(["a",1])');
  });

  test("a summary hides nothing at the end of a long argument", () => {
    const summary = argsSummary("Bash", { command: `echo ${"safe ".repeat(200)}; rm -rf ~` });
    expect(summary).toContain("; rm -rf ~");
    expect(summary).toMatch(/… \d+ characters …/);
    expect(summary.length).toBeLessThan(400);
  });

  test("a long argument keeps two thirds at the front and one at the end, and says how much is left out", () => {
    const argument = (length: number): string =>
      argsSummary("Echo", { a: Array.from({ length }, (_, at) => String.fromCharCode(97 + (at % 26))).join("") });
    expect(argument(198)).not.toContain("…");
    const cut = /^Echo\(a: "(.*) … 100 characters … (.*)"\)$/.exec(argument(298));
    expect([cut?.[1]?.length, cut?.[2]?.length]).toEqual([133, 65]);
  });

  test("a line break in a name is written out, so that a summary stays one line", () => {
    expect(argsSummary("Echo\nRead", { "a\nb": 1 })).toBe("Echo\\nRead(a\\nb: 1)");
  });

  test("JSON is shown with everything unseen escaped, and still parses to the same value", () => {
    const value = { "k\u202e": ["a\u001b[2J", "\u{e0041}", "half \ud83d", "é 👍", { n: 1 }], "two\nlines": null };
    const text = visibleJson(value);
    expect(JSON.parse(text)).toEqual(value);
    expect(text).toContain('"k\\u202e"');
    expect(text).toContain('"\\udb40\\udc41"');
    expect(text).toContain("é 👍");
    expect(visible(text)).toBe(text);
    expect(visibleJson("\u00a0")).toBe('"\\u00a0"');
    expect(visibleJson({ a: 1 }, 2)).toBe('{\n  "a": 1\n}');
  });

  test("a summary of many and of hostile names stays short and clean", () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`key${at}`, at]));
    expect(argsSummary("Echo", many)).toContain("and 42 more");
    const hostile = argsSummary(`Echo\u001b${"x".repeat(5_000)}`, { [`\n\u202e${"k".repeat(5_000)}`]: "\u001b" });
    expect(hostile.length).toBeLessThan(600);
    for (const character of ["\n", "\u001b", "\u202e"]) expect(hostile).not.toContain(character);
  });

  const call = { executionId: "plan#1", attempt: 1, id: "t1.c0", tool: "Edit", argsDigest: "d" };

  test("a grant is asked for with the whole identity of the call and the reason it is needed", () => {
    const asked = {
      ...call,
      given: { path: "a" },
      input: { path: "a" },
      summary: 'Edit(path: "a")',
      why: "not\u001b in the envelope",
      subjects: [],
    };
    expect(grantRequestBody(asked)).toEqual({
      executionId: "plan#1",
      attempt: 1,
      proposalId: "t1.c0",
      tool: "Edit",
      input: { path: "a" },
      argsSummary: 'Edit(path: "a")',
      argsDigest: "d",
      why: "not\\u{1b} in the envelope",
    });
  });

  test("a person sees where links lead, each path once", () => {
    const path = { kind: "path", real: "/work/src/a.ts", access: "write" } as const;
    const subjects = [path, { ...path, access: "read" } as const, path, { kind: "host", host: "a.example" } as const];
    const [given, input] = [{ path: "a" }, { path: "a" }];
    expect(grantRequestBody({ ...call, given, input, summary: "", why: "", subjects }).touches).toEqual([
      { access: "write", path: "/work/src/a.ts" },
      { access: "read", path: "/work/src/a.ts" },
    ]);
  });

  test("arguments that a tool's schema filled in stand beside those that were digested", () => {
    const given = { path: "a", all: true };
    const asked = { ...call, given, argsDigest: digestOf(given), summary: "", why: "", subjects: [] };
    const filled = grantRequestBody({ ...asked, input: { path: "a", all: true, times: 1 } });
    expect(filled.input).toEqual({ path: "a", all: true, times: 1 });
    expect(digestOf(filled.proposed ?? null)).toBe(filled.argsDigest);
    expect(grantRequestBody({ ...asked, input: { all: true, path: "a" } })).not.toHaveProperty("proposed");
  });
});
