import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BROKEN_INPUTS, type BrokenInput, layOut } from "../support/broken-inputs.ts";
import { desk } from "../support/command.ts";

/** What each broken input says, for readers: an input is added here by a run with `--update`. */
const GALLERY = join(import.meta.dirname, "../fixtures/broken-inputs.txt");

let server: Server;
let address = "";
let closed = "";

beforeAll(async () => {
  server = createServer((request, response) => {
    const [kind] = (request.url ?? "").split("/").slice(1);
    const page = (status: number, title: string): void => {
      response.writeHead(status, { "content-type": "text/html; charset=utf-8" });
      response.end(`<!doctype html><html><head><title>${title}</title></head><body>…</body></html>`);
    };
    if (kind === "login") return page(200, "Sign in &amp; continue\u001b[31m");
    if (kind === "blocked") return page(403, "Blocked by policy");
    const messages: Record<string, string> = {
      401: "invalid x-api-key",
      402: "Your credit balance is too low",
      404: "model not found",
    };
    response.writeHead(Number(kind), { "content-type": "application/json" });
    response.end(JSON.stringify({ type: "error", error: { type: "error", message: messages[kind ?? ""] } }));
  });
  address = await listening(server);
  const other = createServer();
  closed = await listening(other);
  await new Promise((resolve) => other.close(resolve));
});
afterAll(() => server.close());

async function listening(one: Server): Promise<string> {
  await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));
  const bound = one.address();
  return typeof bound === "object" && bound !== null ? `http://127.0.0.1:${bound.port}` : "";
}

const said = new Map<string, string>();

/** The input in a folder of its own, and what the command says, without what differs from run to run. */
async function tried(input: BrokenInput): Promise<{ readonly code: number | null; readonly text: string }> {
  const here = desk();
  layOut(input, here.folder);
  const runs: string[] = [];
  const note = (output: string): string => {
    for (const [, id] of output.matchAll(/\b(?:completed|failed|suspended) (r[0-9a-z]{10})\b/g)) runs.push(id ?? "");
    return output;
  };
  for (const args of input.before ?? []) {
    const { code, stdout } = await here.sluice(args);
    expect(code, note(stdout)).toBe(0);
  }
  const env = input.env?.(address, closed) ?? {};
  const { code, stdout, stderr } = await here.sluice(
    input.args.map((word) => word.replace("<run>", runs.at(-1) ?? "")),
    { env, node: input.node ?? [] },
  );
  const output = note(`${stdout}${stderr}`)
    .replaceAll(here.folder, "<project>")
    .replaceAll(address, "http://<server>")
    .replaceAll(closed, "http://<closed>")
    .replaceAll(closed.slice(7), "<closed>");
  const lines = runs
    .reduce((text, id) => text.replaceAll(id, "<run>"), output)
    .replaceAll("EAI_AGAIN", "ENOTFOUND")
    .split("\n");
  // The path of a run is not about its mistake.
  const shown = lines.filter(
    (line) => (!/^(?:run|plan#\d)\s/.test(line) || / after \d+ ms/.test(line)) && line.trim() !== "",
  );
  return { code, text: shown.map((line) => line.trimEnd().replace(/ after \d+ ms/, " after <ms>")).join("\n") };
}

describe("an input with a mistake has one message with the place and the fix:", () => {
  test.each(BROKEN_INPUTS)("$name", async (input) => {
    const { code, text } = await tried(input);
    said.set(input.name, text);
    expect.soft(text).not.toMatch(/\n\s+at (?:async )?\S+ \(|node:internal|node_modules/);
    expect.soft(text).not.toContain("\u001b");
    expect.soft(text).not.toContain("/home/");
    expect({ code, text }).toEqual({ code: input.exit, text: expect.stringMatching(/\S/) });
  });
});

test("the gallery of these messages is as recorded", async () => {
  const sections = BROKEN_INPUTS.map(({ name, args, exit }) => {
    const command = `$ sluice ${args.map((word) => (/\s|"/.test(word) ? `'${word}'` : word)).join(" ")}`;
    return `## ${name} (exit ${exit})\n\n${command}\n${said.get(name) ?? ""}\n`;
  });
  await expect(sections.join("\n")).toMatchFileSnapshot(GALLERY);
});
