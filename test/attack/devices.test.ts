import { execFileSync } from "node:child_process";
import { closeSync, existsSync, ftruncateSync, mkdirSync, openSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  approving,
  attack,
  attacks,
  bash,
  edit,
  glob,
  grep,
  nothingRan,
  read,
  type Scene,
  scene,
  write,
} from "../support/attack.ts";

const FILES = { allowedTools: ["Read", "Write", "Edit", "Grep", "Glob"], interactors: [approving()] } as const;
const pipeAt =
  (name: string) =>
  (here: Scene): void => {
    mkdirSync(here.path(`${name}/..`), { recursive: true });
    rmSync(here.path(name), { recursive: true, force: true });
    execFileSync("mkfifo", [here.path(name)]);
  };
const huge =
  (name: string, bytes: number) =>
  (here: Scene): void => {
    const fd = openSync(here.path(name), "w");
    ftruncateSync(fd, bytes);
    closeSync(fd);
  };

describe("a named pipe in the workspace, with no one at its other end", () => {
  attacks(FILES, [
    {
      name: "read, searched, edited or written",
      never: "holds the run",
      place: pipeAt("pipe"),
      calls: [read("pipe"), grep({ pattern: "x", path: "pipe" }), edit("pipe", "x"), write("pipe")],
      outcomes: ["limit", "limit", "limit", "limit"],
      look: nothingRan,
    },
    {
      name: "in a folder that is searched and listed",
      never: "holds the run",
      place: pipeAt("src/pipe"),
      calls: [grep({ pattern: "b" }), glob("**"), grep({ pattern: "b", path: "src" })],
      outcomes: ["ok", "ok", "ok"],
    },
    {
      name: "as .gitignore",
      never: "holds a search or the look before a command",
      allowedTools: ["Glob", "Bash"],
      interactors: [],
      place: pipeAt(".gitignore"),
      calls: [glob("**"), bash("ls src")],
      outcomes: ["ok", "ok"],
    },
    {
      name: "as the repository's settings",
      never: "holds the judge, or passes for settings that name no program",
      allowedTools: ["Bash"],
      interactors: [],
      place: pipeAt(".git/config"),
      calls: [bash("git status")],
      outcomes: ["no_interactor"],
      look: nothingRan,
    },
    {
      name: "as .git",
      never: "holds the judge",
      allowedTools: ["Bash", "Glob"],
      interactors: [],
      place: pipeAt(".git"),
      calls: [bash("ls src"), glob("**")],
    },
    {
      name: "in the place of the folder a new file goes into",
      never: "holds the run",
      place: pipeAt("pipe"),
      calls: [write("pipe/new.txt"), read("pipe/x")],
      outcomes: ["not_a_folder", "not_found"],
    },
  ]);
});

describe("other things that are no files", () => {
  test("a socket: never is opened, read or replaced", async () => {
    const here = scene();
    const server = createServer().listen(here.path("socket"));
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    const after = await attack(here, {
      ...FILES,
      calls: [read("socket"), write("socket"), grep({ pattern: "x", path: "socket" }), glob("s*")],
    });
    expect(after.outcomes).toEqual(["limit", "limit", "limit", "ok"]);
  });

  test.runIf(process.getuid?.() === 0)(
    "a device of the workspace's own: never is read without end, nor written",
    async () => {
      const here = scene();
      try {
        execFileSync("mknod", [here.path("zero"), "c", "1", "5"], { stdio: "ignore" });
      } catch {
        // Containers may not make devices; then nobody can attack with one.
        return;
      }
      const after = await attack(here, {
        ...FILES,
        calls: [read("zero"), write("zero"), grep({ pattern: "x", path: "zero" }), grep({ pattern: "alpha" })],
      });
      expect(after.outcomes).toEqual(["limit", "limit", "limit", "ok"]);
    },
  );

  attacks(FILES, [
    {
      name: "a folder in the place of a file",
      never: "is read or replaced",
      calls: [read("src"), edit("src", "x"), write("src"), read(".")],
      outcomes: ["is_folder", "is_folder", "is_folder", "is_folder"],
      look: (_after, here) => expect(readdirSync(here.path("src"))).toEqual(["b.ts"]),
    },
    {
      name: "a file in the place of a folder",
      never: "is taken for one",
      calls: [glob("*", "a.txt"), write("a.txt/x"), read("a.txt/x")],
      outcomes: ["not_a_folder", "not_a_folder", "not_found"],
    },
    {
      name: "a file of ten gigabytes",
      never: "fills memory",
      place: huge("huge.txt", 10 * 1024 ** 3),
      calls: [read("huge.txt"), edit("huge.txt", "x"), write("huge.txt")],
      look: (after) => {
        expect(after.outcomes[0]).toBe("binary_file");
        expect(after.outcomes.slice(1)).toEqual(["file_too_large", "file_too_large"]);
      },
    },
    {
      name: "a file of ten gigabytes that is searched",
      never: "is searched to its end",
      place: huge("huge.txt", 10 * 1024 ** 3),
      calls: [grep({ pattern: "alpha" }), grep({ pattern: "x", path: "huge.txt" })],
      look: (after) => expect(JSON.stringify(after.outputs[0])).toContain("a.txt"),
    },
    {
      name: "binary data",
      never: "reaches the model as text",
      place: (here) => here.put("bin", Buffer.from([0, 1, 2, 255, 254, 0, 27, 91])),
      calls: [read("bin"), edit("bin", "x"), write("bin")],
      look: (after) => expect(after.outcomes[0]).toBe("binary_file"),
    },
  ]);
});

describe("a command's own devices, with no one there", () => {
  const none = { allowedTools: ["Bash"] } as const;
  attacks(none, [
    {
      name: "connections by name",
      never: "are opened",
      calls: ["cat < /dev/tcp/127.0.0.1/9", "echo x > /dev/udp/127.0.0.1/9", "exec 3<>/dev/tcp/127.0.0.1/9"].map(bash),
      look: (after) => {
        expect(after.outcomes).not.toContain("ok");
        nothingRan(after);
      },
    },
    {
      name: "the environment of the process above",
      never: "is shown",
      calls: [
        "cat /proc/self/environ",
        "cat /proc/$PPID/environ",
        "tr '\\0' '\\n' < /proc/self/environ",
        "cat /proc/*/environ",
        "strings /proc/$PPID/environ",
        "cat /proc/1/cmdline",
        "ls -l /proc/self/fd",
      ].map(bash),
      look: (after) => {
        expect(after.outcomes).not.toContain("ok");
        nothingRan(after);
      },
    },
    {
      name: "files behind descriptors",
      never: "are opened",
      calls: [
        "cat /dev/fd/3 3< ../outside.txt",
        "cat <&3",
        "cat /dev/stdin < ../outside.txt",
        "read x < ../outside.txt; echo $x",
      ].map(bash),
      look: (after) => expect(after.outcomes).not.toContain("ok"),
    },
    {
      name: "endless input and output",
      never: "holds the run, and is cut",
      calls: [
        ["Bash", { command: "cat /dev/zero | head -c 5000000 | tr '\\0' x", timeout: 20_000 }],
        ["Bash", { command: "seq 1 3000000", timeout: 20_000 }],
      ],
      look: (after) => {
        for (const output of after.outputs) expect(JSON.stringify(output).length).toBeLessThan(120_000);
      },
    },
    {
      name: "a command that waits",
      never: "outlives its time",
      calls: [
        ["Bash", { command: "sleep 50", timeout: 300 }],
        ["Bash", { command: "sleep 50 | cat", timeout: 300 }],
      ],
      outcomes: ["timeout", "timeout"],
    },
  ]);
  test("a pipe no one writes to: never holds a command beyond its time", async () => {
    const here = scene();
    pipeAt("pipe")(here);
    const after = await attack(here, { ...none, calls: [["Bash", { command: "cat pipe", timeout: 300 }]] });
    expect(after.outcomes).toEqual(["timeout"]);
    expect(existsSync(here.path("pipe"))).toBe(true);
  });
});
