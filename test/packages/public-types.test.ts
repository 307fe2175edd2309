import { join } from "node:path";
import { expect, test } from "vitest";
import { publicTypes } from "./public-types.ts";

const snapshots = join(import.meta.dirname, "../../docs/api");

test.each(["core", "stages", "sqlite", "view", "workflows", "gateway", "tui", "cli"])(
  "the public types of @sluice/%s are those in docs/api",
  async (name) => {
    // After a change that is meant: `npm run api`, and a line in CHANGELOG.md.
    await expect(publicTypes(name)).toMatchFileSnapshot(join(snapshots, `${name}.txt`));
  },
);

test("the surface is what can be reached from an entry: types that exported ones need, and nothing else", () => {
  const core = publicTypes("core");
  expect(core).toMatch(/^function pipeline</m);
  expect(core).toContain("interface StateSpec");
  expect(core).not.toContain("createTree");
});
