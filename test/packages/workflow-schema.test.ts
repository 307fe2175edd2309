import { field, isJsonObject, type Json } from "@sluice/core";
import { RULES, statewrightJsonSchema } from "@sluice/workflows";
import { expect, test } from "vitest";
import { fieldReference } from "./field-reference.ts";

const schema = statewrightJsonSchema();

test("schema.json is the schema of the sources", async () => {
  await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot("../../packages/workflows/schema.json");
});

test("docs/workflow-fields.md has the fields of the schema and the rules", async () => {
  await expect(fieldReference(schema, RULES)).toMatchFileSnapshot("../../docs/workflow-fields.md");
});

test("every field of the schema has a description", () => {
  const missing: string[] = [];
  const look = (value: Json, path: string): void => {
    if (Array.isArray(value)) for (const entry of value) look(entry, path);
    if (!isJsonObject(value)) return;
    const { properties } = value;
    if (isJsonObject(properties)) {
      for (const [name, described] of Object.entries(properties))
        if (typeof field(described, "description") !== "string") missing.push(`${path}.${name}`);
    }
    for (const [key, member] of Object.entries(value)) look(member, `${path}.${key}`);
  };
  look(schema, "");
  expect(missing).toEqual([]);
});
