import type { JSONRPCMessage } from "@ai-sdk/mcp";
import { expect, test } from "vitest";
import { NO_MASK } from "../../packages/stages/src/secrets/cut-text.ts";
import { Transport } from "../../packages/stages/src/tools/mcp/transport/transport.ts";

/** A connection without a server. */
class Loose extends Transport {
  start(): Promise<void> {
    return Promise.resolve();
  }
  async send(message: JSONRPCMessage): Promise<void> {
    this.asked(message, undefined);
  }
  hear(text: string): void {
    this.take(text);
  }
  protected reply(): void {
    // There is no server to send it to.
  }
  protected cancel(): void {
    // There is no server to send it to.
  }
  protected leave(): Promise<void> {
    return Promise.resolve();
  }
}

/** What a connection lets through of an answer that is awaited. */
async function delivered(text: string): Promise<{
  readonly messages: readonly JSONRPCMessage[];
  readonly notices: readonly string[];
}> {
  const messages: JSONRPCMessage[] = [];
  const notices: string[] = [];
  const loose = new Loose({
    maxMessageBytes: 1_000_000,
    validate: (value) => JSON.parse(JSON.stringify(value)),
    secrets: NO_MASK,
    notice: (message) => void notices.push(message),
  });
  loose.onmessage = (message) => void messages.push(message);
  await loose.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: {} });
  loose.hear(text);
  await loose.close();
  return { messages, notices };
}

const answer = (key: string): string => `{"jsonrpc":"2.0","id":1,"result":{"content":[],${key}:{"polluted":true}}}`;
const letters = Array.from("__proto__");
const escaped = (letter: string): string => `\\u00${letter.charCodeAt(0).toString(16)}`;

test.each([
  '"__proto__"',
  '"__proto__" ',
  '"\\u005f\\u005Fproto__"',
  '"__pr\\u006fto__"',
  '"__\\u0070roto__"',
  '"__pr\\u006Fto__"',
  `"${letters.map(escaped).join("")}"`,
  ...letters.map((_, at) => `"${letters.map((letter, index) => (index === at ? escaped(letter) : letter)).join("")}"`),
])("an answer with the key %s: never comes to the client", async (key) => {
  expect(await delivered(answer(key))).toMatchObject({
    messages: [],
    notices: [expect.stringContaining("invalid JSON")],
  });
});

test.each(['"proto"', '"__prot__"', '"a__proto__"', '"__proto__a"'])("an answer with the key %s does", async (key) => {
  expect((await delivered(answer(key))).messages).toHaveLength(1);
});
