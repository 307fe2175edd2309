import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import fc from "fast-check";
import { anything, block, call, end, other } from "./random-parts.ts";
import { finish, part } from "./stream-model.ts";

/** One thing a stream yields. */
export interface RandomPart {
  readonly value: unknown;
  /** Reading it throws somewhere: what is made of it is nobody's business but that it harms nothing. */
  readonly trap: boolean;
}
export type Ending =
  | "close"
  | "twice" // closes, closes again, and yields after it
  | "error"
  | "hang"
  | "unstoppable" // hangs, and its source ignores that it is cancelled
  | "reject" // no stream: the call fails
  | "never" // no stream: the call does not answer until it is too late
  | "nothing"; // no stream: something else in its place
export interface RandomStream {
  readonly parts: readonly RandomPart[];
  readonly ending: Ending;
  readonly pace: "at once" | "pulled" | "later";
  /** What is thrown, where something is. */
  readonly fault: unknown;
}
export interface RandomStory {
  readonly shape: "one" | "again" | "fork";
  readonly turnCap: number;
  readonly streams: readonly RandomStream[];
  readonly tools: readonly ToolMood[];
  readonly people: readonly PersonMood[];
  /** The run is cancelled at the nth thing that happens in it: a model call, a tool's call, a request. */
  readonly cancelAt: number | undefined;
  /** How far the clock is turned when nothing else happens, in milliseconds. */
  readonly stepMs: number;
  readonly listened: boolean;
}
export type ToolMood = "fine" | "refuses" | "throws" | "garbage" | "slow" | "hangs" | "unstoppable";
export type PersonMood = "approve" | "deny" | "defer" | "value" | "silent" | "throws" | "garbage" | "slow" | "hangs";

export const COMPLETION = "finish";
export const TOOLS = { read: "Look", write: "Change", outside: "Outside", ask: "Ask" } as const;

const names = fc.constantFrom(...Object.values(TOOLS), COMPLETION, "Nope", "look", "__proto__", "a b", "");
const inputs = fc.constantFrom(
  "{}",
  "",
  '{"summary":"ok"}',
  '{"summary":1}',
  '{"summary":"ok","summary":"twice"}',
  '{"a":1}',
  '{"a":2}',
  '{"b":[1,{"c":null}]}',
  '{"__proto__":{"summary":"ok"}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{"a":"\\ud83d"}',
  '{"a":"\ud83d"}',
  '{"a":1e999}',
  '{"a":',
  "[1]",
  '"text"',
  "null",
  `{"a":${"[".repeat(200)}${"]".repeat(200)}}`,
  `{"text":"${"long ".repeat(2_000)}"}`,
);
const callIds = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "c", "call", "call_c1", "a_c1", "__proto__") },
  { weight: 1, arbitrary: anything },
);
const sensible = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant("tool-call"), toolCallId: callIds, toolName: names, input: inputs }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("text-delta"), id: fc.constant("0"), delta: fc.string() }) },
);
const odd = fc.oneof(block, call, other, end);
const noPart = fc.constantFrom<unknown>(null, undefined, "text", 7, true, [], {}, { type: null }, () => "part");

const FIELDS = [
  "type",
  "id",
  "delta",
  "toolCallId",
  "toolName",
  "input",
  "providerMetadata",
  "usage",
  "providerExecuted",
];
/** A part of which one field cannot be read, or none at all. */
const trapped = fc
  .tuple(fc.oneof(sensible, odd), fc.constantFrom(...FIELDS, "*"))
  .map(([fields, field]): RandomPart => {
    const refuse = (): never => {
      throw new Error("this cannot be read");
    };
    // Shown as what it was made of: looking at it would throw.
    const shown = { [fc.toStringMethod]: () => `${fc.stringify(fields)} with ${field} as a trap` };
    if (field === "*")
      return { value: new Proxy(fields, { get: refuse, has: refuse, ownKeys: refuse }), trap: true, ...shown };
    const value = Object.defineProperty(part(fields), field, { get: refuse, enumerable: true });
    return { value, trap: true, ...shown };
  });
/** A part whose fields are its prototype's, as those of an instance of a class. */
const inherited = sensible.map((fields): RandomPart => ({ value: Object.create(part(fields)), trap: false }));

const plain = (value: unknown): RandomPart => ({ value, trap: false });
const randomPart: fc.Arbitrary<RandomPart> = fc.oneof(
  { weight: 10, arbitrary: sensible.map((fields) => plain(part(fields))) },
  { weight: 5, arbitrary: odd.map((fields) => plain(part(fields))) },
  { weight: 1, arbitrary: noPart.map(plain) },
  { weight: 1, arbitrary: inherited },
  { weight: 1, arbitrary: trapped },
);
const finishing = fc.constantFrom("tool-calls", "stop", "length", "content-filter", "other", "error", "new", "none");

const transient = Object.assign(new Error("overloaded"), { statusCode: 529, isRetryable: true });
const limited = Object.assign(new Error("slow down"), {
  statusCode: 429,
  isRetryable: true,
  responseHeaders: { "retry-after": "2" },
});
const faults = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<unknown>(transient, limited, new TypeError("terminated")) },
  { weight: 1, arbitrary: anything },
);

const stream: fc.Arbitrary<RandomStream> = fc
  .record({
    parts: fc.array(randomPart, { maxLength: 7 }),
    finish: finishing,
    late: fc.boolean(),
    ending: fc.oneof(
      { weight: 14, arbitrary: fc.constant<Ending>("close") },
      {
        weight: 4,
        arbitrary: fc.constantFrom<Ending>("twice", "error", "hang", "unstoppable", "reject", "never", "nothing"),
      },
    ),
    pace: fc.constantFrom("at once", "pulled", "later"),
    fault: faults,
  })
  .map(({ parts, finish: unified, late, ...rest }) => {
    const last = unified === "none" ? [] : [plain(finish(unified))];
    // Late: what comes after the end still belongs to nobody.
    return { ...rest, parts: late ? [...parts.slice(1), ...last, ...parts.slice(0, 1)] : [...parts, ...last] };
  });

export const story: fc.Arbitrary<RandomStory> = fc.record({
  shape: fc.constantFrom("one", "one", "again", "fork"),
  turnCap: fc.integer({ min: 1, max: 6 }),
  streams: fc.array(stream, { minLength: 2, maxLength: 8 }),
  tools: fc.array(
    fc.constantFrom<ToolMood>("fine", "fine", "fine", "refuses", "throws", "garbage", "slow", "hangs", "unstoppable"),
    { maxLength: 4 },
  ),
  people: fc.array(
    fc.constantFrom<PersonMood>(
      "approve",
      "approve",
      "deny",
      "defer",
      "value",
      "silent",
      "throws",
      "garbage",
      "slow",
      "hangs",
    ),
    { maxLength: 4 },
  ),
  cancelAt: fc.option(fc.nat(6), { nil: undefined, freq: 3 }),
  stepMs: fc.constantFrom(60, 1_500, 70_000),
  listened: fc.boolean(),
});

/** The value as the stream's type wants it, whatever it is. */
export function asPart(value: unknown): LanguageModelV4StreamPart {
  const held: { part: LanguageModelV4StreamPart } = { part: { type: "raw", rawValue: null } };
  Object.assign(held, { part: value });
  return held.part;
}
