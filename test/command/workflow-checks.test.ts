import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { deskHere } from "../support/command-here.ts";

const NOTE = `id: note
initial: writing
states:
  writing:
    allowed_tools: [Read]
    on: { WRITTEN: done }
  done: { type: final }
`;

test("sluice check says what to do where a folder has no workflows", async () => {
  const { code, stdout } = await deskHere().sluice(["check"]);
  expect([code, stdout]).toEqual([0, expect.stringContaining("sluice init --workflow")]);
});

test("a name of nothing is answered with the workflow of that name in this folder", async () => {
  const here = deskHere();
  here.write("note.yaml", NOTE);
  here.write("stages/pipeline.yaml", "id: stages\n");
  for (const [name, path] of [
    ["note", "./note.yaml"],
    ["stages", "./stages"],
  ] as const)
    expect((await here.sluice(["check", name])).stderr).toContain(
      `there is no pipeline ${name}. Did you mean ${path}?`,
    );
});

test("a path of nothing is answered with the workflow of that name in the project", async () => {
  const here = deskHere();
  here.write(".sluice/workflows/note.yaml", NOTE);
  for (const command of ["check", "graph", "run"]) {
    const { code, stderr } = await here.sluice([command, "note.yaml"]);
    expect([command, code]).toEqual([command, 2]);
    expect(stderr).toContain("did you mean note, which is in .sluice/workflows/?");
  }
});

test("a graph is written in the format that the name of its file stands for, and in no other", async () => {
  const here = deskHere();
  here.write("note.yaml", NOTE);
  for (const [file, begins] of [
    ["note.svg", "<svg"],
    ["note.mmd", "flowchart"],
    ["note.txt", "+--"],
  ] as const) {
    expect((await here.sluice(["graph", "note.yaml", "-o", file])).code).toBe(0);
    expect(readFileSync(join(here.folder, file), "utf8").startsWith(begins)).toBe(true);
  }
  const image = await here.sluice(["graph", "note.yaml", "-o", "note.png"]);
  expect([image.code, existsSync(join(here.folder, "note.png"))]).toEqual([2, false]);
  expect(image.stderr).toContain("ends in .svg, .mmd or .txt");
});

test("what others are to read, as a graph or a first workflow, is written as the umask says", async () => {
  const here = deskHere();
  await here.sluice(["init", "--workflow"]);
  await here.sluice(["graph", "first", "-o", "first.svg"]);
  const open = 0o666 & ~process.umask();
  for (const file of [".sluice/workflows/first.yaml", "first.svg"])
    expect([file, statSync(join(here.folder, file)).mode & 0o777]).toEqual([file, open]);
});
