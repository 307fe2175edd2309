import { test } from "vitest";

// The facts about another state machine and its defects, by their numbers.

type Body = () => Promise<void> | void;

/** A fact that holds here too. */
export function fact(number: number, says: string, body: Body): void {
  test(`${number}: ${says}`, body);
}
/** A fact that Sluice decides otherwise: what it does instead. */
export function ours(number: number, says: string, body: Body): void {
  test(`${number}, decided otherwise: ${says}`, body);
}
/** A defect that Sluice does not have: what it does instead. */
export function defect(name: `D${number}`, says: string, body: Body): void {
  test(`${name}: ${says}`, body);
}
