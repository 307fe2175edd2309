import { checkPipeline } from "@sluice/core";
import { script } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { node, only, play, PRINT_ARGUMENTS } from "../support/commands.ts";

// States that run a command.

describe("a script", () => {
  test("completes with its exit code, both streams and what it printed as JSON", async () => {
    const program = `console.log(JSON.stringify({ version: "1.2.3" })); console.error("built")`;
    const { output } = await play(script({ command: node(program) }));
    expect(output).toEqual({
      exitCode: 0,
      stdout: '{"version":"1.2.3"}',
      stderr: "built",
      parsed: { version: "1.2.3" },
    });
  });
});
