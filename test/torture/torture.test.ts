import { join } from "node:path";
import { expect, test } from "vitest";
import { BUGS } from "./bugs.ts";
import { openCampaign } from "./campaign.ts";
import { shortForm } from "./short-form.ts";

const COMPILED = join(import.meta.dirname, "../../node_modules/.cache/compiled");

test("runs killed in the midst of their work, in their waits and around their commits end as if no one had killed them", async () => {
  await using campaign = await openCampaign(COMPILED);
  await campaign.zombie();
  const cases = shortForm(campaign.references);
  const sum = await campaign.run(cases);
  expect(sum.failures).toEqual([]);
  // Each deliberate bug shows at one of these.
  const names = new Set(cases.map(({ name }) => name));
  const elsewhere = BUGS.filter(({ shows }) => shows !== "zombie" && !names.has(`killed at "${shows.at}"`));
  expect(elsewhere.map(({ name }) => name)).toEqual([]);
  expect(sum.cases).toBe(cases.length);
  expect(sum.kills).toBeGreaterThanOrEqual(cases.length);
  // Some were killed in calls of which nobody can tell what became of them.
  expect(sum.unknown).toBeGreaterThan(3);
});
