import { isSluiceError, pipeline, stage, systemClock } from "@sluice/core";
import { chooseModel, type ModelChoice } from "@sluice/stages";
import { DEFAULT_MODELS, MODEL_PROVIDERS, resolveModel } from "@sluice/stages/runtime";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { modelFor } from "../../packages/cli/src/project/model.ts";
import { handClock } from "../support/hand-clock.ts";

const KEYS = Object.fromEntries(DEFAULT_MODELS.map(({ variable }) => [variable, "k"]));
const nobody = () => Promise.reject(new Error("nobody listens"));

/** What is chosen, and which addresses were asked. */
async function choose(choice: Partial<ModelChoice>) {
  const asked: string[] = [];
  const answer = choice.fetch ?? nobody;
  const ask: typeof fetch = (input, init) => {
    asked.push(String(input));
    return answer(input, init);
  };
  const chosen = await chooseModel({ env: {}, clock: systemClock, ...choice, fetch: ask });
  return { chosen, asked };
}

const tags = (...models: readonly unknown[]) => JSON.stringify({ models });
const answers =
  (body: string, status = 200): typeof fetch =>
  () =>
    Promise.resolve(new Response(body, { status }));

describe("the model where none was named", () => {
  test("is SLUICE_MODEL's before the configuration's, and that before any key's", async () => {
    const env = { ...KEYS, SLUICE_MODEL: " a/b " };
    expect((await choose({ env, configured: "c/d" })).chosen).toEqual({ id: "a/b", why: "SLUICE_MODEL" });
    expect((await choose({ env: { ...env, SLUICE_MODEL: " " }, configured: "c/d" })).chosen).toEqual({
      id: "c/d",
      why: "the project's configuration",
    });
  });

  test("is the default of the first provider whose key is set, in the documented order, and no server is asked", async () => {
    const left = { ...KEYS };
    for (const { variable, id } of DEFAULT_MODELS) {
      expect(await choose({ env: left })).toEqual({ chosen: { id, why: `${variable} is set` }, asked: [] });
      left[variable] = "  ";
    }
    expect((await choose({ env: left })).chosen).toBeUndefined();
  });

  test("is another one of that provider where the options name it", async () => {
    const defaultModels = { openai: "openai/other" };
    const only = { OPENAI_API_KEY: "k" };
    expect((await choose({ env: only, defaultModels })).chosen?.id).toBe("openai/other");
    expect((await choose({ env: KEYS, defaultModels })).chosen?.id).toBe(DEFAULT_MODELS[0]?.id);
  });

  test.each(DEFAULT_MODELS)("for $variable can be called with that key", async ({ provider, variable, id }) => {
    const known = MODEL_PROVIDERS.find(({ name }) => name === provider);
    expect(known?.variables).toContainEqual({ name: variable, required: true });
    const model = await resolveModel(id, { env: { [variable]: "k" }, cwd: "/", clock: systemClock });
    expect(model.id).toBe(id);
  });
});

describe("a local Ollama", () => {
  test("gives its first model that can hold a conversation, from where OLLAMA_HOST says", async () => {
    const list = tags(
      { name: "nomic-embed-text:latest" },
      { name: "minilm", details: { family: "bert" } },
      { name: "org/qwen3-coder:30b" },
      { name: "llama3:8b" },
    );
    expect(await choose({ fetch: answers(list), env: { OLLAMA_HOST: "gpu.example" } })).toEqual({
      chosen: { id: "ollama/org/qwen3-coder:30b", why: "the first model of Ollama at http://gpu.example:11434" },
      asked: ["http://gpu.example:11434/api/tags"],
    });
    expect((await choose({ fetch: answers(list) })).asked).toEqual(["http://127.0.0.1:11434/api/tags"]);
    const baseUrls = { ollama: "http://127.0.0.1:1/v1" };
    expect((await choose({ fetch: answers(list), baseUrls })).asked).toEqual(["http://127.0.0.1:1/api/tags"]);
  });

  test.each([
    ["an error", "{}", 500],
    ["a page of another program", "<html>", 200],
    ["no models", tags(), 200],
    ["something else", '{"models":{"name":"a"}}', 200],
    ["models without names", tags({}, null, 5, { name: 7 }), 200],
    ["names that are none", tags({ name: "\u001b[31mred" }, { name: "a b" }, { name: "-x" }, { name: "" }), 200],
    ["more than a list can be", tags({ name: "a" }).padEnd(2 * 1024 * 1024), 200],
  ])("that answers with %s is no choice", async (_what, body, status) => {
    expect((await choose({ fetch: answers(body, status) })).chosen).toBeUndefined();
  });

  test("that does not answer is given up after 290 ms, also when it ignores that", async () => {
    const clock = handClock();
    const signals: (AbortSignal | null | undefined)[] = [];
    const unresponsive: typeof fetch = (_url, init) => {
      signals.push(init?.signal);
      return new Promise(() => undefined);
    };
    const choice = choose({ clock, fetch: unresponsive });
    await expect.poll(() => clock.waiting()).toBe(1);
    clock.turn(289);
    expect(signals[0]?.aborted).toBe(false);
    clock.turn(1);
    expect((await choice).chosen).toBeUndefined();
    expect(signals[0]?.aborted).toBe(true);
  });

  test("leaves no timer when it answers or refuses", async () => {
    const clock = handClock();
    await choose({ clock, fetch: answers(tags({ name: "a" })) });
    await choose({ clock });
    expect(clock.waiting()).toBe(0);
  });

  test("is not looked for at an address that is none: that is said", async () => {
    const thrown: unknown = await choose({ env: { OLLAMA_HOST: "host:port" } }).catch((error: unknown) => error);
    expect(isSluiceError(thrown) && thrown.code).toBe("invalid_base_url");
  });

  test("gets its key, and follows no one elsewhere with it", async () => {
    const seen: RequestInit[] = [];
    const fetch: typeof globalThis.fetch = (_url, init) => {
      seen.push(init ?? {});
      return nobody();
    };
    await choose({ env: { OLLAMA_API_KEY: "k-1" }, fetch });
    expect(seen).toMatchObject([{ redirect: "error", headers: { authorization: "Bearer k-1" } }]);
  });
});

describe("the command", () => {
  const own = (model?: string) =>
    pipeline({
      id: "one",
      input: z.object({}),
      stages: {
        work: stage({
          prompt: "Work.",
          allowedTools: [],
          completionTool: "finish",
          completionSchema: z.object({}),
          turnCap: 1,
          ...(model === undefined ? {} : { model }),
        }),
      },
      initial: "work",
      next: { work: () => ({ kind: "done", output: null }) },
    });
  const wish = { named: undefined, here: "/here", clock: systemClock, fetch: nobody };

  test("chooses nothing where every stage names its model", async () => {
    expect(await modelFor(own("a/b").spec, { ...wish, env: KEYS })).toBeUndefined();
  });

  test("takes what was named as it is, and gives no reason for it", async () => {
    expect(await modelFor(own().spec, { ...wish, named: "a/b", env: KEYS })).toEqual({ id: "a/b" });
  });

  test("finds a script or a recording from where the user stands, and one with a whole path where it is", async () => {
    const of = async (SLUICE_MODEL: string) => (await modelFor(own().spec, { ...wish, env: { SLUICE_MODEL } }))?.id;
    expect(await of("scripted:s.json")).toBe("scripted:/here/s.json");
    expect(await of("cassette:../r.jsonl")).toBe("cassette:/r.jsonl");
    expect(await of("scripted:/there/s.json")).toBe("scripted:/there/s.json");
  });
});
