import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bytesOf, leaks, plants } from "../support/planted.ts";
import {
  appPlace,
  CHANGED,
  choose,
  edit,
  leave,
  PLANNED,
  pause,
  READ,
  REVIEWED,
  submit,
} from "../support/terminal-run.ts";

const TYPED = ["task", "mistake", "message", "deny-reason"];
const SHOWN = ["model-text", "file", "completion"];

test("no secret is on the terminal, in the history or in the store, but what is being typed, and a request's card", async () => {
  const planted = plants([...TYPED, ...SHOWN], {});
  const place = appPlace();
  place.write("a.txt", `one\n${planted.at("file")}\n`);
  const plan = {
    calls:
      PLANNED.calls?.map(({ tool, input }) => ({
        tool,
        input: { ...Object(input), summary: planted.at("completion") },
      })) ?? [],
  };
  place.script({
    plan: [{ ...READ, text: `I see ${planted.at("model-text")}.` }, edit("one", "two"), plan],
    execute: [CHANGED],
    review: [REVIEWED],
  });
  const app = await place.open([], { env: planted.env, rows: 40, columns: 120 });
  await submit(app, `/run ${planted.one("mistake").known} ${planted.one("mistake").looks}`);
  await app.waitForLine("pipeline_not_found");
  await submit(app, `/run codeReview do ${planted.at("task")}`);
  await app.waitFor(/▌ [□■]/);
  await submit(app, `mind ${planted.at("message")}`);
  await app.waitForLine("sent; the stage reads it before its next turn");
  await choose(app, "Deny with a reason", "down");
  await app.waitFor("Enter sends");
  app.type(`not ${planted.at("deny-reason")}`);
  await app.waitFor(planted.one("deny-reason").looks);
  await pause(300);
  app.key("enter");
  await app.waitFor("run completed");
  await submit(app, "/audit");
  await app.waitFor("Esc closes");
  app.key("escape");
  await app.waitFor((screen) => !screen.includes("Esc closes"), "the audit closed");
  app.key("ctrl+o");
  await app.waitFor("Esc closes");
  app.key("escape");
  await app.waitFor((screen) => !screen.includes("Esc closes"), "the transcript closed");
  await leave(app);

  const typed = planted.all.filter((one) => TYPED.includes(one.place));
  const shown = planted.all.filter((one) => SHOWN.includes(one.place));
  const none = { known: new Map(), looks: new Map() };
  const history = readFileSync(join(place.home, ".local/state/sluice/history.jsonl"), "utf8");
  expect(history).toContain("/audit");
  const left = [
    { name: "what is left on the terminal", text: app.lines().join("\n") },
    { name: "the history", text: history },
    { name: "the store", text: bytesOf(join(place.workspace, ".sluice/store")), keepsLooks: true as const },
  ];
  const found = [
    ...leaks([...typed, ...shown], left, none),
    ...leaks(shown, [{ name: "all that was written to the terminal", text: app.bytes.text() }], none),
  ];
  expect(found, found.join("\n")).toEqual([]);
  expect(app.lines().join("\n")).toContain("[redacted:MODEL_TEXT_TOKEN]");
});
