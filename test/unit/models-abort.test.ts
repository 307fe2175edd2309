import { getEventListeners } from "node:events";
import type { LanguageModelV4, LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callModel } from "../../packages/stages/src/agent/model-call.ts";
import { finish, modelFrom, modelOf, part } from "../support/stream-model.ts";

const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];
const aborted = (begun: boolean) => ({
  ok: false,
  error: { kind: "aborted", code: "aborted", message: "the model call was stopped" },
  begun,
});

const unhandled: unknown[] = [];
const note = (reason: unknown): void => {
  unhandled.push(reason);
};
beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note);
});
afterEach(async () => {
  await settle();
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

/** Unhandled rejections are reported after the microtasks of a turn of the event loop. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function listeners(signal: AbortSignal): number {
  return getEventListeners(signal, "abort").length;
}

function call(model: LanguageModelV4, signal: AbortSignal, onText?: () => void) {
  return callModel({ model, prompt, tools: [], signal, ...(onText === undefined ? {} : { onText }) });
}

describe("when the signal aborts, a model call returns at once", () => {
  test("before it began, without asking the provider", async () => {
    let asked = false;
    const model = modelFrom(() => {
      asked = true;
      return new Promise(() => undefined);
    });
    expect(await call(model, AbortSignal.abort())).toEqual(aborted(false));
    expect(asked).toBe(false);
  });

  test("while a provider that ignores the signal has not answered; an answer that comes later is cancelled", async () => {
    let answer: (stream: ReadableStream<LanguageModelV4StreamPart>) => void = () => undefined;
    const model = modelFrom(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    const controller = new AbortController();
    const reply = call(model, controller.signal);
    controller.abort();
    expect(await reply).toEqual(aborted(false));
    expect(listeners(controller.signal)).toBe(0);

    const cancelled = new Promise<void>((resolve) => {
      answer(new ReadableStream({ cancel: () => resolve() }));
    });
    await cancelled;
  });

  test("while a provider that ignores the signal has not answered; a failure that comes later is ignored", async () => {
    let fail: (reason: Error) => void = () => undefined;
    const model = modelFrom(
      () =>
        new Promise((_resolve, reject) => {
          fail = reject;
        }),
    );
    const controller = new AbortController();
    const reply = call(model, controller.signal);
    controller.abort();
    expect(await reply).toEqual(aborted(false));
    fail(new Error("late"));
  });

  test("in the middle of a stream whose source never reacts", async () => {
    const controller = new AbortController();
    const model = modelFrom(() =>
      Promise.resolve(
        new ReadableStream({
          start: (stream) => stream.enqueue(part({ type: "text-delta", id: "0", delta: "a" })),
          cancel: () => new Promise(() => undefined),
        }),
      ),
    );
    expect(await call(model, controller.signal, () => controller.abort())).toEqual(aborted(true));
    expect(listeners(controller.signal)).toBe(0);
  });

  test("in the middle of a stream whose source breaks when it is cancelled", async () => {
    const controller = new AbortController();
    const model = modelFrom(() =>
      Promise.resolve(
        new ReadableStream({
          start: (stream) => stream.enqueue(part({ type: "text-delta", id: "0", delta: "a" })),
          cancel: () => {
            throw new Error("no");
          },
        }),
      ),
    );
    expect(await call(model, controller.signal, () => controller.abort())).toEqual(aborted(true));
  });

  test("also when the provider throws because of it", async () => {
    const controller = new AbortController();
    const model = modelFrom(
      ({ abortSignal }) =>
        new Promise((_resolve, reject) => {
          abortSignal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
        }),
    );
    const reply = call(model, controller.signal);
    controller.abort();
    expect(await reply).toEqual(aborted(false));
  });

  test("even if the answer was complete", async () => {
    const controller = new AbortController();
    const model = modelOf([part({ type: "text-delta", id: "0", delta: "a" }), finish("stop")]);
    expect(await call(model, controller.signal, () => controller.abort())).toEqual(aborted(true));
  });
});

describe("a model call leaves nothing behind", () => {
  test.each([
    ["an answer", modelOf([finish("stop")])],
    ["a cut answer", modelOf([])],
    ["an error part", modelOf([part({ type: "error", error: new Error("x") })])],
    ["a refusal", modelFrom(() => Promise.reject(new Error("x")))],
  ])("no listener after %s", async (_what, model) => {
    const { signal } = new AbortController();
    for (let round = 0; round < 20; round += 1) await call(model, signal);
    expect(listeners(signal)).toBe(0);
  });

  test("an error part cancels the rest of the stream", async () => {
    let cancelled = false;
    const model = modelFrom(() =>
      Promise.resolve(
        new ReadableStream({
          start: (stream) => stream.enqueue(part({ type: "error", error: new Error("x") })),
          cancel: () => {
            cancelled = true;
          },
        }),
      ),
    );
    expect(await call(model, new AbortController().signal)).toMatchObject({ ok: false });
    expect(cancelled).toBe(true);
  });
});
