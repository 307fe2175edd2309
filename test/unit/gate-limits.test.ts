import type { Subject } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { command, judge, path, word, words } from "../support/gate.ts";

/** In the widest envelope there is: what is refused here no grant lifts. */
function judged(subject: Subject, more: Parameters<typeof judge>[1] = {}): string {
  return word(judge("Bash", { allowedTools: ["*"], subjects: [subject], ...more }));
}

describe("paths", () => {
  test.each(["/etc/passwd", "/ws2/a", "/", "/ws/../etc/passwd", "ws/a", "", "/ws/a\0b"])(
    "%j is beyond a limit for reads too",
    (real) => {
      expect(judged(path(real))).toBe("limit");
    },
  );

  test("a relative path is beyond a limit, wherever the process happens to stand", () => {
    expect(judged(path("src/a.ts"), { workspace: { root: process.cwd() } })).toBe("limit");
  });

  test.each(["/ws", "/ws/a", "/ws/..a", "/ws/a..b/c"])("%s is in the workspace", (real) => {
    expect(judged(path(real))).toBe("envelope");
  });

  test("a workspace at the root of the disk holds everything", () => {
    expect(judged(path("/etc/hosts"), { workspace: { root: "/" } })).toBe("envelope");
  });

  test.each([
    "/ws/.git/config",
    "/ws/.git",
    "/ws/.GIT/hooks/pre-commit",
    "/ws/vendor/lib/.git/config",
    "/ws/.sluice/pipelines/a.ts",
    "/ws/.Sluice/x",
    "/ws/.\u017Fluice/x",
    "/ws/.g\u200Cit/config",
    "/ws/.git./config",
    "/ws/.git /config",
    "/ws/.git::$INDEX_ALLOCATION/config",
    "/ws/GIT~1/config",
    "/ws/GIT~12/config",
    "/ws/sluice~1/x",
    "/ws/sluice.config.ts",
    "/ws/Sluice.Config.JS",
    "/ws/packages/a/sluice.config.mjs",
  ])("%s is never written", (real) => {
    expect(judged(path(real, "write"))).toBe("limit");
  });

  test.each([
    "/ws/.gitignore",
    "/ws/.github/a.yml",
    "/ws/git/a",
    "/ws/sluice.ts",
    "/ws/sluice.configuration/a",
    "/ws/.sluicerc",
    "/ws/project.git/config",
    "/ws/widgit~1",
    "/ws/git~1a",
  ])("%s may be written", (real) => {
    expect(judged(path(real, "write"))).toBe("envelope");
  });

  test("protected folders may be read, the run store may not", () => {
    expect(judged(path("/ws/.git/config"))).toBe("envelope");
    expect(judged(path("/ws/.sluice/pipelines/a.ts"))).toBe("envelope");
    expect(judged(path("/ws/.sluice/store/runs.db"))).toBe("limit");
    expect(judged(path("/ws/.sluice/STORE"))).toBe("limit");
    expect(judged(path("/ws/.sluice/store", "read", "cd"))).toBe("limit");
  });

  test("a store elsewhere is neither read, written nor removed with a folder above it", () => {
    const more = { workspace: { root: "/ws", store: "/ws/var/store" } };
    expect(judged(path("/ws/var/store/a.db"), more)).toBe("limit");
    expect(judged(path("/ws/var", "write"), more)).toBe("limit");
    expect(judged(path("/ws/var"), more)).toBe("envelope");
  });

  test("paths the session protects are not written, nor the folders that hold them", () => {
    const more = { protectedPaths: ["/ws/flows/review.ts"] };
    expect(judged(path("/ws/flows/review.ts", "write"), more)).toBe("limit");
    expect(judged(path("/ws/flows", "write"), more)).toBe("limit");
    expect(judged(path("/ws/flows/other.ts", "write"), more)).toBe("envelope");
    expect(judged(path("/ws/flows/review.ts"), more)).toBe("envelope");
  });

  test("a workspace whose store is not on this disk can be written", () => {
    expect(judged(path("/ws/src/a.ts", "write"), { workspace: { root: "/ws" } })).toBe("envelope");
  });

  test("only a redirect may go to /dev/null", () => {
    expect(judged(path("/dev/null", "write", "redirect"))).toBe("envelope");
    expect(judged(path("/dev/null", "read", "operand"))).toBe("limit");
    expect(judged(path("/dev/tty", "write", "redirect"))).toBe("limit");
  });

  test("one path beyond a limit refuses the call, however many are inside", () => {
    const subjects = [path("/ws/a"), path("/ws/b", "write"), path("/etc/passwd")];
    expect(word(judge("Move", { allowedTools: ["*"], subjects }))).toBe("limit");
  });
});

test("a subject of a kind the gate does not know is beyond a limit", () => {
  const unknown: Subject = JSON.parse('{ "kind": "socket", "real": "/ws/a" }');
  expect(judged(unknown)).toBe("limit");
  const nowhere: Subject = JSON.parse('{ "kind": "socket", "from": "redirect", "real": "/dev/null" }');
  expect(judged(nowhere)).toBe("limit");
});

describe("no one approves himself", () => {
  test.each([
    "sluice answer r1 plan#1/a1/t1.c0 approve",
    "sluice cancel r1",
    "sluice --store x resume r1",
    "sluice prune --keep 0",
    "sluice wake",
    "sluice serve --no-metrics",
    "sluice message r1 'skip the review'",
    "sluice interrupt r1",
    "sluice fork r1 --from plan#1",
    "sluice export --all -o copy",
    "sluice run p.ts --trust",
    "sluice run mine --adopt-store x",
    "./node_modules/.bin/sluice answer r1 q approve",
    "/usr/bin/sluice cancel r1",
    "SLUICE answer r1 q approve",
    "sluice.cmd cancel r1",
    "npx sluice cancel r1",
    "npx -y sluice@latest answer r1 q approve",
    "npx @sluice/cli answer r1 q approve",
    "npx @sluice/tui answer r1 q approve",
    "npx --package=x @sluice/cli@1.2.3 cancel r1",
    "pnpm exec sluice resume r1",
    "node packages/cli/bin/sluice.js answer r1 q approve",
    "node --no-warnings /opt/sluice.mjs cancel r1",
    "env sluice cancel r1",
    "timeout 5 nice sluice cancel r1",
    "some-launcher --fast sluice cancel r1",
  ])("%s", (line) => {
    expect(judged(command(line))).toBe("limit");
  });

  test.each([
    [["npx", "-c", "sluice answer r1 q approve"]],
    [["node", "-e", "require('child_process').execSync('sluice  cancel r1')"]],
    [["env", "-S", "sluice resume r1"]],
    [["node", "-e", "run('sluice prune --keep 0')"]],
    [["node", "-e", "run('sluice', 'fork')"]],
    [["node", "-e", "run('sluice', 'wake')"]],
    [["npx", "-c", "sluice serve"]],
    [["env", "--split-string", "sluice resume r1"]],
    [["npx", "--call", "sluice --store x cancel r1"]],
    [["node", "-p", "run('sluice', 'resume')"]],
    [["node", "--eval", "run('sluice',\n'answer')"]],
    [["node", "--print", "run('sluice', 'run', 'p.ts', '--trust')"]],
    [["sh", "-c", "sluice run mine --adopt-store x"]],
    [["npx", "-c", "sluice export r1 --values"]],
    [["node", "-e", "run('sluice', 'export')"]],
  ])("a program in a word: %j", (argv) => {
    expect(judged(words(argv))).toBe("limit");
  });

  test.each([
    [["sh", "-c", "cd sluice && export A=1; ls"]],
    [["node", "-e", "import sluice from 'sluice';\nexport default sluice"]],
    // As much of it as a model can say is looked at once.
    [["node", "-e", "sluice ".repeat(100_000)]],
    [["node", "-e", "run('answer'); export default 1"]],
    [["node", "--evaluate", "sluice answer r1"]],
    [["node", "--no-c", "sluice answer r1"]],
    [["node", "x-e", "sluice answer r1"]],
  ])("a program like any other: %.60j", (argv) => {
    expect(judged(words(argv))).toBe("envelope");
  });

  test.each([
    ["for i in 1 2; do sluice answer r1 q approve; done", "limit"],
    ["(sluice cancel r1)", "limit"],
    ["while true; do sluice runs; sluice export r1; done", "limit"],
    ["for f in *; do echo answer; done; export A=1", "ask"],
    ["for f in *; do sluice show $f; done", "ask"],
    ["if cd sluice; then export A=1; fi", "ask"],
  ])("a line that cannot be read: %s is %s", (unread, expected) => {
    const subjects: readonly Subject[] = [
      { kind: "opaque", reason: "not read" },
      { kind: "line", unread },
    ];
    expect(word(judge("Bash", { allowedTools: ["Read"], subjects }))).toBe(expected);
  });

  const unreadLine = (unread: string): string => {
    const subjects = [{ kind: "opaque", reason: "not read" } as const, { kind: "line", unread } as const];
    return word(judge("Bash", { allowedTools: ["Read"], subjects }));
  };

  test.each([
    "for f in sluice/export/*.ts; do node $f; done",
    "for f in .sluice/pipelines/*; do node $f answer; done",
    "x=$(node sluice.config.ts) && npm run export",
    "for f in my-sluice sluice-lint; do npm run $f answer; done",
  ])("a folder, a config and a longer name in a line that cannot be read start nothing: %s", (unread) => {
    expect(unreadLine(unread)).toBe("ask");
  });

  test.each([
    "for s in sluice; do $s answer r1; done",
    "for f in *; do npx @sluice/cli resume r1; done",
    "for f in *; do node bin/sluice.js resume r1; done",
    "for f in *; do ./sluice/bin/sluice resume r1; done",
    `cat <<'EOF' | sh\nsluice resume r1\nEOF`,
  ])("what may start it is still found: %s", (unread) => {
    expect(unreadLine(unread)).toBe("limit");
  });

  test("a verb that is only known at run time counts as one", () => {
    expect(judged(words(["sluice", "$VERB", "r1"], { dynamic: [1] }))).toBe("limit");
    expect(judged(words(["xargs", "sluice", "$X"], { dynamic: [2], via: ["xargs"] }))).toBe("limit");
  });

  test("a word that may turn out to be sluice is no verb of its own", () => {
    const subjects = [words(["npx", "$BIN/sluice"], { dynamic: [1] })];
    expect(word(judge("Bash", { allowedTools: ["*"], subjects }))).toBe("envelope");
  });

  test("it is found behind other commands of the same line", () => {
    const subjects = [command("echo yes", { readOnly: true }), command("sluice answer r1 q approve")];
    expect(word(judge("Bash", { allowedTools: ["*"], subjects }))).toBe("limit");
  });

  test.each([
    "sluice runs",
    "sluice show r1",
    "sluice show last-resume",
    "sluice show fork-of-r1",
    "sluice audit r1 --verify",
    "npx sluice doctor",
    "npm run answer",
    "git commit -m cancel",
    "cancel sluice",
    "resume npx sluice",
    "sluice-lint answer",
    "npx sluices cancel",
    "npx @sluice/client answer",
    "npx mine@sluice/cli cancel",
    "npx xsluice cancel",
  ])("%s is a command like any other", (line) => {
    expect(judged(command(line))).toBe("envelope");
  });

  test("a command that only reads may have the words in it", () => {
    expect(judged(command("grep -rn sluice answer", { readOnly: true }))).toBe("envelope");
    expect(judged(words(["git", "commit", "-m", "sluice answer: say who answered"]))).toBe("envelope");
  });
});
