import { createServer, type IncomingMessage } from "node:http";
import { DEFAULT_MODELS } from "@sluice/stages/runtime";
import { expect, onTestFinished, test } from "vitest";
import { at, finishes, printed } from "../support/command.ts";
import { deskHere } from "../support/command-here.ts";

interface Refusing {
  readonly url: string;
  /** Path and body of every request. */
  readonly asked: readonly string[];
}

/** Every provider at once: it has one model for Ollama, and refuses every call, so that a run ends after the first. */
async function refusing(): Promise<Refusing> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      asked.push(`${request.url ?? ""} ${body}`);
      const tags = request.url === "/api/tags";
      response.writeHead(tags ? 200 : 401, { "content-type": "application/json" });
      response.end(JSON.stringify(tags ? { models: [{ name: "llama3:8b" }] } : { error: { message: "no" } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return { url: `http://127.0.0.1:${address.port}`, asked };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk);
  return text;
}

const addresses = (url: string) => ({
  ANTHROPIC_BASE_URL: url,
  OPENAI_BASE_URL: url,
  GOOGLE_GENERATIVE_AI_BASE_URL: url,
  AI_GATEWAY_BASE_URL: url,
  OLLAMA_HOST: url,
});
const keysFrom = (first: number) =>
  Object.fromEntries(DEFAULT_MODELS.slice(first).map(({ variable }) => [variable, "k-123"]));
const RUN = ["run", "codeReview", "x", "--output-format", "json"];

test.each(DEFAULT_MODELS.map((model, index) => ({ ...model, index })))(
  "$variable decides when no key before it is set: $id is asked, and it is said why",
  async ({ variable, id, index }) => {
    const server = await refusing();
    const ended = await deskHere().sluice(RUN, { env: { ...addresses(server.url), ...keysFrom(index) } });
    const why = `${variable} is set`;
    expect(ended.stderr).toContain(`sluice: model ${id} (${why})\n`);
    const suspended = { reason: "provider", code: "unauthorized" };
    expect(printed(ended)).toMatchObject({ status: "suspended", model: { id, why }, suspended });
    expect(server.asked).toHaveLength(1);
    // Google names the model in the address, the gateway in a header.
    if (index !== 3) expect(server.asked[0]).toContain(id.slice(id.indexOf("/") + 1));
    else expect(server.asked[0]).toMatch(/^\/v4\/ai\/language-model /);
  },
);

// It has 290 ms to answer, and a machine that is busy with other tests may need more.
test("an Ollama that answers decides when no key is set", { retry: 3 }, async () => {
  const server = await refusing();
  const ended = await deskHere().sluice(RUN, { env: { OLLAMA_HOST: server.url } });
  const why = `the first model of Ollama at ${server.url}`;
  expect(ended.stderr).toContain(`sluice: model ollama/llama3:8b (${why})\n`);
  expect(printed(ended)).toMatchObject({ status: "suspended", model: { id: "ollama/llama3:8b", why } });
  expect(server.asked.map((line) => line.split(" ")[0])).toEqual(["/api/tags", "/v1/chat/completions"]);
});

test("SLUICE_MODEL comes before every key, --model before SLUICE_MODEL, and what was named is not explained", async () => {
  const server = await refusing();
  const env = { ...addresses(server.url), ...keysFrom(0), SLUICE_MODEL: "ollama/named" };
  const said = await deskHere().sluice(RUN, { env });
  expect(said.stderr).toContain("sluice: model ollama/named (SLUICE_MODEL)\n");
  expect(at(printed(said), "model")).toEqual({ id: "ollama/named", why: "SLUICE_MODEL" });

  const here = deskHere();
  const script = here.script({ plan: [finishes()] });
  const named = await here.sluice([...RUN, "--model", script], { env });
  expect(named.stderr).not.toContain("sluice: model");
  expect(printed(named)).not.toHaveProperty("model");
  expect(server.asked.map((line) => line.split(" ")[0])).toEqual(["/v1/chat/completions"]);
});

test("nothing set and no one there: exit 4 with the variables of all providers, and no store", async () => {
  const ended = await deskHere().sluice(RUN);
  expect(ended.code).toBe(4);
  const error = at(printed(ended), "error");
  expect(error).toMatchObject({ code: "no_model" });
  const variables = ["SLUICE_MODEL", ...DEFAULT_MODELS.map(({ variable }) => variable), "OLLAMA_HOST"];
  expect(at(error, "detail", "variables")).toEqual(expect.arrayContaining(variables));
});

test("the demo stays scripted, whatever keys there are", async () => {
  const server = await refusing();
  const env = { ...addresses(server.url), ...keysFrom(0), SLUICE_MODEL: "ollama/named" };
  const ended = await deskHere().sluice(["demo", "--output-format", "json"], { env });
  expect(ended.code).toBe(0);
  expect(ended.stderr).not.toContain("sluice: model");
  expect(server.asked).toEqual([]);
});
