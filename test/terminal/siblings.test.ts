import { join } from "node:path";
import { expect, test } from "vitest";
import { appPlace, choose, dataOf, leave, pause, submit, turnToCard } from "../support/terminal-run.ts";

const FAN = join(import.meta.dirname, "fixtures", "fan.ts");
const writes = (file: string) => ({ calls: [{ tool: "Write", input: { file_path: file, content: `${file}\n` } }] });
const ends = (stage: string) => ({ calls: [{ tool: `submit_${stage}`, input: { said: `${stage} is done` } }] });

test("two siblings wait at once, each on a card of its own, and each gets its own answer", async () => {
  const place = appPlace();
  place.script({
    begin: [ends("begin")],
    lint: [writes("lint.txt"), ends("lint")],
    check: [writes("check.txt"), ends("check")],
    end: [ends("end")],
  });
  const app = await place.open();
  await submit(app, `/run ${FAN} both`);
  await app.waitFor("1 of 2 waiting");
  await turnToCard(app);
  const first = app.screen().some((row) => row.includes("sibling lint")) ? "lint" : "check";
  const second = first === "lint" ? "check" : "lint";

  // Looked at both before any was answered.
  app.key("ctrl+n");
  await app.waitFor(`sibling ${second}`);
  expect(app.screen().some((row) => row.includes("2 of 2 waiting"))).toBe(true);
  await pause(450);
  app.key("ctrl+p");
  await app.waitFor(`sibling ${first}`);

  await choose(app, "Approve this call once", "up");
  await app.waitFor(`sibling ${second}`);
  await choose(app, "Deny", "down");
  await app.waitFor("run completed");
  await leave(app);

  expect(place.read(`${first}.txt`)).toBe(`${first}.txt\n`);
  expect(() => place.read(`${second}.txt`)).toThrow("ENOENT");
  const lines = app.lines();
  expect(lines.filter((line) => line.includes("run completed"))).toHaveLength(1);
  expect(dataOf(await place.events(), "run.finished").length).toBeGreaterThan(0);
});
