import { existsSync } from "node:fs";
import type { Json } from "@sluice/core";
import { describe, expect, test } from "vitest";
import {
  approving,
  attack,
  attacks,
  bash,
  eventData,
  grep,
  nothingRan,
  raw,
  scene,
  started,
  write,
} from "../support/attack.ts";
import { tool } from "../support/run-kit.ts";
import { finish, part } from "../support/stream-model.ts";

const ALL = { allowedTools: ["Read", "Write", "Edit", "Grep", "Glob", "Bash"] } as const;
const deep = (levels: number, open: string, close: string): string => open.repeat(levels) + close.repeat(levels);

describe("arguments that are not what the tool takes", () => {
  attacks({ ...ALL }, [
    {
      name: "text that is not JSON",
      never: "runs",
      calls: [["Write", raw('{"file_path": "new.txt", "content": ')]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "two values in a row",
      never: "runs the first or the second",
      calls: [["Write", raw('{"file_path":"new.txt","content":""}{"file_path":"../x","content":""}')]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a byte order mark in front",
      never: "runs",
      calls: [["Write", raw('\ufeff{"file_path":"new.txt","content":""}')]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a comment and single quotes",
      never: "are read generously",
      calls: [["Write", raw("{'file_path':'new.txt'/**/}")]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a list",
      never: "runs",
      calls: [["Write", ["new.txt", "evil"]]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a text",
      never: "runs",
      calls: [["Bash", "touch PWN"]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    { name: "null", never: "runs", calls: [["Bash", null]], outcomes: ["invalid_tool_input"], look: nothingRan },
    {
      name: "nothing at all",
      never: "runs",
      calls: [["Bash", raw("")]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a number that JSON does not have",
      never: "runs",
      calls: [
        ["Read", raw('{"file_path":"a.txt","limit":NaN}')],
        ["Read", raw('{"file_path":"a.txt","limit":1e999}')],
        ["Read", raw('{"file_path":"a.txt","limit":-0.5}')],
      ],
      outcomes: ["invalid_tool_input", "invalid_tool_input", "invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a list in the place of a path",
      never: "is joined to one",
      calls: [["Read", { file_path: ["..", "outside.txt"] }]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "an object with toString in the place of a path",
      never: "becomes one",
      calls: [["Read", { file_path: { toString: "../outside.txt", value: "../outside.txt" } }]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "an option nobody knows",
      never: "is dropped silently",
      calls: [["Write", { file_path: "new.txt", content: "", force: true, mode: "0777" }]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a number of context lines beyond all files",
      never: "runs",
      calls: [grep({ pattern: "x", "-C": 1e15 })],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a timeout of weeks",
      never: "holds the run",
      calls: [["Bash", { command: "sleep 999", timeout: 1e12 }]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a negative timeout",
      never: "means none",
      calls: [["Bash", { command: "true", timeout: -1 }]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "eleven million characters",
      never: "run or go into the record",
      turns: [
        {
          parts: [
            part({
              type: "tool-call",
              toolCallId: "x",
              toolName: "Write",
              input: JSON.stringify({ file_path: "new.txt", content: "x".repeat(11_000_000) }),
            }),
            finish("tool-calls"),
          ],
        },
      ],
      outcomes: ["invalid_tool_input"],
      look: (after) => {
        nothingRan(after);
        expect(after.recorded.length).toBeLessThan(100_000);
      },
    },
    {
      name: "lists in lists, 200,000 deep",
      never: "exhaust the stack",
      calls: [["Write", raw(`{"file_path":"new.txt","content":${deep(200_000, "[", "]")}}`)]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "objects in objects, 200,000 deep",
      never: "exhaust the stack",
      calls: [["Write", raw(deep(200_000, '{"a":', "}").replace("}", "1}"))]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "a million keys",
      never: "run",
      calls: [
        ["Read", raw(`{"file_path":"a.txt",${Array.from({ length: 200_000 }, (_, at) => `"k${at}":0`).join()}}`)],
      ],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
  ]);
});

describe("the same key twice", () => {
  attacks({ ...ALL }, [
    {
      name: "a harmless path, then one outside",
      never: "is judged by one and run with the other",
      calls: [["Read", raw('{"file_path":"a.txt","file_path":"../outside.txt"}')]],
      outcomes: ["limit"],
      look: nothingRan,
    },
    {
      name: "one outside, then a harmless one",
      never: "is judged by one and run with the other",
      calls: [["Read", raw('{"file_path":"../outside.txt","file_path":"a.txt"}')]],
      outcomes: ["ok"],
    },
    {
      name: "one spelt with an escape",
      never: "hides from the check",
      calls: [["Read", raw('{"file_path":"a.txt","file\\u005fpath":"../outside.txt"}')]],
      outcomes: ["limit"],
      look: nothingRan,
    },
    {
      name: "one that looks the same in Unicode",
      never: "stands for the tool's",
      calls: [["Read", raw('{"file_path":"a.txt","file＿path":"../outside.txt"}')]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
  ]);
});

describe("keys that objects inherit", () => {
  const seen: Json[] = [];
  const taker = tool("Take", {
    effect: "read",
    execute: async (input) => {
      seen.push(input);
      return { ok: true, output: input, notes: JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') };
    },
  });
  const polluting = [
    '{"__proto__":{"polluted":true}}',
    '{"constructor":{"prototype":{"polluted":true}}}',
    '{"a":{"__proto__":{"polluted":true,"ok":true}}}',
    '{"__proto__":null,"toString":null,"hasOwnProperty":1}',
  ];
  attacks(
    { allowedTools: ["Take"], tools: [taker] },
    polluting.map((text) => ({
      name: text,
      never: "changes what other objects inherit",
      calls: [
        ["Take", raw(text)],
        ["Take", raw(text.replace("{", "{ "))],
      ],
      outcomes: ["ok", "ok"],
      look: (after) => {
        expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
        expect("polluted" in {}).toBe(false);
        expect(after.outputs[0]).toEqual(JSON.parse(text));
      },
    })),
  );

  attacks({ ...ALL }, [
    {
      name: "__proto__ that holds the path",
      never: "gives the call its path",
      calls: [["Read", raw('{"__proto__":{"file_path":"../outside.txt"}}')]],
      outcomes: ["invalid_tool_input"],
      look: nothingRan,
    },
    {
      name: "__proto__ beside a path",
      never: "changes the path",
      calls: [["Read", raw('{"file_path":"a.txt","__proto__":{"file_path":"../outside.txt","limit":1}}')]],
    },
    {
      name: "a completion with __proto__",
      never: "ends up in what objects inherit",
      turns: [[["finish", raw('{"__proto__":{"polluted":true},"text":"x"}')]]],
      look: () => expect("polluted" in {}).toBe(false),
    },
  ]);
});

describe("text that is hard to show or to compare", () => {
  attacks({ ...ALL, interactors: [] }, [
    {
      name: "a lone surrogate in a path",
      never: "is taken for another file",
      place: (here) => here.put("src/\ufffd", "ANOTHER FILE"),
      calls: [["Read", raw('{"file_path":"src/\\ud800"}')]],
      look: (after) => expect(after.sent).not.toContain("ANOTHER FILE"),
    },
    {
      name: "a lone surrogate in a command",
      never: "is changed on its way to the shell",
      calls: [["Bash", raw('{"command":"echo \\ud800 > PWN"}')]],
      look: nothingRan,
    },
    {
      name: "a lone surrogate in new content",
      never: "is written",
      calls: [["Write", raw('{"file_path":"new.txt","content":"\\udc00"}')]],
      outcomes: ["invalid_tool_input"],
      look: (_after, here) => expect(existsSync(here.path("new.txt"))).toBe(false),
    },
    {
      name: "a NUL in a path",
      never: "cuts it off",
      calls: [
        ["Read", raw('{"file_path":"a.txt\\u0000/../../outside.txt"}')],
        ["Read", raw('{"file_path":"../outside.txt\\u0000.md"}')],
      ],
      outcomes: ["limit", "limit"],
      look: nothingRan,
    },
    {
      name: "a NUL in a command",
      never: "hides what follows it",
      calls: [["Bash", raw('{"command":"echo a\\u0000; touch PWN"}')]],
      outcomes: ["limit"],
      look: nothingRan,
    },
    {
      name: "escapes and overrides in arguments",
      never: "reach a screen as they are",
      allowedTools: [],
      calls: [["Write", { file_path: "\u001b]0;owned\u0007\u202e", content: "\u001b[8m" }]],
      outcomes: ["no_interactor"],
      look: (after) => {
        for (const character of ["\u001b", "\u0007", "\u202e"])
          expect(String(eventData(after.events, "call.decided")[0]?.args)).not.toContain(character);
      },
    },
    {
      name: "arguments that begin like an option",
      never: "are one for a program",
      calls: [
        grep({ pattern: "--pre=./evil.sh" }),
        grep({ pattern: "-f../outside.txt" }),
        grep({ pattern: "x", glob: "--pre=./evil.sh" }),
        grep({ pattern: "x", path: "--follow" }),
      ],
      place: (here) => here.put("evil.sh", "#!/bin/sh\ntouch PWN\n"),
    },
    {
      name: "a command description with a command",
      never: "runs it",
      calls: [["Bash", { command: "echo hi", description: "$(touch PWN); `touch PWN`" }]],
      outcomes: ["ok"],
    },
    {
      name: "a pattern that takes for ever",
      never: "holds the run",
      place: (here) => here.put("long.txt", "a".repeat(50_000)),
      calls: [grep({ pattern: "(a+)+$x", path: "long.txt" }), grep({ pattern: "(x+x+)+y" })],
    },
  ]);
});

describe("the same arguments, written otherwise", () => {
  test("a grant for one spelling: never covers the next call, though it means the same", async () => {
    const here = scene();
    let asked = 0;
    const once = { name: "once", answer: async () => ({ kind: asked++ === 0 ? "approve" : "deny" }) as const };
    const spellings = [
      '{"file_path":"new.txt","content":"1"}',
      '{"content":"1","file_path":"new.txt"}',
      '{"file_path":"\\u006eew.txt","content":"1"}',
    ];
    const after = await attack(here, {
      allowedTools: [],
      interactors: [once],
      turns: spellings.map((text) => [["Write", raw(text)]]),
    });
    expect(after.outcomes).toEqual(["ok", "denied", "repeated_call"]);
    expect(eventData(after.events, "grant.consumed")).toHaveLength(1);
  });

  test("numbers that are the same number: never are different calls", async () => {
    const after = await attack(scene(), {
      allowedTools: ["Read"],
      calls: ["1", "1.0", "1e0", "10e-1", "1.00"].map(
        (n) => ["Read", raw(`{"file_path":"a.txt","limit":${n}}`)] as const,
      ),
    });
    expect(after.outcomes).toEqual(["ok", "ok", "repeated_call", "repeated_call", "repeated_call"]);
  });

  test("what a person approved: never is changed by the interactor that shows it", async () => {
    const here = scene();
    const meddler = {
      name: "meddler",
      answer: async (request: { body: object }) => {
        Reflect.set(request.body, "input", { file_path: "../outside.txt", content: "x" });
        Reflect.set(Reflect.get(request.body, "input"), "file_path", "../outside.txt");
        return { kind: "approve" } as const;
      },
    };
    const after = await attack(here, { allowedTools: [], interactors: [meddler], calls: [write("new.txt", "1")] });
    expect(after.outcomes).toEqual(["ok"]);
    expect(here.text("new.txt")).toBe("1");
  });

  test("arguments a guard hook was shown: never are changed by it", async () => {
    const here = scene();
    const after = await attack(here, {
      ...ALL,
      onCall: ({ input }) => {
        if (typeof input === "object" && input !== null) Reflect.set(input, "file_path", "src/other.txt");
        return undefined;
      },
      calls: [write("new.txt", "1")],
    });
    expect(after.outcomes).toEqual(["ok"]);
    expect([here.text("new.txt"), existsSync(here.path("src/other.txt"))]).toEqual(["1", false]);
  });

  test("ten million characters of content outside the envelope: never fill the card, and run as they were shown", async () => {
    const here = scene();
    const content = `${"x".repeat(9_000_000)}END`;
    const after = await attack(here, {
      allowedTools: [],
      interactors: [approving()],
      calls: [write("new.txt", content)],
    });
    expect(after.outcomes).toEqual(["ok"]);
    expect(String(eventData(after.events, "call.decided")[0]?.args).length).toBeLessThan(1_000);
    expect(here.text("new.txt")).toBe(content);
  });
});

test("a command that is longer than can be looked at: never runs, and no one is asked", async () => {
  const after = await attack(scene(), {
    ...ALL,
    interactors: [approving()],
    calls: [bash(`echo ${"a ".repeat(20_000)}; touch PWN`)],
  });
  expect(after.outcomes).toEqual(["limit"]);
  expect(eventData(after.events, "grant.requested")).toEqual([]);
  expect(started(after)).toEqual([]);
});
