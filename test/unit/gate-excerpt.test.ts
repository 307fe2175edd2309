import { redactJson } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import { type Cleaning, cleanReason, commandExcerpt } from "../../packages/core/src/gate/excerpt.ts";
import { lineSubjects } from "../../packages/stages/src/tools/bash/language/line-subjects.ts";
import { judge, words } from "../support/gate.ts";

/** Of a value below, no part of five letters may be shown. */
const SECRET = "ecretPassw0rd";
const excerpt = (argv: readonly string[], cleaning: Cleaning = { redact: redactJson }): string =>
  commandExcerpt(argv, cleaning);

test.each([
  [["deploy", "--password", `$${SECRET}`, "--dry-run"], "deploy --password [redacted:password] --dry-run"],
  [["deploy", "-token", `-${SECRET}`, "x"], "deploy -token [redacted:token] x"],
  [["--token", `a\\${SECRET}`], "--token [redacted:token]"],
  [["deploy", `--token=<${SECRET}`], "deploy --token=[redacted:token]"],
  [["x", `PGPASSWORD=$${SECRET}`, "--token="], "x PGPASSWORD=[redacted:PGPASSWORD] --token="],
  [["x", `PGPASSWORD=(${SECRET}`], "x PGPASSWORD=[redacted:PGPASSWORD]"],
  [["x", `--env=DB_PASS=a.${SECRET}`], "x --env=DB_PASS=[redacted:DB_PASS]"],
  [["deploy", "--token=ab"], "deploy --token=[redacted:token]"],
  [["docker", `-eDB_PASSWORD=$${SECRET}`], "docker -eDB_PASSWORD=[redacted:eDB_PASSWORD]"],
  [["deploy", `password=${SECRET}.member`], "deploy password=[redacted:password]"],
  [["deploy", `password=${SECRET}(`], "deploy password=[redacted:password]"],
  [["deploy", `password=a=${SECRET}, b`], "deploy password=[redacted:password]"],
  [["deploy", `-Dpassword=user.${SECRET}`], "deploy -Dpassword=[redacted:password]"],
  [["helm", `a=b,x.y,db.password=$${SECRET}`], "helm a=b,x.y,db.password=[redacted:db.password]"],
  [["deploy", "password", "=", `user.${SECRET}`, "x"], "deploy password = [redacted:password] x"],
  [["password=", `user.${SECRET}`, "x"], "password= [redacted:password] x"],
  [["x", "--db.password=", `user.${SECRET}`], "x --db.password= [redacted:db.password]"],
  [["curl", "-H", "X-Api-Key:ecret"], "curl -H X-Api-Key:[redacted:X-Api-Key]"],
  [["curl", `Authorization: a\\${SECRET}`], "curl 'Authorization: [redacted:Authorization]'"],
  [["curl", `X-Api-Key: process."${SECRET}' x`], "curl 'X-Api-Key: [redacted:X-Api-Key]'"],
  [["curl", `--header=X-Api-Key: abcdefgh\`${SECRET}`], "curl '--header=X-Api-Key: [redacted:X-Api-Key]'"],
  [["ssh", "h", `A_TOKEN="$${SECRET}" x`], "ssh h A_TOKEN=[redacted:A_TOKEN]"],
  [["x", `{"token":"${SECRET}"}`], `x '{"token":"[redacted:token]"}'`],
  [["x", "Authorization:", "Basic", SECRET, "y"], "x Authorization: [redacted:Authorization]"],
])("what redaction masks in a line, an excerpt does not show without its quotes: %j", (argv, shown) => {
  const made = excerpt(argv);
  expect(made).toBe(shown);
  for (let at = 0; at + 5 <= SECRET.length; at += 1) expect(made).not.toContain(SECRET.slice(at, at + 5));
});

test.each([
  [["ls", "$HOME/a", "*.ts", "a\\b", "a=b,c=d", "x[0]"], "ls $HOME/a *.ts a\\b a=b,c=d x[0]"],
  [["a b", "it's", 'a"b', ""], `'a b' 'it'\\''s' 'a"b' `],
  [["x", "--token", "--dry-run", "token", "y"], "x --token --dry-run token y"],
  [["echo", "a token=b", "f(x,token=b.c)", '"token=b'], `echo 'a token=b' f(x,token=b.c) '"token=b'`],
  [["x", "token", "=y", "--token=", "-v"], "x token =y --token= -v"],
  [["--a", "=", "x", "password", "y", "=", "z"], "--a = x password y = z"],
])("other words are shown as they are, in quotes if they have blanks or quotes: %j", (argv, shown) => {
  expect(excerpt(argv)).toBe(shown);
  expect(excerpt(argv, {})).toBe(shown);
});

test("known secrets are masked in each word before it is quoted, and over words", () => {
  const mask = (text: string): string => text.replaceAll("it's", "[1]").replaceAll("a b", "[2]");
  expect(excerpt(["x", "it's", "a", "b"], { mask })).toBe("x [1] [2]");
  expect(excerpt(["x", "it's", "--token", "y"], { mask, redact: redactJson })).toBe("x [1] --token [redacted:token]");
});

test("a redaction reads lists of texts", () => {
  const redact: Cleaning["redact"] = (input) => {
    expect(input).toEqual(Array.isArray(input) ? input.map(String) : "a list");
    return input;
  };
  expect(excerpt(["x", "--a=b", "c"], { redact })).toBe("x --a=b c");
});

test("a redaction that returns something else than texts shows nothing", () => {
  expect(excerpt(["x", "y"], { redact: () => null })).toBe("…");
  expect(excerpt(["x", "y"], { redact: () => [1, 2] })).toBe("…");
  expect(excerpt(["x", "y"], { redact: () => ({ 1: "x" }) })).toBe("…");
});

test("a word of many settings takes time in proportion to its length", () => {
  expect(excerpt(["x", "a=".repeat(100_000)]).length).toBe(121);
  expect(excerpt(["x", `${"a.".repeat(300_000)}=`]).length).toBe(121);
});

describe("a reason that repeats words of the call does not show what redaction hides in them", () => {
  const reasonFor = (line: string): string => {
    const scene = { env: { PATH: process.env.PATH ?? "", HOME: "/none" }, mayWrite: false };
    const subjects = lineSubjects(line, { root: import.meta.dirname }, scene, {});
    const verdict = judge("Bash", {
      allowedTools: ["Read", "Bash"],
      subjects,
      workspace: { root: import.meta.dirname },
      redact: redactJson,
    });
    return verdict.kind === "prompt" ? verdict.why : verdict.kind === "deny" ? verdict.reason : "allowed";
  };

  test.each([
    "git show 'DB_PASSWORD=two words9'",
    "git -c 'db.password=$words9' log",
    "git diff -- ':token=two words9x'",
    "xxd --password='two words9' x",
    "find . '--token=two words9'",
    "grep -m '--password=two words9' x",
    "jq --token 'two words9' . x",
    "cd 'DB_PASSWORD=two words9'",
    "cat 'DB_PASSWORD=two words9/../../../x'",
    "echo x > 'DB_PASSWORD=two words9'",
    "DB_PASSWORD='two words9' git log",
    "git show 'A_TOKEN=two1' 'DB_PASSWORD=two1 words9'",
    `git show 'DB_PASSWORD=${"two ".repeat(29)}words9 x'`,
  ])("%s", (line) => {
    const reason = reasonFor(line);
    expect(reason).not.toBe("allowed");
    expect(reason).not.toMatch(/words9/);
  });

  test("and keeps the rest, and short words of the call", () => {
    expect(reasonFor("git show 'DB_PASSWORD=two words9'")).toContain(
      "is neither a plain revision nor an existing file",
    );
    expect(reasonFor("cd nowhere")).toContain("a cd to nowhere, which is not a folder");
    expect(reasonFor(`git show ${"x".repeat(5_000)}`).length).toBeLessThan(700);
  });

  test("of a line that could not be read, or a hidden text that may stand anywhere, only a general one is given", () => {
    const opaque = (reason: string, unread: string) =>
      cleanReason(
        reason,
        [
          { kind: "opaque", reason },
          { kind: "line", unread },
        ],
        { redact: redactJson },
      );
    expect(opaque("a loop", "for x in 'DB_PASSWORD=two words9'; do :; done")).toBe("a loop");
    expect(opaque("a name words9 that", "f DB_PASSWORD='two words9'")).toBe(
      "the reason would show what the arguments hide",
    );
    const two = "API_TOKEN=abcd1234xyz node process.js & DB_PASSWORD=abcdefgh1 true";
    expect(opaque("a process in the background", two)).toBe("a process in the background");
    const short = [words(["x", "--token", "ab"])];
    expect(cleanReason("x with ab does more", short, { redact: redactJson })).not.toContain("ab ");
    expect(cleanReason("x does more", short, { redact: redactJson })).toBe("x does more");
    expect(cleanReason("x: token=$y is no file", [words(["x", "token=$y"])], { redact: redactJson })).toBe(
      "x: token=[redacted:token] is no file",
    );
    const own: Cleaning["redact"] = () => ["#"];
    expect(cleanReason("x=yes is no file", [words(["x=yes"])], { redact: own })).toBe("# is no file");
    expect(cleanReason("known secret1", [], { mask: (text) => text.replace("secret1", "[1]") })).toBe("known [1]");
  });

  const hidden = (reason: string, ...argv: readonly string[]): string =>
    cleanReason(reason, [words(argv)], { redact: redactJson });

  test("each value of a word is hidden for itself, whatever stands between them", () => {
    const two = '{"token":"abcdef1","x":"token","password":"ghijkl2","y":1}';
    expect(hidden("no abcdef1, no ghijkl2", two)).toBe("no [redacted:token], no [redacted:password]");
    expect(hidden('no ghijkl2","y', two)).toBe('no [redacted:password]","y');
    expect(hidden(`{"token":"abcdef1"} ${two}`, two)).toBe(
      '{"token":"[redacted:token]"} {"token":"[redacted:token]","x":"token","password":"[redacted:password]","y":1}',
    );
    expect(hidden("an x and abcd", "token=abcd")).toBe("an x and [redacted:token]");
    const own: Cleaning["redact"] = () => ["[redacted:k]=end"];
    expect(cleanReason("no abcd=end", [words(["abcd=end=end"])], { redact: own })).toBe("no [redacted:k]");
    const short = '{"token":"ab","password":"ghijkl2"}';
    expect(hidden(`no ${short}`, short)).toBe('no {"token":"[redacted:token]","password":"[redacted:password]"}');
    // One of them is too short to be looked for alone.
    expect(hidden("ab and password=ab&token=abcdef", "?password=ab&token=abcdef")).not.toContain("abcdef");
  });

  test("a short value stands for itself only where the reason has it", () => {
    expect(hidden("ab does more", "--token", "ab")).toBe("the reason would show what the arguments hide");
    expect(hidden("x does more", "--token", "ab")).toBe("x does more");
    expect(hidden("abcd does more", "--token", "abcd")).toBe("[redacted:token] does more");
    expect(hidden("a-b token", "a-b", "token")).toBe("a-b token");
  });

  test("a long word is cut, also where a part of it is hidden", () => {
    const long = `${"a b ".repeat(40)}end`;
    expect(hidden(`${long} is no file`, "x", long)).toBe(`${long.slice(0, 120)}… is no file`);
    const exact = "a ".repeat(60);
    expect(hidden(`${exact} is no file`, "x", exact)).toBe(`${exact} is no file`);
    expect(hidden(`${"y ".repeat(70)}token=abcdef`, `${"y ".repeat(70)}token=abcdef`)).not.toContain("abcdef");
  });

  test("a line that was read hides nothing, and short words of one that was not may be shown", () => {
    expect(cleanReason("why", [{ kind: "line", text: "x" }], { redact: redactJson })).toBe("why");
    const unread = { kind: "line", unread: "f DB_PASSWORD='two words9'" } as const;
    expect(cleanReason("a two-step loop", [unread], { redact: redactJson })).toBe("a two-step loop");
    const four = { kind: "line", unread: "f DB_PASSWORD='four words9'" } as const;
    expect(cleanReason("a four-step loop", [four], { redact: redactJson })).toBe(
      "the reason would show what the arguments hide",
    );
  });
});
