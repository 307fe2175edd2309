import { chmodSync, copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { field, type Json } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { type Ended, printed, textAt } from "../support/command.ts";
import { type DeskHere, deskHere } from "../support/command-here.ts";

const FAKE = join(import.meta.dirname, "../fixtures/hosts/fake-gemini.mjs");

/** The state of a user who has a stand-in for Gemini CLI on the PATH. */
function deskWithHost(): { readonly here: DeskHere; doctor(args: readonly string[], env?: object): Promise<Ended> } {
  const here = deskHere();
  const bin = join(dirname(here.folder), "bin");
  mkdirSync(bin);
  copyFileSync(FAKE, join(bin, "gemini"));
  chmodSync(join(bin, "gemini"), 0o755);
  const PATH = `${bin}:${dirname(process.execPath)}:${process.env.PATH}`;
  return {
    here,
    doctor: (args, env = {}) => here.sluice(["hook", "doctor", "gemini", ...args], { env: { PATH, ...env } }),
  };
}

function findings(ended: Ended): readonly (readonly [Json | undefined, Json | undefined, Json | undefined])[] {
  const all = field(printed(ended), "findings");
  if (!Array.isArray(all)) throw new Error(ended.stdout + ended.stderr);
  return all.map((one) => [field(one, "ok"), field(one, "canary"), field(one, "outcome")]);
}

describe("doctor starts the host and sees what runs", () => {
  test("a host that removes its own tools is hard", async () => {
    const ended = await deskWithHost().doctor(["--json"]);
    expect(findings(ended).filter(([ok]) => ok !== true)).toEqual([]);
    expect(ended).toMatchObject({ code: 0 });
    expect(textAt(printed(ended), "proven")).toBe("hard");
  });

  test("a host that obeys its hooks is guarded", async () => {
    const ended = await deskWithHost().doctor(["--class", "guarded", "--json"]);
    expect(findings(ended).filter(([ok]) => ok !== true)).toEqual([]);
    expect(findings(ended)).toContainEqual([
      true,
      "shell of the main agent, in a hostile repository",
      "refused by the gate",
    ]);
    expect(ended).toMatchObject({ code: 0 });
  });

  test("a host that runs what a hook refused is neither, with exit code 1", async () => {
    const ended = await deskWithHost().doctor(["--class", "guarded", "--json"], { FAKE_HOST: "ignores-hooks" });
    expect(findings(ended)).toContainEqual([false, "shell of the main agent, in a hostile repository", "ran"]);
    expect(textAt(printed(ended), "proven")).toBe("advisory");
    expect(ended).toMatchObject({ code: 1 });
  });

  test("a host that runs calls without a gateway is not guarded", async () => {
    const ended = await deskWithHost().doctor(["--class", "guarded"], { FAKE_HOST: "opens-without-gateway" });
    expect(ended).toMatchObject({ code: 1 });
    expect(ended.stdout).toMatch(/BAD +shell of the main agent, without a gateway +ran/);
    expect(ended.stdout).toContain("is not guarded on this machine: treat it as advisory");
  });

  test("nothing is left behind but the result", async () => {
    const { here, doctor } = deskWithHost();
    await doctor(["--json"]);
    expect(readdirSync(here.folder)).toEqual([]);
    expect(readdirSync(join(dirname(here.folder), "state", "sluice", "hosts"))).toEqual([]);
  });
});

test("a host that is not installed has exit code 4 and the command that installs it", async () => {
  const here = deskHere();
  const ended = await here.sluice(["hook", "doctor", "qwen"], { env: { PATH: "/usr/bin:/bin" } });
  expect(ended).toMatchObject({ code: 4 });
  expect(ended.stdout).toContain("npm install -g @qwen-code/qwen-code");
});

test("native tools in class hard are proven for Claude Code only", async () => {
  const ended = await deskWithHost().doctor(["--native"]);
  expect(ended).toMatchObject({ code: 2 });
});
