import type { JSONRPCMessage } from "@ai-sdk/mcp";
import { expect, test } from "vitest";
import { createInbox } from "../../packages/stages/src/tools/mcp/transport/inbox.ts";

/** What an inbox lets through of an answer that is awaited. */
function delivered(text: string): {
  readonly messages: readonly JSONRPCMessage[];
  readonly notices: readonly string[];
} {
  const messages: JSONRPCMessage[] = [];
  const notices: string[] = [];
  const nothing = (): void => undefined;
  const inbox = createInbox({
    validate: (value) => JSON.parse(JSON.stringify(value)),
    deliver: (message) => void messages.push(message),
    reply: nothing,
    cancel: nothing,
    changed: nothing,
    notice: (message) => void notices.push(message),
    end: nothing,
  });
  inbox.asked({ jsonrpc: "2.0", id: 1, method: "tools/call", params: {} }, undefined);
  inbox.take(text);
  inbox.close();
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
])("an answer with the key %s: never comes to the client", (key) => {
  expect(delivered(answer(key))).toMatchObject({ messages: [], notices: [expect.stringContaining("invalid JSON")] });
});

test.each(['"proto"', '"__prot__"', '"a__proto__"', '"__proto__a"'])("an answer with the key %s does", (key) => {
  expect(delivered(answer(key)).messages).toHaveLength(1);
});
