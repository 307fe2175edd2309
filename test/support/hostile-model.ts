import type { LanguageModelV4CallOptions, LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { ResolvedModel } from "@sluice/stages";
import { asPart, COMPLETION, type RandomStream } from "./random-streams.ts";
import { finish, part } from "./stream-model.ts";

/** A model that plays random streams, one a call, and looks at what it is sent. */
export interface HostileModel extends ResolvedModel {
  /** Streams played so far. */
  readonly played: number;
  /** What was wrong with a prompt. */
  readonly faults: readonly string[];
  /** Streams that nobody has let go of. */
  readonly open: ReadonlySet<object>;
  /** Signals handed to calls. */
  readonly signals: readonly AbortSignal[];
  /** Calls that hung until something ended them. */
  readonly hung: number;
  /** Answers calls that are not waited for any more. */
  release(): void;
}

export function hostileModel(streams: readonly RandomStream[], onCall: () => void): HostileModel {
  const state = { played: 0, hanging: 0 };
  const faults: string[] = [];
  const open = new Set<object>();
  const signals: AbortSignal[] = [];
  const late: (() => void)[] = [];
  const lastOf = new WeakMap<
    LanguageModelV4Prompt,
    { readonly stream: RandomStream | undefined; readonly length: number }
  >();

  const doStream = async ({ prompt, abortSignal }: LanguageModelV4CallOptions) => {
    onCall();
    if (abortSignal !== undefined) signals.push(abortSignal);
    const stream = streams[state.played];
    const last = lastOf.get(prompt);
    faults.push(...promptFaults(prompt));
    if (last !== undefined && prompt.length > last.length)
      faults.push(...answerFaults(prompt.slice(last.length), prompt, last.stream));
    lastOf.set(prompt, { stream, length: prompt.length });
    if (stream === undefined)
      return {
        stream: sourceOf(
          [...completion].map((value) => ({ value, trap: false })),
          closing,
          open,
        ),
      };
    state.played += 1;
    switch (stream.ending) {
      case "reject":
        throw stream.fault;
      case "never":
        state.hanging += 1;
        return new Promise<{ stream: ReadableStream<LanguageModelV4StreamPart> }>((resolve) => {
          late.push(() => resolve({ stream: sourceOf(stream.parts, { ...stream, ending: "hang" }, open) }));
        });
      case "nothing":
        return Object.assign({ stream: new ReadableStream<LanguageModelV4StreamPart>() }, { stream: stream.fault });
      case "hang":
      case "unstoppable":
        state.hanging += 1;
        return { stream: sourceOf(stream.parts, stream, open) };
      default:
        return { stream: sourceOf(stream.parts, stream, open) };
    }
  };
  return {
    id: "hostile",
    secrets: [],
    at: () => ({
      specificationVersion: "v4",
      provider: "hostile",
      modelId: "hostile",
      supportedUrls: {},
      doGenerate: () => Promise.reject(new Error("only streaming is used")),
      doStream,
    }),
    get played() {
      return state.played;
    },
    faults,
    open,
    signals,
    get hung() {
      return state.hanging;
    },
    release: () => {
      for (const answer of late) answer();
    },
  };
}

const closing: Pick<RandomStream, "ending" | "pace" | "fault"> = { ending: "close", pace: "at once", fault: undefined };
/** What is said when the random streams are used up, so that every story ends. */
const completion = [
  part({ type: "tool-call", toolCallId: "end", toolName: COMPLETION, input: '{"summary":"at last"}' }),
  finish("tool-calls"),
];

function sourceOf(
  parts: RandomStream["parts"],
  { ending, pace, fault }: Pick<RandomStream, "ending" | "pace" | "fault">,
  open: Set<object>,
): ReadableStream<LanguageModelV4StreamPart> {
  const me = {};
  open.add(me);
  const never = new Promise<void>(() => undefined);
  const end = (controller: ReadableStreamDefaultController<LanguageModelV4StreamPart>): void => {
    if (ending === "hang" || ending === "unstoppable") return;
    open.delete(me);
    if (ending === "error") {
      controller.error(fault);
      return;
    }
    controller.close();
    if (ending === "twice") controller.close(); // throws, into the stream machinery
  };
  let next = 0;
  const cancel = (): Promise<void> | undefined => {
    open.delete(me);
    if (ending === "unstoppable") return never;
    if (ending === "hang") throw new Error("a source that does not want to stop");
    return undefined;
  };
  if (pace === "at once") {
    return new ReadableStream({
      start: (controller) => {
        for (const { value } of parts) controller.enqueue(asPart(value));
        end(controller);
      },
      cancel,
    });
  }
  return new ReadableStream(
    {
      pull: async (controller) => {
        if (pace === "later") await new Promise(setImmediate);
        const following = parts[next++];
        if (following !== undefined) controller.enqueue(asPart(following.value));
        else {
          end(controller);
          if (open.has(me)) await never;
        }
      },
      cancel,
    },
    { highWaterMark: 0 },
  );
}

/** Why a transcript is not one that a provider would take, with one result for each call, in call order. */
function promptFaults(prompt: LanguageModelV4Prompt): readonly string[] {
  const faults: string[] = [];
  const ids = new Set<string>();
  let waiting: readonly string[] = [];
  for (const [at, message] of prompt.entries()) {
    const expected = at === 0 ? "system" : at === 1 ? "user" : waiting.length > 0 ? "tool" : undefined;
    if (expected !== undefined && message.role !== expected)
      faults.push(`message ${at} is ${message.role}, not ${expected}`);
    if (message.role === "tool") {
      const answered = message.content.map((each) =>
        each.type === "tool-result" ? `${each.toolCallId} ${each.toolName}` : each.type,
      );
      if (JSON.stringify(answered) !== JSON.stringify(waiting)) {
        faults.push(`results ${JSON.stringify(answered)} for calls ${JSON.stringify(waiting)}`);
      }
    }
    waiting = [];
    if (message.role !== "assistant") continue;
    if (message.content.length === 0) faults.push(`message ${at} is empty`);
    const calls = message.content.flatMap((each) => (each.type === "tool-call" ? [each] : []));
    for (const { toolCallId, toolName } of calls) {
      if (ids.has(toolCallId)) faults.push(`the id ${toolCallId} stands there twice`);
      ids.add(toolCallId);
      if (!/^[A-Za-z0-9_-]{1,64}$/.test(toolName)) faults.push(`the name ${toolName} is none`);
    }
    waiting = calls.flatMap((each) => (each.providerExecuted === true ? [] : [`${each.toolCallId} ${each.toolName}`]));
  }
  if (waiting.length > 0) faults.push("the last calls have no results");
  return faults;
}

/** Whether what was added to a transcript is what the stream before it said: each call, in order, under the id it was sent with. */
function answerFaults(
  added: LanguageModelV4Prompt,
  prompt: LanguageModelV4Prompt,
  stream: RandomStream | undefined,
): readonly string[] {
  // What a part that cannot be read counts for is not said anywhere.
  if (stream === undefined || stream.parts.some(({ trap }) => trap)) return [];
  const sent = stream.parts.map(({ value }) => Object(value)).filter(({ type }) => type === "tool-call");
  const ours = sent.filter(({ providerExecuted }) => providerExecuted !== true);
  const said = added.flatMap((message) => (message.role === "assistant" ? message.content : []));
  const calls = said.flatMap((each) => (each.type === "tool-call" ? [each] : []));
  const results = added.flatMap((message) => (message.role === "tool" ? message.content : []));
  const faults: string[] = [];
  if (results.length !== ours.length) faults.push(`${results.length} results for ${ours.length} calls`);
  if (calls.length !== sent.length) faults.push(`${calls.length} calls kept of ${sent.length}`);
  const before = prompt.slice(0, prompt.length - added.length);
  const taken = new Set(
    before
      .flatMap((message) => (message.role === "assistant" ? message.content : []))
      .map((each) => (each.type === "tool-call" ? each.toolCallId : undefined)),
  );
  for (const [at, { toolCallId }] of sent.entries()) {
    const usable = typeof toolCallId === "string" && toolCallId.trim() !== "" && toolCallId.length <= 256;
    const kept = calls[at]?.toolCallId;
    if (usable && !taken.has(toolCallId) && kept !== toolCallId) faults.push(`sent as ${toolCallId}, kept as ${kept}`);
    taken.add(kept);
  }
  return faults;
}
