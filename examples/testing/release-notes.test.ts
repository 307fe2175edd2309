// Tests of a pipeline, without network or key:
//   npx vitest run --root examples/testing
// records the answers again, which a changed prompt requires:
//   SLUICE_RECORD=1 npx vitest run --root examples/testing
import { scriptedModel } from "@sluice/stages";
import { runRecorded, runScripted } from "@sluice/stages/testing";
import { expect, test } from "vitest";
import { releaseNotes } from "./release-notes.ts";

const files = { "CHANGES.md": "- faster start\n- internal: renamed a helper\n" };
const task = { task: "Write the notes of 1.4" };
const call = (tool: string, input: Record<string, string>) => ({ calls: [{ tool, input }] });

test("notes are written from the changes, as the model did when it was recorded", async () => {
  const { result, changes } = await runRecorded(releaseNotes, task, {
    cassette: new URL("cassettes/release-notes.jsonl", import.meta.url),
    files,
    // What is recorded. Yours is an id such as "anthropic/<model>"; this one is a script, so that anybody can record.
    model: scriptedModel({
      stages: {
        write: [
          { reasoning: "What changed?", ...call("Read", { file_path: "CHANGES.md" }) },
          {
            text: "Users see one thing.",
            ...call("Write", { file_path: "notes/release.md", content: "Starts faster.\n" }),
          },
          call("submit_notes", { title: "1.4: starts faster" }),
        ],
      },
    }),
  });
  expect(result).toMatchObject({ status: "completed", output: "1.4: starts faster" });
  expect(changes).toEqual([{ path: "notes/release.md", kind: "created", after: "Starts faster.\n" }]);
});

test("whatever the model tries, nothing outside of notes/ is written", async () => {
  const { denied, changes } = await runScripted(releaseNotes, task, {
    files,
    script: {
      write: [
        call("Write", { file_path: "CHANGES.md", content: "" }),
        call("Write", { file_path: "notes/../package.json", content: "{}" }),
        call("submit_notes", { title: "done" }),
      ],
    },
  });
  expect(denied.map(({ tool, cause }) => `${tool}: ${cause}`)).toEqual(["Write: no_interactor", "Write: limit"]);
  expect(changes).toEqual([]);
});
