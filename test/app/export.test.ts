import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { readExport, verifyExport } from "@sluice/core/host";
import { expect, test } from "vitest";
import { appOverRun } from "../support/app-over-run.ts";

// `/export` of the app and `sluice export` are one thing.

test("/export writes the file that sluice export writes, for its owner alone, and it verifies by itself", async () => {
  const { place, runId, app, saidSo, read } = await appOverRun();
  await place.sluice(["export", runId, "-o", "by-command.jsonl"]);
  app.submit(`/export ${runId}`);
  await saidSo("without their values");
  const name = `${runId}.jsonl`;
  expect(read(name)).toBe(read("by-command.jsonl"));
  expect(statSync(join(place.folder, name)).mode & 0o777).toBe(0o600);
  expect(verifyExport(readExport(readFileSync(join(place.folder, name)))).faults).toEqual([]);

  app.submit(`/export ${runId.slice(0, 9)} named by me.jsonl`);
  await saidSo("named by me.jsonl, without");
  expect(read("named by me.jsonl")).toBe(read(name));
});

test("a file that is there stays, unless it is said that it is to be replaced", async () => {
  const { place, runId, app, until, saidSo, read, press } = await appOverRun();
  place.write("mine.jsonl", "mine\n");
  const asked = async (): Promise<void> => {
    app.submit(`/export ${runId} mine.jsonl`);
    await until(() => app.state().question !== undefined);
  };
  await asked();
  press("enter");
  expect([app.state().question, read("mine.jsonl")]).toEqual([undefined, "mine\n"]);
  await asked();
  press("down");
  press("enter");
  await saidSo("without their values");
  expect(verifyExport(readExport(readFileSync(join(place.folder, "mine.jsonl")))).faults).toEqual([]);
  expect(readdirSync(place.folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("where no file can be written that is said, and nothing is left", async () => {
  const { place, runId, app, saidSo } = await appOverRun();
  const before = readdirSync(place.folder);
  app.submit(`/export ${runId} nowhere/run.jsonl`);
  await saidSo("cannot be written");
  expect(readdirSync(place.folder)).toEqual(before);
});
