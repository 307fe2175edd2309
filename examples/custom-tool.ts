// A stage with a custom tool that is limited to one folder. The call for the other folder is denied, since no interactor can
// grant it.
//   node examples/custom-tool.ts
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { done, pipeline, stage } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";
import { setVersion } from "./set-version.ts";

const workspace = mkdtempSync(join(tmpdir(), "sluice-"));
for (const folder of ["app", "lib"]) {
  mkdirSync(join(workspace, folder));
  writeFileSync(join(workspace, folder, "package.json"), '{ "name": "sample", "version": "1.0.0" }\n');
}

const release = stage({
  prompt: "Set the versions that the task asks for.",
  allowedTools: ["Read", "SetVersion(app/**)"],
  completionTool: "submit_release",
  completionSchema: z.object({ released: z.array(z.string()) }),
  turnCap: 5,
});
const releases = pipeline({
  id: "releases",
  input: z.object({ task: z.string() }),
  stages: { release },
  initial: "release",
  next: { release: ({ output }) => done(output.released) },
});

const set = (file: string) => ({ calls: [{ tool: "SetVersion", input: { file, version: "1.1.0" } }] });
const script = scriptedModel({
  stages: {
    release: [
      set("lib/package.json"),
      set("app/package.json"),
      { calls: [{ tool: "submit_release", input: { released: ["app"] } }] },
    ],
  },
});
const session = createSession({
  model: process.env.SLUICE_MODEL ?? script,
  cwd: workspace,
  tools: [setVersion],
});
const result = await session.run(releases, { task: "Release 1.1.0 of app and lib" });
console.log(result.status, "denied:", result.denied.map(({ tool, cause }) => `${tool} (${cause})`).join());
for (const folder of ["app", "lib"]) {
  console.log(`${folder}:`, JSON.parse(readFileSync(join(workspace, folder, "package.json"), "utf8")).version);
}
await session.close();
