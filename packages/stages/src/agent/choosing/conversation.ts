import type { LanguageModelV4Message } from "@ai-sdk/provider";
import type { Reply, TurnCall } from "../reply-record.ts";
import { type CallAnswer, Transcript } from "../transcript.ts";

/** What was added to a conversation. */
type Entry =
  /** `brief` takes its place once the conversation is compacted. */
  | { readonly kind: "user"; readonly text: string; readonly brief?: string }
  | { readonly kind: "assistant"; readonly reply: Reply; readonly turn: number }
  | {
      readonly kind: "results";
      readonly calls: readonly TurnCall[];
      readonly answers: readonly CallAnswer[];
      readonly turn: number;
    };

/** How a conversation is measured. */
export interface Measure {
  /** Of the tools, which every prompt includes. */
  readonly fixed: number;
  readonly sizeOf: (text: string) => number;
}

/** The states that keep their outputs in a compacted conversation: the last ones. */
const KEPT_IN_FULL = 2;

/** The transcript of an orchestrator over a whole run. Rebuilt by the recorded steps when a run resumes. */
export class Conversation {
  readonly #system: string;
  readonly #measure: Measure;
  readonly #entries: Entry[] = [];
  #transcript: Transcript | undefined;

  constructor(system: string, measure: Measure) {
    this.#system = system;
    this.#measure = measure;
  }

  get transcript(): Transcript {
    if (this.#transcript === undefined) throw new Error("a conversation begins with a message");
    return this.#transcript;
  }

  /** Adds what has happened since its last turn. */
  user(text: string, brief?: string): void {
    this.#settle();
    this.#add(brief === undefined ? { kind: "user", text } : { kind: "user", text, brief });
  }

  assistant(reply: Reply, turn: number): void {
    this.#add({ kind: "assistant", reply, turn });
  }

  results(calls: readonly TurnCall[], answers: readonly CallAnswer[], turn: number): void {
    this.#add({ kind: "results", calls, answers, turn });
  }

  /** Notes the messages of people that a turn has already added to the transcript. */
  took(messages: readonly LanguageModelV4Message[]): void {
    for (const message of messages) {
      if (message.role !== "user") continue;
      const text = message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
      this.#entries.push({ kind: "user", text });
    }
  }

  /**
   * Replaces what earlier states returned by a line each, oldest first, until a prompt fits into `most` tokens. What the model
   * said and chose stays. Returns how many were replaced.
   */
  compact(most: number): number {
    if (this.transcript.promptTokens() <= most) return 0;
    const long = this.#entries.flatMap((entry, index) =>
      entry.kind === "user" && entry.brief !== undefined ? [index] : [],
    );
    const replaced = long.slice(0, Math.max(0, long.length - KEPT_IN_FULL));
    for (const index of replaced) {
      const entry = this.#entries[index];
      if (entry?.kind === "user" && entry.brief !== undefined)
        this.#entries[index] = { kind: "user", text: entry.brief };
    }
    if (replaced.length > 0) this.#rebuild();
    return replaced.length;
  }

  /** A turn that was cut off left calls without results, which no provider accepts. */
  #settle(): void {
    const last = this.#entries.at(-1);
    if (last?.kind !== "assistant" || last.reply.calls.length === 0) return;
    this.results(last.reply.calls, [], last.turn);
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
    this.#append(entry);
  }

  #append(entry: Entry): void {
    const { fixed, sizeOf } = this.#measure;
    if (this.#transcript === undefined) {
      if (entry.kind !== "user") throw new Error("a conversation begins with a message");
      this.#transcript = new Transcript(this.#system, entry.text, fixed, sizeOf);
      return;
    }
    switch (entry.kind) {
      case "user":
        this.#transcript.user(entry.text);
        break;
      case "assistant":
        this.#transcript.assistant(entry.reply);
        break;
      case "results":
        this.#transcript.results(entry.calls, entry.answers, entry.turn);
        break;
    }
  }

  #rebuild(): void {
    this.#transcript = undefined;
    for (const entry of this.#entries) {
      // What providers counted was of longer prompts.
      const isCounted = entry.kind === "assistant";
      this.#append(isCounted ? { ...entry, reply: uncounted(entry.reply) } : entry);
    }
  }
}

function uncounted(reply: Reply): Reply {
  return { ...reply, usage: { ...reply.usage, known: false } };
}
