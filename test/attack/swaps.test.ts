import { execFileSync } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type Attack,
  approving,
  attack,
  attacks,
  bash,
  type Call,
  edit,
  glob,
  grep,
  INSIDE,
  OUTSIDE,
  read,
  type Scene,
  scene,
  started,
  write,
} from "../support/attack.ts";
import { handClock } from "../support/hand-clock.ts";
import { changed } from "../support/journal.ts";
import { tool } from "../support/run-kit.ts";

const FILES = { allowedTools: ["Read", "Write", "Edit", "Grep", "Glob", "Bash"] } as const;

/** Puts something in the place of a path, the old under another name. */
function swapped(here: Scene, name: string, put: (path: string) => void): void {
  if (existsSync(here.path(name))) renameSync(here.path(name), here.path(`${name}.old`));
  put(here.path(name));
}
const toLink = (here: Scene, name: string, target: string) => () =>
  swapped(here, name, (path) => symlinkSync(join(here.outer, target), path));

/** Swaps once, when a guard hook is asked about the call of this tool: it was judged, and has not run. */
function whenHooked(tool: string, swap: () => void): Attack {
  let done = false;
  return {
    onCall: (call) => {
      if (call.tool === tool && !done) {
        done = true;
        swap();
      }
      return undefined;
    },
  };
}

/** Swaps at the very moment the record that announces a writing call is committed: nothing but the call itself follows. */
function whenAnnounced(swap: () => void, nth = 1): Attack {
  const clock = handClock();
  const store = createMemoryJournals().connect();
  let seen = 0;
  const host: RunHost = createHost(
    changed(store, {
      append: (commit) => {
        if (commit.record.phase === "open" && commit.record.stepId.endsWith("/call") && ++seen === nth) swap();
        return store.append(commit);
      },
    }),
    { clock },
  );
  return { clock, host: host };
}

describe("a swap between judging and acting, while a guard hook is asked", () => {
  attacks(FILES, [
    {
      name: "the file becomes a link to one outside",
      never: "is read through",
      made: (here) => ({ ...whenHooked("Read", toLink(here, "a.txt", "outside.txt")), calls: [read("a.txt")] }),
      outcomes: ["path_changed"],
    },
    {
      name: "the folder above becomes a link to one outside",
      never: "is read through",
      place: (here) => here.put("../beside/b.ts", `${OUTSIDE}\n`),
      made: (here) => ({ ...whenHooked("Read", toLink(here, "src", "beside")), calls: [read("src/b.ts")] }),
      outcomes: ["path_changed"],
    },
    {
      name: "the file becomes a pipe",
      never: "holds the run",
      made: (here) => ({
        ...whenHooked("Read", () => swapped(here, "a.txt", (path) => symlinkSync("/dev/zero", path))),
        calls: [read("a.txt")],
      }),
      outcomes: ["path_changed"],
    },
    {
      name: "the file becomes a link to a secret of the workspace",
      never: "shows what Read may not",
      allowedTools: ["Read(src/**)"],
      made: (here) => ({
        ...whenHooked("Read", () => swapped(here, "src/b.ts", (path) => symlinkSync("../secret.txt", path))),
        calls: [read("src/b.ts")],
      }),
      outcomes: ["path_changed"],
      look: (after) => expect(after.sent).not.toContain(INSIDE),
    },
    {
      name: "the folder of a search becomes a link",
      never: "is searched through",
      made: (here) => ({
        ...whenHooked("Grep", toLink(here, "src", "beside")),
        calls: [grep({ pattern: "SECRET", path: "src", output_mode: "content" })],
      }),
      outcomes: ["path_changed"],
    },
    {
      name: "the folder of a listing becomes a link",
      never: "is listed through",
      made: (here) => ({ ...whenHooked("Glob", toLink(here, "src", "beside")), calls: [glob("*", "src")] }),
      outcomes: ["path_changed"],
    },
    {
      name: "the file to edit becomes a link to one outside",
      never: "is edited through",
      made: (here) => ({
        ...whenHooked("Edit", toLink(here, "a.txt", "outside.txt")),
        calls: [read("a.txt"), edit("a.txt", "alpha")],
      }),
      outcomes: ["ok", "path_changed"],
    },
    {
      name: "the file to write becomes a link to nothing, outside",
      never: "is made there",
      made: (here) => ({ ...whenHooked("Write", toLink(here, "new.txt", "made.txt")), calls: [write("new.txt")] }),
      outcomes: ["path_changed"],
    },
    {
      name: "the folder to write into becomes a link",
      never: "takes a file outside",
      made: (here) => ({ ...whenHooked("Write", toLink(here, "docs", "beside")), calls: [write("docs/new.md")] }),
      outcomes: ["path_changed"],
    },
    {
      name: "the folder to be made becomes a link",
      never: "is made outside",
      made: (here) => ({ ...whenHooked("Write", toLink(here, "fresh", "beside")), calls: [write("fresh/a/b/new.md")] }),
      outcomes: ["path_changed"],
    },
    {
      name: "the file becomes a link to git's settings",
      never: "is written through",
      made: (here) => ({
        ...whenHooked("Write", () => swapped(here, "new.txt", (path) => symlinkSync(".git/config", path))),
        calls: [write("new.txt", "[core]")],
      }),
      outcomes: ["path_changed"],
    },
    {
      name: "the file becomes a hard link to one outside",
      never: "is edited there",
      made: (here) => ({
        ...whenHooked("Edit", () =>
          swapped(here, "a.txt", (path) => {
            linkSync(join(here.outer, "outside.txt"), path);
          }),
        ),
        calls: [read("a.txt"), edit("a.txt", "alpha")],
      }),
      outcomes: ["ok", "stale_file"],
    },
    {
      name: "a link in a command is turned",
      never: "is read through",
      place: (here) => symlinkSync("a.txt", here.path("link")),
      made: (here) => ({
        ...whenHooked("Bash", () => {
          rmSync(here.path("link"));
          symlinkSync("../outside.txt", here.path("link"));
        }),
        calls: [bash("cat link")],
      }),
      outcomes: ["path_changed"],
    },
    {
      name: "a link appears where a glob matches",
      never: "is read through",
      made: (here) => ({
        ...whenHooked("Bash", () => symlinkSync("../../outside.txt", here.path("src/new"))),
        calls: [bash("cat src/*")],
      }),
      outcomes: ["path_changed"],
    },
    {
      name: "the folder a command enters becomes a link",
      never: "is entered outside",
      allowedTools: ["Bash"],
      made: (here) => ({
        ...whenHooked("Bash", toLink(here, "docs", "beside")),
        calls: [bash("cd docs && cat deep.txt")],
      }),
      outcomes: ["path_changed"],
    },
    {
      name: "the repository's settings come to name a program",
      never: "run it",
      allowedTools: ["Bash"],
      made: (here) => ({
        mayWrite: [".git/config"],
        ...whenHooked("Bash", () => here.put(".git/config", "[diff]\n\texternal = touch PWN\n")),
        calls: [bash("git status")],
      }),
      place: (here) => execFileSync("git", ["init", "-q"], { cwd: here.root }),
      outcomes: ["path_changed"],
    },
    {
      name: "the workspace itself becomes a link to a folder outside",
      never: "takes writes, commands or reads there",
      allowedTools: [...FILES.allowedTools, "Back"],
      made: (here) => ({
        ...whenHooked("Write", () => {
          renameSync(here.root, `${here.root}.old`);
          symlinkSync(join(here.outer, "beside"), here.root);
        }),
        tools: [
          tool("Back", {
            execute: async () => {
              rmSync(here.root);
              renameSync(`${here.root}.old`, here.root);
              return { ok: true, output: "" };
            },
          }),
        ],
        calls: [write("docs/new.md"), read("deep.txt"), glob("*"), bash("cat deep.txt"), ["Back", {}]],
      }),
      outcomes: ["path_changed", "limit", "limit", "limit", "ok"],
    },
  ]);
});

describe("a swap at the moment a writing call is announced", () => {
  attacks(FILES, [
    {
      name: "the new file's folder becomes a link",
      never: "takes the file outside",
      made: (here) => ({ ...whenAnnounced(toLink(here, "docs", "beside")), calls: [write("docs/new.md")] }),
      outcomes: ["path_changed"],
    },
    {
      name: "the file becomes a link",
      never: "is written through",
      made: (here) => ({
        ...whenAnnounced(toLink(here, "a.txt", "outside.txt")),
        calls: [read("a.txt"), edit("a.txt", "alpha")],
      }),
      outcomes: ["ok", "path_changed"],
    },
    {
      name: "the file gets other content",
      never: "is overwritten",
      made: (here) => ({
        ...whenAnnounced(() => writeFileSync(here.path("a.txt"), "someone's work\n")),
        calls: [read("a.txt"), write("a.txt")],
      }),
      outcomes: ["ok", "stale_file"],
      look: (_after, here) => expect(here.text("a.txt")).toBe("someone's work\n"),
    },
    {
      name: "a file appears where a new one goes",
      never: "is overwritten",
      made: (here) => ({
        ...whenAnnounced(() => writeFileSync(here.path("new.txt"), "someone's work\n")),
        calls: [write("new.txt")],
      }),
      outcomes: ["stale_file"],
      look: (_after, here) => expect(here.text("new.txt")).toBe("someone's work\n"),
    },
    {
      name: "a link in a command is turned",
      never: "is followed",
      place: (here) => symlinkSync("a.txt", here.path("link")),
      made: (here) => ({
        ...whenAnnounced(() => {
          rmSync(here.path("link"));
          symlinkSync("../outside.txt", here.path("link"));
        }),
        calls: [bash("cat link")],
      }),
      outcomes: ["path_changed"],
    },
    {
      name: "a link lies where the temporary file would",
      never: "is written through",
      made: (here) => ({
        ...whenAnnounced(() => {
          for (const name of ["new.txt.tmp", ".new.txt.tmp", ".sluice.tmp"])
            symlinkSync(join(here.outer, "outside.txt"), here.path(name));
        }),
        calls: [write("new.txt", "x")],
      }),
      outcomes: ["ok"],
    },
  ]);
});

describe("a swap while a person is asked, who then approves", () => {
  const asked =
    (swap: (here: Scene) => void, calls: readonly Call[]) =>
    (here: Scene): Attack => ({ allowedTools: ["Read"], interactors: [approving(() => swap(here))], calls });
  attacks({}, [
    {
      name: "the file becomes a link to one outside",
      never: "is written through",
      made: asked((here) => toLink(here, "new.txt", "outside.txt")(), [write("new.txt")]),
      outcomes: ["path_changed"],
    },
    {
      name: "the folder becomes a link to one outside",
      never: "takes the file",
      made: asked((here) => toLink(here, "docs", "beside")(), [write("docs/new.md")]),
      outcomes: ["path_changed"],
    },
    {
      name: "the file becomes a link to a protected one",
      never: "is written through",
      made: asked(
        (here) => swapped(here, "new.txt", (path) => symlinkSync("sluice.config.ts", path)),
        [write("new.txt")],
      ),
      outcomes: ["path_changed"],
    },
    {
      name: "the script the person read about changes its target",
      never: "is followed",
      place: (here) => symlinkSync("a.txt", here.path("link")),
      made: asked(
        (here) => {
          rmSync(here.path("link"));
          symlinkSync("../outside.txt", here.path("link"));
        },
        [bash("cat link")],
      ),
      outcomes: ["path_changed"],
    },
  ]);
});

test("a folder that becomes a link while everything is listed: never is listed through", async () => {
  for (let turns = 1; turns <= 12; turns += 1) {
    const here = scene();
    for (let at = 0; at < 40; at += 1) here.put(`a${at}/file`, "");
    mkdirSync(here.path("z"));
    const later = (left: number): void =>
      void (left === 0 ? toLink(here, "z", "beside")() : setImmediate(() => later(left - 1)));
    const after = await attack(here, { ...FILES, ...whenHooked("Glob", () => later(turns)), calls: [glob("**")] });
    expect(JSON.stringify(after.outputs)).not.toContain("deep.txt");
  }
});

test("a folder that is a link every other moment: never takes a write outside, nor shows a file there", async () => {
  const here = scene();
  here.put("flip/file.txt", "inside\n");
  here.put("../beside/file.txt", `${OUTSIDE}\n`);
  renameSync(here.path("flip"), here.path("real"));
  const flipper = new Worker(
    `const { renameSync, symlinkSync, rmSync } = require("node:fs"); const { workerData: [flip, real, target] } = require("node:worker_threads");
     for (;;) { try { renameSync(real, flip); } catch {} try { renameSync(flip, real); } catch {} try { symlinkSync(target, flip); } catch {} try { rmSync(flip); } catch {} }`,
    { eval: true, workerData: [here.path("flip"), here.path("real"), join(here.outer, "beside")] },
  );
  onTestFinished(async () => void (await flipper.terminate()));
  const turn = Array.from({ length: 12 }, (_, at): readonly Call[] => [
    read(`flip/file.txt`),
    write(`flip/new${at}.txt`),
    glob(`*${at}`, "flip"),
    grep({ pattern: `S${at}`, path: "flip" }),
  ]);
  const after = await attack(here, { ...FILES, turns: turn });
  expect(started(after).length).toBeGreaterThan(0);
  expect(readdirSync(join(here.outer, "beside")).sort()).toEqual(["deep.txt", "file.txt"]);
});
