import { describe, expect, test } from "vitest";
import { decide, mayBeAnyLine, type SecurityMode } from "../../packages/core/src/gate/decide.ts";
import { compileEnvelope } from "../../packages/core/src/gate/envelope.ts";
import { command, judge, path, word, workspace } from "../support/gate.ts";

const refusedSubject = [{ kind: "refused", reason: "no" }] as const;
const badInput = { bound: { ok: false, issues: [{ path: "$.path", message: "is required" }] } } as const;

describe("the order of the machine's word", () => {
  test("an unknown tool is refused before anything else is looked at", () => {
    const state = { mode: "yolo", allow: compileEnvelope(["Foo"]), workspace } as const;
    const verdict = decide({ tool: "Foo" }, compileEnvelope(["Foo"]), state);
    expect(word(verdict)).toBe("unknown_tool");
    expect(verdict).toEqual({ kind: "deny", cause: "unknown_tool", reason: "no live tool has this name" });
  });

  test("arguments that could not be read are invalid input, and no one is asked", () => {
    const tool = { effect: "write", builtin: true } as const;
    const state = { mode: "ask", allow: compileEnvelope([]), workspace, tool } as const;
    expect(decide({ tool: "Edit", inputFault: "not JSON" }, compileEnvelope([]), state)).toMatchObject({
      kind: "deny",
      cause: "invalid_tool_input",
      issues: [{ path: "$", message: "not JSON" }],
    });
  });

  test("an input the schema refused is invalid, also outside the envelope", () => {
    expect(judge("Edit", { allowedTools: [], tool: badInput })).toMatchObject({
      cause: "invalid_tool_input",
      issues: [{ path: "$.path" }],
    });
  });

  test("an input that was never checked is invalid", () => {
    const state = {
      mode: "yolo",
      allow: compileEnvelope([]),
      workspace,
      tool: { effect: "read", builtin: true },
    } as const;
    expect(decide({ tool: "Read" }, compileEnvelope(["Read"]), state)).toMatchObject({
      cause: "invalid_tool_input",
      issues: [{ path: "$", message: expect.stringMatching(/./) }],
    });
  });

  test.each(["ask", "allowlist", "yolo"] as const)(
    "a hard limit stands inside the envelope, outside of it and without one (%s)",
    (mode) => {
      for (const allowedTools of [["Edit"], [], undefined]) {
        expect(judge("Edit", { allowedTools, mode, allow: ["Edit"], subjects: refusedSubject })).toEqual({
          kind: "deny",
          cause: "limit",
          reason: "no",
        });
      }
    },
  );

  test.each(["ask", "allowlist", "yolo"] as const)(
    "inside the envelope the machine approves, whatever the mode (%s)",
    (mode) => {
      expect(judge("Edit", { allowedTools: ["Edit"], mode })).toEqual({ kind: "allow", by: "envelope" });
    },
  );

  test.each(["ask", "allowlist", "yolo"] as const)(
    "the mode never approves what is outside an envelope (%s)",
    (mode) => {
      expect(word(judge("Edit", { allowedTools: ["Read"], mode, allow: ["*"] }))).toBe("ask");
      expect(word(judge("Read", { allowedTools: [], mode, allow: ["*"], tool: { effect: "read" } }))).toBe("ask");
    },
  );

  test("who asks for a grant says why", () => {
    expect(judge("Edit", { allowedTools: ["Read", "Grep"] })).toEqual({
      kind: "prompt",
      why: "Edit is not in the envelope (Read, Grep)",
    });
  });
});

describe("without an envelope the session's mode decides", () => {
  test("yolo approves what no limit forbids", () => {
    expect(judge("Bash", { mode: "yolo", subjects: [command("rm -rf src")] })).toEqual({
      kind: "allow",
      by: "mode",
    });
  });

  test.each([
    ["a reading tool of ours passes", { effect: "read", builtin: true }, "mode"],
    ["a tool of ours that asks the person anyway passes", { effect: "ask", builtin: true }, "mode"],
    ["a writing tool of ours is asked about", { effect: "write", builtin: true }, "ask"],
    ["a reading tool of someone else is asked about", { effect: "read", builtin: false }, "ask"],
  ] as const)("ask: %s", (_, tool, expected) => {
    expect(word(judge("Read", { mode: "ask", tool, allow: ["*"] }))).toBe(expected);
  });

  test.each([
    ["a listed path", [path("/ws/src/a.ts", "write")], "mode"],
    ["another path", [path("/ws/docs/a.md", "write")], "mode refused"],
  ])("allowlist judges %s with the rules of an envelope", (_, subjects, expected) => {
    const verdict = judge("Edit", { mode: "allowlist", allow: ["Edit(src/**)"], subjects });
    expect(verdict.kind === "deny" ? `${verdict.cause} refused` : word(verdict)).toBe(expected);
    if (verdict.kind === "deny") expect(verdict.reason).toContain("docs/a.md is outside Edit(src/**)");
  });

  test("allowlist gives reading tools of ours no leave of its own", () => {
    expect(judge("Read", { mode: "allowlist", tool: { effect: "read" } })).toMatchObject({
      kind: "deny",
      cause: "mode",
    });
  });
});

describe("names", () => {
  test.each([
    [["Read"], "Read", "envelope"],
    [["Read"], "read", "ask"],
    [["Read"], "ReadAll", "ask"],
    [["mcp__github__*"], "mcp__github__search", "envelope"],
    [["mcp__github__*"], "mcp__gitlab__search", "ask"],
    [[{ tool: "mcp__x", optional: true }], "mcp__x", "envelope"],
    [[], "Read", "ask"],
  ] as const)("%j and %s: %s", (allowedTools, tool, expected) => {
    expect(word(judge(tool, { allowedTools }))).toBe(expected);
  });
});

describe("scopes of paths", () => {
  test.each([
    ["Edit(src/**)", "/ws/src/a/b.ts", "envelope"],
    ["Edit(src/**)", "/ws/docs/a.md", "ask"],
    ["Edit(src/**)", "/ws/Src/a.ts", "ask"],
    ["Edit(src/**)", "/ws/src-old/a.ts", "ask"],
    ["Edit(src/**)", "/ws/src/../docs/a.md", "ask"],
    ["Edit(*.md)", "/ws/README.md", "envelope"],
    ["Edit(*.md)", "/ws/docs/README.md", "ask"],
  ])("%s and %s: %s", (rule, real, expected) => {
    expect(word(judge("Edit", { allowedTools: [rule], subjects: [path(real, "write")] }))).toBe(expected);
  });

  test("every path of a call has to be in scope, read or written", () => {
    const subjects = [path("/ws/docs/a.md"), path("/ws/src/a.md", "write")];
    expect(word(judge("Move", { allowedTools: ["Move(src/**)"], subjects }))).toBe("ask");
    expect(word(judge("Move", { allowedTools: ["Move(src/**)", "Move(docs/**)"], subjects }))).toBe("envelope");
  });

  test("a call that names no path is not in a scope of paths", () => {
    expect(word(judge("Grep", { allowedTools: ["Grep(src/**)"] }))).toBe("ask");
    expect(word(judge("Grep", { allowedTools: ["Grep(src/**)"], subjects: [path("/ws")] }))).toBe("ask");
  });

  test("a host is outside every scope and inside a rule without one", () => {
    const subjects = [{ kind: "host", host: "example.com" }] as const;
    expect(word(judge("Fetch", { allowedTools: ["Fetch(src/**)"], subjects }))).toBe("ask");
    expect(word(judge("Fetch", { allowedTools: ["Fetch"], subjects }))).toBe("envelope");
  });

  test("what cannot be known before it runs is outside, with its reason", () => {
    const subjects = [{ kind: "opaque", reason: "eval of a variable" }] as const;
    expect(judge("Bash", { allowedTools: ["Bash", "Edit"], subjects })).toEqual({
      kind: "prompt",
      why: "eval of a variable",
    });
  });
});

describe("a call that may be any command line", () => {
  const walled = [{ kind: "sandboxed", by: "bubblewrap" }] as const;
  const all = compileEnvelope(["Bash", "Edit"]);
  const none = compileEnvelope([]);

  test("is one whose envelope reads and writes all files, or reads what a sandbox can be given", () => {
    const open = { mode: "ask", allow: none } as const;
    expect(mayBeAnyLine("Bash", all, [], open)).toBe(true);
    expect(mayBeAnyLine("Bash", compileEnvelope(["Bash"]), [], open)).toBe(false);
    expect(mayBeAnyLine("Bash", compileEnvelope(["Bash"]), walled, open)).toBe(true);
    expect(mayBeAnyLine("Bash", compileEnvelope(["Bash", "Read(*.md)"]), walled, open)).toBe(false);
  });

  test("is none outside an envelope, whatever the mode and its list allow", () => {
    expect(mayBeAnyLine("Bash", none, [], { mode: "yolo", allow: all })).toBe(false);
    expect(mayBeAnyLine("Bash", none, [], { mode: "allowlist", allow: all })).toBe(false);
  });

  test("is any in yolo, one of the list in allowlist, and none in ask", () => {
    const inMode = (mode: SecurityMode, allow = all) => mayBeAnyLine("Bash", undefined, [], { mode, allow });
    expect([inMode("yolo", none), inMode("allowlist"), inMode("allowlist", none), inMode("ask")]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  test("names any path behind a wall, but no command that controls runs", () => {
    const subjects = [...walled, path("/etc/passwd"), command("cat /etc/passwd")];
    expect(word(judge("Bash", { allowedTools: ["Bash"], subjects }))).not.toBe("limit");
    const answering = [...walled, command("sluice answer r1 yes")];
    expect(word(judge("Bash", { allowedTools: ["Bash"], subjects: answering }))).toBe("limit");
    expect(word(judge("Bash", { allowedTools: ["Bash(cat *)"], subjects }))).toBe("limit");
  });
});
