import type { Subject } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { compileEnvelope, whyOutside } from "../../packages/core/src/gate/envelope.ts";
import { command, judge, path, word, words, workspace } from "../support/gate.ts";

function bash(allowedTools: readonly string[], ...subjects: readonly Subject[]): string {
  return word(judge("Bash", { allowedTools, subjects }));
}
const ls = command("ls -la", { readOnly: true });

describe("a listed command", () => {
  test("runs as listed", () => {
    expect(bash(["Bash(npm test *)"], command("npm test"))).toBe("envelope");
    expect(bash(["Bash(npm test *)"], command("npm test -- src/a.test.ts --grep=adds --run"))).toBe("envelope");
    expect(bash(["Bash(npm test)"], command("npm test -- --watch"))).toBe("ask");
    expect(bash(["Bash(npm test *)"], command("npm testing"))).toBe("ask");
  });

  test("has options that may name programs or files by its rule's * only behind a wall, or where files may be written", () => {
    const reporter = command("npm test -- --reporter=./x.mjs");
    const walled: Subject = { kind: "sandboxed", by: "bubblewrap" };
    const setting = command("make test SHELL=./x");
    expect(bash(["Bash(npm test *)"], reporter)).toBe("ask");
    const fed = words(["npm", "test", "{…}"], { dynamic: [2], via: ["xargs"] });
    expect(bash(["Bash(npm test *)"], fed)).toBe("ask");
    expect(bash(["Bash(npm test *)"], fed, walled)).toBe("envelope");
    expect(bash(["Bash(make test *)"], setting)).toBe("ask");
    expect(bash(["Bash(npm test *)"], reporter, { kind: "line", text: "" }, walled)).toBe("envelope");
    expect(bash(["Bash(npm test *)", "Edit"], reporter)).toBe("envelope");
    expect(bash(["Bash(npm test -- --reporter=./x.mjs)"], reporter)).toBe("envelope");
  });

  test("may not have an option by another * of its rule", () => {
    expect(bash(["Bash(npm * test)"], command("npm run test"))).toBe("envelope");
    expect(bash(["Bash(npm * test)"], command("npm --silent test"))).toBe("envelope");
    expect(bash(["Bash(npm * test)"], command("npm --prefix=docs test"))).toBe("ask");
    expect(bash(["Bash(npm * test)", "Edit"], command("npm --prefix=docs test"))).toBe("envelope");
    expect(bash(["Bash(npm --prefix=docs test)"], command("npm --prefix=docs test"))).toBe("envelope");
  });

  test("that only reads may have any option", () => {
    const grep = command("grep --include=x a", { readOnly: true });
    expect(bash(["Bash(grep *)"], grep)).toBe("envelope");
  });

  test("lists no other command of the same line", () => {
    expect(bash(["Bash(npm test *)"], command("npm test"), command("rm -rf src"))).toBe("ask");
    expect(bash(["Bash(npm test *)", "Bash(git status)"], command("npm test"), command("git status"))).toBe("envelope");
  });

  test("may stand beside what reads nothing but its input, and beside readers where Read opens what they read", () => {
    const npm = command("npm test");
    const tail = command("tail -50", { readOnly: true });
    const cat = command("cat docs/a.md", { readOnly: true });
    const operand = path("/ws/docs/a.md", "read", "operand");
    expect(bash(["Bash(npm test *)"], npm, tail)).toBe("envelope");
    expect(bash(["Bash(npm test *)"], tail)).toBe("ask");
    expect(bash(["Bash(npm test *)"], npm, cat, operand)).toBe("ask");
    expect(bash(["Bash(npm test *)", "Read(docs/**)"], npm, cat, operand)).toBe("envelope");
    expect(bash(["Bash(npm test *)", "Read(src/**)"], npm, cat, operand)).toBe("ask");
  });

  test("that can only read goes no further than reading by a * of its rule", () => {
    const known = { hasReadingForms: true } as const;
    const writes = command("git log --output=x", { ...known, why: "git log --output writes a file" });
    expect(bash(["Bash(git log *)"], writes)).toBe("ask");
    expect(bash(["Bash(git log --output=x)"], writes)).toBe("envelope");
    expect(bash(["Bash(git log *)", "Edit"], writes)).toBe("envelope");
    const copies = command("uniq -f 0 a b", { ...known, why: "uniq writes its second operand" });
    for (const rule of ["uniq *", "uniq -f *", "uniq -f 0 a b *", "uniq -f * a b", "* -f 0 a b", "*"])
      expect(bash([`Bash(${rule})`], copies)).toBe("ask");
    expect(bash(["Bash(uniq -f 0 a b)"], copies)).toBe("envelope");
    expect(bash(["Bash(uniq *)"], command("uniq a b", known))).toBe("ask");
    expect(bash(["Bash(uniq *)"], command("uniq a", { ...known, readOnly: true }))).toBe("envelope");
    const pushes = command("git push origin", { why: "git push is not known to only read" });
    expect(bash(["Bash(git push *)"], pushes)).toBe("envelope");
  });

  test("that its own rule covers needs no other rule to cover it, in any order", () => {
    const rules = ["Bash(npm test *)", "Bash(npm test --coverage)"];
    for (const listed of [rules, rules.toReversed()]) {
      expect(bash(listed, command("npm test --coverage"))).toBe("envelope");
      expect(bash(listed, command("npm test --prefix=x"))).toBe("ask");
    }
  });

  test("runs in another folder only in a sandbox, if a rule names the folder, or if a stage may write all files", () => {
    const rules = ["Read", "Write(src/**)", "Edit(**/*.md)", "Bash(npm test)"];
    const npm = command("npm test", { folder: "/ws/docs" });
    const walled: Subject = { kind: "sandboxed", by: "bubblewrap" };
    expect(bash(rules, npm)).toBe("ask");
    expect(bash(rules, npm, walled)).toBe("envelope");
    expect(bash([...rules, "Bash(cd docs && npm test)"], npm)).toBe("envelope");
    expect(bash([...rules, "Bash(cd d* && npm test)"], npm)).toBe("envelope");
    expect(bash([...rules, "Bash(cd docs/sub && npm test)"], npm)).toBe("ask");
    for (const all of ["Edit", "Write(**)", "Write(**/**)", "Edit(**/*)", "*"])
      expect(bash([...rules, all], npm)).toBe("envelope");
    expect(bash(rules, command("npm test", { folder: "/ws/docs", readOnly: true }))).toBe("envelope");
    expect(bash(rules, command("npm test", { folder: "/ws" }))).toBe("envelope");
    expect(bash(rules, command("npm test", { folder: "/elsewhere" }))).toBe("ask");
  });

  test.each([
    ["cd android && ./gradlew *", "./android/gradlew test --info", "/ws/android"],
    ["cd api && .venv/bin/pytest *", "./api/.venv/bin/pytest -k x tests", "/ws/api"],
    ["cd web && node_modules/.bin/vitest *", "./web/node_modules/.bin/vitest run -t x", "/ws/web"],
    ["cd web && npx vitest *", "npx vitest -t x", "/ws/web"],
  ])("of the rule %s gets the words that its program takes, as it does in the root: %s", (rule, line, folder) => {
    expect(bash([`Bash(${rule})`], command(line, { folder }))).toBe("envelope");
    expect(bash([`Bash(${rule})`], command(`${line} --weird`, { folder }))).toBe("ask");
  });

  test("of a program below the root is no known one", () => {
    for (const program of ["./undefined/node_modules/.bin/vitest", "./web/node_modules/.bin/vitest"])
      expect(bash([`Bash(${program} *)`], command(`${program} -t x`))).toBe("ask");
  });

  test("in another folder is refused with a rule that would allow it, unless another stage may write all files", () => {
    const envelope = compileEnvelope(["Bash(npm *)"]);
    const why = (folder: string, writesAll?: () => boolean) =>
      whyOutside(envelope, "Bash", [command("npm test", { folder })], workspace, writesAll && { writesAll });
    expect(why("/ws/docs")).toBe(
      "npm test runs in docs, and without a sandbox Bash(npm *) covers it only in the workspace's root: run it there, or list it with its folder, as Bash(cd docs && …)",
    );
    expect(why("/ws/docs", () => false)).toBe(why("/ws/docs"));
    expect(why("/ws/docs", () => true)).toBeUndefined();
    expect(why("/ws/docs/my files")).toContain("as Bash(cd 'docs/my files' && …)");
    expect(why("/elsewhere")).toContain("runs in /elsewhere,");
  });

  test("is not listed with a variable in front", () => {
    expect(bash(["Bash(npm test *)"], command("npm test", { assignments: ["NODE_OPTIONS"] }))).toBe("ask");
  });

  test("may read its operands in the workspace, and redirect only what Read, Edit or Write may touch", () => {
    const cat = command("cat docs/a.md", { readOnly: true });
    const npm = command("npm test");
    expect(bash(["Bash(cat *)"], cat, path("/ws/docs/a.md", "read", "operand"))).toBe("envelope");
    expect(bash(["Bash(npm test *)"], npm, path("/ws/in.txt", "read", "redirect"))).toBe("ask");
    expect(bash(["Bash(npm test *)", "Read"], npm, path("/ws/in.txt", "read", "redirect"))).toBe("envelope");
    expect(bash(["Bash(npm test *)"], npm, path("/ws/out.txt", "write", "redirect"))).toBe("ask");
    expect(bash(["Bash(npm test *)", "Write(out/**)"], npm, path("/ws/out.txt", "write", "redirect"))).toBe("ask");
    expect(bash(["Bash(npm test *)", "Write(out/**)"], npm, path("/ws/out/a.txt", "write", "redirect"))).toBe(
      "envelope",
    );
  });
});

describe("plain Bash in a state that may not write", () => {
  test("opens the commands that only read, and no other", () => {
    expect(bash(["Bash", "Read"], ls)).toBe("envelope");
    expect(bash(["Bash", "Read"], ls, command("touch a"))).toBe("ask");
    expect(bash(["*"], command("touch a"))).toBe("envelope");
  });

  test("a listed command is open beside it", () => {
    expect(bash(["Bash", "Bash(npm test *)"], ls, command("npm test"))).toBe("envelope");
  });

  test("a scope on Edit is no leave for every command", () => {
    expect(bash(["Bash", "Edit(src/**)"], command("touch a"))).toBe("ask");
  });

  test("operands are read as freely as Read may read", () => {
    const cat = command("cat docs/a.md", { readOnly: true });
    const operand = path("/ws/docs/a.md", "read", "operand");
    expect(bash(["Bash"], cat, operand)).toBe("envelope");
    expect(bash(["Bash", "Read"], cat, operand)).toBe("envelope");
    expect(bash(["Bash", "Read(src/**)"], cat, operand)).toBe("ask");
    expect(bash(["Bash", "Read(src/**)", "Read(docs/*)"], cat, operand)).toBe("envelope");
  });

  test("a redirect that writes is outside", () => {
    expect(bash(["Bash"], ls, path("/ws/list.txt", "write", "redirect"))).toBe("ask");
    expect(bash(["Bash"], ls, path("/dev/null", "write", "redirect"))).toBe("envelope");
  });
});

describe("plain Bash beside Edit or Write", () => {
  test.each(["Edit", "Write", "E*"])("opens every command (%s)", (writer) => {
    expect(bash(["Bash", writer], command("make install"))).toBe("envelope");
    expect(bash(["Bash", writer], command("ls"), path("/ws/list.txt", "write", "redirect"))).toBe("envelope");
  });

  test("covers no command whose name is not known, nor one with a variable in front", () => {
    expect(bash(["Bash", "Edit"], words(["$TOOL", "a"], { dynamic: [0] }))).toBe("ask");
    expect(bash(["Bash", "Edit"], command("npm test", { assignments: ["PATH"] }))).toBe("ask");
    expect(bash(["Bash", "Edit"], words([]))).toBe("ask");
  });

  test("an argument that is not known is no reason to ask", () => {
    expect(bash(["Bash", "Edit"], words(["npm", "run", "$SCRIPT"], { dynamic: [2] }))).toBe("envelope");
  });
});

test("a cd out of the workspace needs a grant, one inside of it does not", () => {
  const cd = command("cd x", { readOnly: true });
  expect(bash(["Bash", "Edit"], cd, path("/tmp", "read", "cd"))).toBe("ask");
  expect(bash(["Bash", "Edit"], cd, path("/ws/packages", "read", "cd"))).toBe("envelope");
});

test("without Bash in the envelope every command is outside", () => {
  expect(bash(["Read", "Edit"], ls)).toBe("ask");
});

test("a custom command tool is judged by its own rules in the same way", () => {
  const shell = (allowedTools: readonly string[], subject: Subject): string =>
    word(judge("Terminal", { allowedTools, subjects: [subject] }));
  expect(shell(["Terminal"], ls)).toBe("envelope");
  expect(shell(["Terminal"], command("touch a"))).toBe("ask");
  expect(shell(["Bash", "Edit"], command("touch a"))).toBe("ask");
});

describe("a command line", () => {
  const line: Subject = { kind: "line", text: "'/bin/true'" };
  const unread: readonly Subject[] = [{ kind: "opaque", reason: "the line has a loop" }, { kind: "line" }];
  const walled: Subject = { kind: "sandboxed", by: "bubblewrap" };
  const outside = path("/etc/hosts", "read", "operand");

  test("that cannot be read runs where every command may run and every file may be read", () => {
    expect(bash(["Bash", "Edit"], ...unread)).toBe("envelope");
    expect(bash(["Bash", "Edit", "Read"], ...unread)).toBe("envelope");
    expect(bash(["Bash", "Edit", "Read(src/**)"], ...unread)).toBe("ask");
    expect(bash(["Bash", "Edit(src/**)"], ...unread)).toBe("ask");
    expect(bash(["Bash", "Read"], ...unread)).toBe("ask");
    expect(bash(["Bash(npm test *)", "Edit"], ...unread)).toBe("ask");
    expect(bash(["Bash", "Bash(npm test *)", "Edit"], ...unread)).toBe("envelope");
    expect(bash(["Bash", "Edit", "Read(**)"], ...unread)).toBe("envelope");
    expect(bash(["Bash", "Edit", "Read(**/*.md)"], ...unread)).toBe("ask");
  });

  test("behind a wall runs whatever it is, where Bash has no scope and the wall can express what Read opens", () => {
    expect(bash(["Bash", "Read"], ...unread, walled)).toBe("envelope");
    expect(bash(["Bash"], command("touch a"), line, walled)).toBe("envelope");
    expect(bash(["Bash", "Read(src/**)", "Read(package.json)"], ...unread, walled)).toBe("envelope");
    expect(bash(["Bash", "Read(**/*.md)"], ...unread, walled)).toBe("ask");
    expect(bash(["Bash(npm test *)"], ...unread, walled)).toBe("ask");
    expect(bash(["Bash(npm test *)"], command("npm test"), line, walled)).toBe("envelope");
    expect(bash(["Read"], ...unread, walled)).toBe("ask");
  });

  test("behind a wall may name what the wall does not show; without one that is a hard limit", () => {
    const cat = command("cat /etc/hosts", { readOnly: true });
    expect(bash(["Bash", "Read"], cat, outside, line, walled)).toBe("envelope");
    expect(bash(["Bash", "Read"], cat, outside, line)).toBe("limit");
    expect(bash(["Bash(cat *)"], cat, outside, line, walled)).toBe("limit");
  });

  test("is not what another tool's unknown call is", () => {
    expect(bash(["Bash", "Edit"], { kind: "opaque", reason: "not understood" })).toBe("ask");
  });
});
