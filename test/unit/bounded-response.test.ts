import { describe, expect, test } from "vitest";
import { boundedResponse } from "../../packages/stages/src/models/providers/bounded-response.ts";
import { eventually } from "../support/run-kit.ts";

const MIB = 1024 * 1024;

function bodyOf(pieces: Iterable<Uint8Array>, state: { cancelled?: boolean } = {}): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.iterator]();
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const next = iterator.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    cancel: () => {
      state.cancelled = true;
    },
  });
}

function cut(text: string, size: number): readonly Uint8Array[] {
  const bytes = Buffer.from(text);
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, at) => Uint8Array.from(bytes.subarray(at * size, (at + 1) * size)));
}

function* repeated(piece: Uint8Array, times: number): Generator<Uint8Array> {
  for (let n = 0; n < times; n += 1) yield piece;
}

async function read(body: ReadableStream<Uint8Array> | null): Promise<readonly string[]> {
  const pieces: string[] = [];
  const decoder = new TextDecoder();
  for await (const piece of body ?? []) pieces.push(decoder.decode(piece, { stream: true }));
  return pieces;
}

const EVENTS = "event: a\ndata: ä→🧭\n\n: ping\r\n\r\ndata: one\rdata: two\r\rdata: last, without its end";

test("a body comes as it was, whatever pieces it came in", async () => {
  for (let size = 1; size <= EVENTS.length; size += 1) {
    const { body } = boundedResponse(new Response(bodyOf(cut(EVENTS, size))));
    expect((await read(body)).join("")).toBe(EVENTS);
  }
});

test("an event is handed on when it is there, not with the next", async () => {
  let send: (text: string) => void = () => undefined;
  const source = new ReadableStream<Uint8Array>({
    start: (controller) => {
      send = (text) => controller.enqueue(Buffer.from(text));
    },
  });
  const reader = boundedResponse(new Response(source)).body?.getReader();
  for (const event of ["data: one\n\n", "data: two\r\n\r\n", "data: three\n\n"]) {
    send(event.slice(0, 7));
    send(event.slice(7));
    let said = "";
    while (!said.endsWith("\n")) said += Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(said).toBe(event);
  }
});

test("status, status text and headers stay", () => {
  const headers = { "retry-after": "3" };
  const response = boundedResponse(new Response("x", { status: 429, statusText: "Too Many", headers }));
  expect([response.status, response.statusText, response.ok]).toEqual([429, "Too Many", false]);
  expect(response.headers.get("retry-after")).toBe("3");
});

describe("a body that is too long", () => {
  const tooLarge = { class: "ProviderCapability", code: "reply_too_large" };

  test("in all fails after 256 MiB, though each of its events is short", async () => {
    const state = {};
    const pings = new TextEncoder().encode(": ping\n\n".repeat(MIB / 8));
    const { body } = boundedResponse(new Response(bodyOf(repeated(pings, 300), state)));
    let bytes = 0;
    const reading = async (): Promise<void> => {
      for await (const piece of body ?? []) bytes += piece.length;
    };
    await expect(reading()).rejects.toMatchObject(tooLarge);
    expect(bytes).toBeLessThanOrEqual(256 * MIB);
    expect(bytes).toBeGreaterThan(250 * MIB);
    expect(state).toEqual({ cancelled: true });
  });

  test("in one event fails; comments and names count as well", async () => {
    for (const line of [`data: ${"x".repeat(100)}\n`, `: ${"x".repeat(100)}\r`, `event: ${"x".repeat(100)}\r\n`]) {
      const state = {};
      const piece = new TextEncoder().encode(line.repeat(2_000));
      const { body } = boundedResponse(new Response(bodyOf(repeated(piece, 200), state)));
      await expect(read(body)).rejects.toMatchObject(tooLarge);
      expect(state).toEqual({ cancelled: true });
    }
  });

  test("and a refusal is cut, and its rest is not fetched", async () => {
    const state: { cancelled?: boolean } = {};
    const piece = new Uint8Array(100_000).fill(0x78);
    const { body } = boundedResponse(new Response(bodyOf(repeated(piece, 100), state), { status: 500 }));
    expect((await read(body)).join("")).toHaveLength(MIB);
    await eventually(() => state.cancelled === true);
  });
});

test("a line that comes byte by byte costs no more than its bytes", async () => {
  const bytes = cut("x".repeat(100_000), 1);
  const { body } = boundedResponse(new Response(bodyOf(bytes)));
  expect(await read(body)).toHaveLength(1);
});
