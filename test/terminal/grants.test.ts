import { expect, test } from "vitest";
import {
  appPlace,
  CHANGED,
  choose,
  dataOf,
  edit,
  leave,
  PLANNED,
  pause,
  READ,
  REVIEWED,
  submit,
  turnToCard,
} from "../support/terminal-run.ts";

test("a run through deny, approve, which counts for one call only, and decide later", async () => {
  const place = appPlace();
  place.write("a.txt", "one\n");
  place.script({
    plan: [READ, edit("one", "two"), edit("one", "three"), edit("three", "four"), PLANNED],
    execute: [CHANGED],
    review: [REVIEWED],
  });
  const app = await place.open();
  await submit(app, "/run codeReview fix a.txt");

  await app.waitFor("1 + two");
  expect(app.screen().some((row) => row.startsWith("▌ ❯ Deny"))).toBe(true);
  await choose(app, "Deny", "down");
  await app.waitFor("1 + three");
  expect(place.read("a.txt")).toBe("one\n");

  await choose(app, "Approve this call once", "up");
  await app.waitFor("1 + four");
  expect(place.read("a.txt")).toBe("three\n");

  await choose(app, "Decide later", "down");
  await app.waitFor("1 deferred request waits");
  await pause(450);
  app.key("tab");
  await choose(app, "Deny with a reason", "down");
  await app.waitFor("Enter sends");
  app.type("not needed");
  await app.waitFor("> not needed");
  await pause(100);
  app.key("enter");
  await app.waitFor("run completed");
  await leave(app);

  expect(place.read("a.txt")).toBe("three\n");
  const answers = dataOf(await place.events(), "grant.answered");
  expect(answers.map(({ answer, reason }) => [answer, reason])).toEqual([
    ["deny", undefined],
    ["approve", undefined],
    ["deny", "not needed"],
  ]);
  const lines = app.lines();
  for (const text of ["First I read it.", "Now one becomes two.", "Now three becomes four.", "run completed"]) {
    expect(lines.filter((line) => line.includes(text))).toHaveLength(1);
  }
});

test("Esc denies only the card that has the keys, and the run continues", async () => {
  const place = appPlace();
  place.write("a.txt", "one\n");
  place.script({ plan: [READ, edit("one", "two"), PLANNED], execute: [CHANGED], review: [REVIEWED] });
  const app = await place.open();
  await submit(app, "/run codeReview fix a.txt");
  await turnToCard(app);
  await pause(300);
  app.key("escape");
  await app.waitFor("run completed");
  await leave(app);
  expect(place.read("a.txt")).toBe("one\n");
  expect(dataOf(await place.events(), "grant.answered")).toMatchObject([{ answer: "deny" }]);
});

test("another process answers the card that is open, which goes away", async () => {
  const place = appPlace();
  place.write("a.txt", "one\n");
  place.script({
    plan: [READ, edit("one", "two"), edit("two", "three"), PLANNED],
    execute: [CHANGED],
    review: [REVIEWED],
  });
  const app = await place.open();
  await submit(app, "/run codeReview fix a.txt");
  await turnToCard(app);
  const run = await place.runId();
  expect((await place.elsewhere("answer", run, "t2.c0", "approve")).code).toBe(0);
  await app.waitFor("1 + three");
  // The card that came up in its place takes no key that was meant for the other.
  expect(app.screen().some((row) => row.startsWith("▌ □"))).toBe(true);
  await choose(app, "Deny", "down");
  await app.waitFor("run completed");
  await leave(app);
  expect(place.read("a.txt")).toBe("two\n");
});
