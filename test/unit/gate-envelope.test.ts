import type { AllowedTool, Subject } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { compileEnvelope, fileReach, sandboxOf, whyOutside } from "../../packages/core/src/gate/envelope.ts";
import { command, judge, path, tree, word, words, workspace } from "../support/gate.ts";

function bash(allowedTools: readonly string[], ...subjects: readonly Subject[]): string {
  return word(judge("Bash", { allowedTools, subjects }));
}

/** What a person reads about a call that is outside the envelope. */
function why(tool: string, allowedTools: readonly AllowedTool[], ...subjects: readonly Subject[]): string {
  const verdict = judge(tool, { allowedTools, subjects });
  return verdict.kind === "prompt" ? verdict.why : `not asked: ${word(verdict)}`;
}
const ls = command("ls -la", { readOnly: true });
const cat = command("cat docs/a.md", { readOnly: true });
const operand = path("/ws/docs/a.md", "read", "operand");

test("a reason quotes the words of a command that have blanks or quotes", () => {
  const subject = words(["echo", "it's", "a b", "c"]);
  expect(why("Bash", ["Bash(npm test)"], subject)).toContain(String.raw`echo 'it'\''s' 'a b' c does not match`);
});

test.each<[readonly string[], boolean]>([
  [["Edit"], true],
  [["Read", "Write(**)"], true],
  [["Edit(**/*)"], true],
  [["Write(**/**)"], true],
  [["*"], true],
  [["Read", "Bash(npm *)", "Grep(**)"], false],
  [["Write(src/**)", "Edit(**/*.md)", "Edit(*)"], false],
  [["Edit(**/docs/**)"], false],
  [[], false],
])("whether %j allow writing all files: %s", (allowedTools, all) => {
  expect(compileEnvelope(allowedTools).writesAll).toBe(all);
});

describe("paths found in a command", () => {
  test("an operand is free only where every command of the line is listed", () => {
    const rules = ["Bash", "Bash(npm test *)", "Read(src/**)"];
    expect(bash(rules, command("npm test"), operand)).toBe("envelope");
    expect(bash(rules, command("npm test"), cat, operand)).toBe("ask");
    expect(bash(rules, cat, command("npm test"), operand)).toBe("ask");
  });

  test("an operand of no command at all is as free as Read is", () => {
    expect(bash(["Bash", "Bash(cat *)", "Read(src/**)"], operand)).toBe("ask");
    expect(bash(["Bash", "Bash(cat *)", "Read(docs/**)"], operand)).toBe("envelope");
  });

  test("a cd inside the workspace is no read, whatever Read is limited to", () => {
    const cd = command("cd docs", { readOnly: true });
    expect(bash(["Bash", "Read(src/**)"], cd, path("/ws/docs", "read", "cd"))).toBe("envelope");
  });

  test("a plain Read beside a scoped one is plain", () => {
    expect(bash(["Bash", "Read", "Read(src/**)"], cat, operand)).toBe("envelope");
    expect(bash(["Bash", "Read(src/**)", "Read(lib/**)"], cat, operand)).toBe("ask");
  });
});

describe("a path with all below it is inside a scope that covers all of that", () => {
  const grep = command("grep -r x docs/private", { readOnly: true });
  const own = (rule: string, access: "read" | "write"): string => {
    const [tool = ""] = rule.split("(");
    return word(judge(tool, { allowedTools: [rule], subjects: [tree("/ws/docs/private", access)] }));
  };

  test.each(["docs/**", "**", "docs/**/*", "docs/private/**", "*/private/**", "**/private/**"])("%s", (scope) => {
    expect(bash(["Bash", `Read(${scope})`], grep, tree("/ws/docs/private", "read", "operand"))).toBe("envelope");
    expect(own(`Grep(${scope})`, "read")).toBe("envelope");
    expect(own(`RemoveTree(${scope})`, "write")).toBe("envelope");
  });

  test.each(["docs/*", "docs/private", "*/*", "docs/p*", "**/private", "**/p*", "docs/{private,b}", "docs/**/private"])(
    "and not inside %s, which covers the path",
    (scope) => {
      expect(bash(["Bash", `Read(${scope})`], cat, path("/ws/docs/private", "read", "operand"))).toBe("envelope");
      expect(bash(["Bash", `Read(${scope})`], grep, tree("/ws/docs/private", "read", "operand"))).toBe("ask");
      expect(own(`Grep(${scope})`, "read")).toBe("ask");
      expect(own(`RemoveTree(${scope})`, "write")).toBe("ask");
    },
  );

  test("or of a command that is listed", () => {
    expect(bash(["Bash(grep *)", "Read(docs/*)"], grep, tree("/ws/docs/private", "read", "operand"))).toBe("envelope");
  });

  test("and a command that writes it needs the same of Edit or Write", () => {
    const removed = tree("/ws/docs/private", "write", "operand");
    expect(bash(["Bash", "Edit(docs/*)"], grep, removed)).toBe("ask");
    expect(bash(["Bash", "Edit(docs/**)"], grep, removed)).toBe("envelope");
  });
});

test("a line that only redirects names no command, so that no scope of commands holds it", () => {
  const redirect = path("/ws/in.txt", "read", "redirect");
  expect(bash(["Bash(cat *)", "Read"], redirect)).toBe("ask");
  expect(bash(["Bash", "Read"], redirect)).toBe("envelope");
});

test("a host is outside a scope also beside a path that is inside of it", () => {
  const host: Subject = { kind: "host", host: "example.com" };
  expect(why("Fetch", ["Fetch(src/**)"], path("/ws/src/a.ts"), host)).toContain("example.com");
});

describe("asked without the hard limits", () => {
  const outside = (tool: string, rules: readonly AllowedTool[], subject: Subject): string | undefined =>
    whyOutside(compileEnvelope(rules), tool, [subject], workspace);

  test("what is beyond a limit is inside no envelope", () => {
    expect(outside("Bash", ["*"], { kind: "refused", reason: "not this" })).toBe("not this");
  });

  test("a path out of the workspace is inside no envelope", () => {
    expect(outside("Edit", ["*"], path("/etc/passwd", "write"))).toContain("/etc/passwd");
    expect(outside("Bash", ["*"], path("/etc/passwd", "read", "operand"))).toContain("/etc/passwd");
  });
});

describe("the files that a process may touch", () => {
  const reach = (...rules: readonly AllowedTool[]) => fileReach(compileEnvelope(rules), "Bash");

  test("are all without an envelope", () => {
    expect(fileReach(undefined, "Bash")).toEqual({ reads: [""], writes: [""] });
  });

  test("are read where Read opens them, each a folder or a file", () => {
    expect(reach("Bash", "Read(docs/guide/**)", "Read(package.json)").reads).toEqual(["docs/guide", "package.json"]);
    expect(reach("Bash", "Bash(npm test *)", "Read(src/**)").reads).toEqual(["src"]);
    expect(reach("Bash", "Read(**)").reads).toEqual([""]);
    expect(reach("Bash", "Read", "Read(src/**)").reads).toEqual([""]);
    expect(reach("Bash").reads).toEqual([""]);
  });

  test("are read and written as files where no scope covers what is below them", () => {
    expect(reach("Bash", "Read(docs)", "Read(src/**)", "Edit(src)", "Edit(docs/**)", "Write(docs)")).toEqual({
      reads: ["docs", "src"],
      writes: ["src", "docs"],
      fileReads: ["docs"],
      fileWrites: ["src"],
    });
    // A listed command reads all files, whatever Read says.
    expect(reach("Bash(npm test)", "Read(src/**)", "Write(src/**)")).toEqual({ reads: [""], writes: ["src"] });
  });

  test("are all read where a command is listed by a scope, or where Read opens what is no folder", () => {
    expect(reach("Bash(npm test *)", "Read(src/**)").reads).toEqual([""]);
    for (const glob of ["*.md", "a?.md", "{a,b}/**", "**/x/**"])
      expect(reach("Bash", "Read(src/**)", `Read(${glob})`).reads).toEqual([""]);
  });

  test("are written where Edit or Write opens a folder or a file, each named once", () => {
    expect(reach("Bash").writes).toEqual([]);
    expect(reach("Bash", "Edit", "Write").writes).toEqual([""]);
    expect(reach("Bash", "Edit(**)").writes).toEqual([""]);
    expect(reach("Bash", "Edit(src/**)", "Write(src/**)", "Write(out.txt)").writes).toEqual(["src", "out.txt"]);
    expect(reach("Bash", "Edit(*.md)", "Write(out/**)").writes).toEqual(["out"]);
  });
});

test("a call's sandbox is named; a line without one has none, and no other call has processes that are known", () => {
  const line: Subject = { kind: "line", text: "ls" };
  expect(sandboxOf([line, { kind: "sandboxed", by: "bubblewrap" }])).toBe("bubblewrap");
  expect(sandboxOf([path("/ws/a"), line])).toBe("none");
  expect(sandboxOf([path("/ws/a")])).toBeUndefined();
});

describe("a person who is asked for a grant reads", () => {
  test("which path is outside of which rules", () => {
    const reason = why("Edit", ["Edit(src/**)", "Edit(test/**)"], path("/ws/docs/a.md", "write"));
    expect(reason).toContain("docs/a.md");
    expect(reason).not.toContain("/ws/docs");
    expect(reason).toContain("Edit(src/**), Edit(test/**)");
  });

  test("that the envelope is empty", () => {
    expect(why("Edit", [])).toBe("Edit is not in the envelope (it is empty)");
  });

  test("that the call names nothing a scope could be compared with", () => {
    expect(why("Grep", ["Grep(src/**)", "Grep(docs/**)"])).toContain("Grep(src/**), Grep(docs/**)");
  });

  test("which file a command reads or writes, and where it leaves to", () => {
    expect(why("Bash", ["Bash", "Read(src/**)"], cat, operand)).toContain("reads docs/a.md");
    expect(why("Bash", ["Bash"], ls, path("/ws/a.txt", "write", "redirect"))).toContain("writes a.txt");
    expect(why("Bash", ["Bash"], ls, path("/tmp", "read", "cd"))).toContain("/tmp");
    expect(why("Bash", ["Bash", "Read(docs/*)"], cat, tree("/ws/docs/a", "read", "operand"))).toBe(
      "the command reads docs/a with all below it, where Read is not allowed",
    );
  });

  test("that the workspace's root is read", () => {
    expect(why("Bash", ["Bash", "Read(src/**)"], ls, path("/ws", "read", "operand"))).toBe(
      "the command reads ., where Read is not allowed",
    );
    expect(why("Grep", ["Grep(src/**)"], path("/ws"))).toBe(". is outside Grep(src/**)");
  });

  test("which command, and what is wrong with it", () => {
    const assigned = command("npm test", { assignments: ["PATH", "NODE_OPTIONS"] });
    expect(why("Bash", ["Bash"], assigned)).toContain("npm test runs with PATH, NODE_OPTIONS");
    expect(why("Bash", ["Bash"], words(["$TOOL", "a"], { dynamic: [0] }))).toContain("$TOOL a");
    expect(why("Bash", ["Bash(ls *)"], command("rm -r src"))).toContain("rm -r src does not match Bash(ls *)");
    expect(why("Bash", ["Bash"], command("rm -r src"))).toContain("rm -r src is not known to only read");
    expect(why("Bash", ["Bash"], command("sort -o a", { why: "sort -o writes a file" }))).toContain(
      "sort -o a: sort -o writes a file",
    );
    const forms = { why: "git log --output writes a file", hasReadingForms: true } as const;
    const log = command("git log --output=x", forms);
    expect(why("Bash", ["Bash(git log *)"], log)).toContain(
      "git log --output=x: git log --output writes a file, which Bash(git log *) does not cover",
    );
    const fed = words(["npm", "test", "{…}"], { dynamic: [2], via: ["xargs"] });
    expect(why("Bash", ["Bash(npm test *)"], fed)).toContain("npm test {…} has words");
    expect(why("Bash", ["Bash(npm test *)"], command("npm test -- --output=x"))).toMatch(/^--output=x may name/);
  });

  test("120 characters of a command and no more", () => {
    const fits = `x ${"y".repeat(118)}`;
    expect(why("Bash", ["Bash"], command(fits))).toContain(`${fits} is not`);
    const reason = why("Bash", ["Bash"], command(`${fits}zz`));
    expect(reason).toContain(`${fits}… is not`);
    expect(reason).not.toContain("z");
  });
});
