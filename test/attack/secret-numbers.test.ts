import { expect, test } from "vitest";
import { attack, raw, scene } from "../support/attack.ts";
import { tool } from "../support/run-kit.ts";

// A secret of digits alone is a text where a setting holds it, and may be a number where a model or a tool says it.

const PIN = "73951846";

test.each([
  ["as a number", PIN],
  ["as a number with a fraction", `${PIN}.5`],
  ["as a negative number", `-${PIN}`],
  ["inside of a longer number", `1${PIN}2`],
  ["as a text", `"${PIN}"`],
  ["with an exponent", "7.3951846e7"],
])("a named secret of digits, said %s: never comes into a record, nor back to a model", async (_how, said) => {
  const here = scene();
  const after = await attack(here, {
    allowedTools: ["Pay"],
    env: { PATH: process.env.PATH, CARD_PIN: PIN },
    secrets: ["CARD_PIN"],
    tools: [
      tool("Pay", {
        execute: (input) =>
          Promise.resolve({ ok: true, output: { paid: input, pin: Number(PIN) }, facts: { pin: Number(PIN) } }),
      }),
    ],
    calls: [["Pay", raw(`{"pin":${said},"list":[${said}]}`)]],
  });
  for (const text of [after.recorded, after.shown, after.sent]) expect(text).not.toContain(PIN);
  expect(after.outcomes).toEqual(["ok"]);
});
