import assert from "node:assert/strict";
import { messageOf } from "@sluice/core/runtime";

/** Throws with what differs, under a line that says of what. */
export function same(actual: unknown, expected: unknown, otherwise: string): void {
  try {
    assert.deepEqual(actual, expected);
  } catch (thrown) {
    throw new Error(`${otherwise}\n${messageOf(thrown)}`, { cause: thrown });
  }
}
