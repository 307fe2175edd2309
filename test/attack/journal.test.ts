import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createHost, createMemoryJournals, verifyJournal } from "@sluice/core/host";
import { openJournalStore, sqliteHost } from "@sluice/sqlite";
import { describe, expect, test } from "vitest";
import {
  type Attack,
  type Attacked,
  approving,
  attack,
  attacks,
  bash,
  type Call,
  eventData,
  grep,
  type Row,
  raw,
  read,
  type Scene,
  scene,
  write,
} from "../support/attack.ts";
import { tool } from "../support/run-kit.ts";
import { finish, part } from "../support/stream-model.ts";

const KEY = "zq7Kp2mW9xV4tR8nB3cL6yD1";
const PATH = process.env.PATH;
const secretly = {
  allowedTools: ["Read", "Bash", "Grep", "Write"],
  env: { PATH, SOME_API_KEY: KEY, AUTH_HEADER: `Bearer ${KEY}` },
} as const;
const stored = (here: Scene): Attack => ({ host: () => sqliteHost(here.path(".sluice/store")) });
/** A known secret is nowhere: not in the record, not in what is shown, not in what the model was sent after it said it. */
const nowhere = (after: Attacked): void => {
  for (const text of [after.recorded, after.shown, after.sent]) expect(text).not.toContain(KEY);
};

describe("a known key", () => {
  const holding = (here: Scene): void => {
    here.put("key.txt", `key=${KEY}\n`);
  };
  const row = (name: string, more: Partial<Row>): Row => ({
    name,
    never: "reaches record, screen or provider",
    place: holding,
    look: nowhere,
    made: stored,
    ...more,
  });
  attacks(secretly, [
    row("in a file that is read", {
      calls: [read("key.txt"), grep({ pattern: "key=", output_mode: "content" }), bash("cat key.txt")],
      outcomes: ["ok", "ok", "ok"],
    }),
    row("in what a command prints", {
      calls: [bash('echo "$SOME_API_KEY$AUTH_HEADER"'), bash("printenv"), bash("env"), bash("export -p"), bash("set")],
    }),
    row("in arguments of a call", {
      calls: [bash(`echo ${KEY}`), write("new.txt", KEY), ["Read", { file_path: KEY }]],
    }),
    row("in arguments, escaped", {
      calls: [
        [
          "Bash",
          raw(
            `{"command":"echo ${Array.from(KEY)
              .map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)
              .join("")}"}`,
          ),
        ],
      ],
    }),
    row("in arguments that cannot be read", {
      calls: [
        ["Bash", raw(`{"command":"echo ${KEY}"`)],
        ["Bash", raw(`{"command":"echo \\u007${KEY}`)],
      ],
    }),
    row("as the name of a tool, an id or a key", {
      turns: [
        {
          parts: [
            part({ type: "tool-call", toolCallId: KEY, toolName: KEY, input: `{"${KEY}":"${KEY}"}` }),
            finish("tool-calls"),
          ],
        },
      ],
    }),
    row("in text and reasoning", {
      turns: [
        {
          parts: [
            part({ type: "text-delta", id: "1", delta: KEY.slice(0, 9) }),
            part({ type: "text-delta", id: "1", delta: KEY.slice(9) }),
            part({ type: "reasoning-delta", id: "2", delta: KEY }),
            finish("stop"),
          ],
        },
      ],
    }),
    row("in what a person answers", {
      allowedTools: ["AskUser"],
      interactors: [{ name: "person", answer: async () => ({ kind: "value", value: `it is ${KEY}` }) }],
      calls: [["AskUser", { question: "What is the key?" }]],
      outcomes: ["ok"],
    }),
    row("in a person's reason", {
      allowedTools: [],
      interactors: [{ name: "person", answer: async () => ({ kind: "deny", reason: `not with ${KEY}` }) }],
      calls: [write("x")],
      outcomes: ["denied"],
    }),
    row("in a veto", { onCall: () => ({ veto: `no ${KEY}` }), calls: [read("a.txt")], outcomes: ["hook"] }),
    row("in what a hook throws", {
      onCall: () => {
        throw new Error(`no ${KEY}`);
      },
      calls: [read("a.txt")],
      outcomes: ["hook"],
    }),
    row("in what a tool returns, notes and throws", {
      allowedTools: ["Own", "Bad"],
      tools: [
        tool("Own", {
          execute: async () => ({
            ok: true,
            output: { [KEY]: KEY },
            full: KEY,
            notes: { [KEY]: KEY },
            facts: { [KEY]: KEY },
          }),
        }),
        tool("Bad", { execute: () => Promise.reject(new Error(KEY)), subjects: () => [] }),
      ],
      calls: [
        ["Own", {}],
        ["Bad", {}],
      ],
      outcomes: ["ok", "tool_failed"],
    }),
    row("in what a tool says it touches", {
      allowedTools: [],
      tools: [
        tool("Own", { subjects: () => [{ kind: "opaque", reason: `it needs ${KEY}` }] }),
        tool("Bad", {
          subjects: () => {
            throw new Error(KEY);
          },
        }),
      ],
      calls: [
        ["Own", {}],
        ["Bad", {}],
      ],
    }),
    row("in the task", { task: `deploy with ${KEY}` }),
    row("in a pattern that fails", { calls: [grep({ pattern: `(${KEY}` }), ["Glob", { pattern: `/${KEY}` }]] }),
  ]);
  test("streamed in pieces to a listener: never is heard", async () => {
    const here = scene();
    const pieces = Array.from(KEY).map((delta) => part({ type: "text-delta", id: "1", delta }));
    const after = await attack(here, { ...secretly, turns: [{ parts: [...pieces, finish("stop")] }] });
    nowhere(after);
  });
});

describe("text that looks like a key no one named", () => {
  const looks: Readonly<Record<string, string>> = {
    "a provider's key": `sk-ant-${"a1B2c3D4e5".repeat(4)}`,
    "a token of a forge": `ghp_${"a1B2c3D4e5".repeat(4)}`,
    "a cloud's key": "AKIAIOSFODNN7EXAMPLE",
    "a bearer header": `Authorization: Bearer ${"a1B2c3D4e5".repeat(3)}`,
    "a password in a URL": "postgres://app:correct-horse-battery@db/x",
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----",
  };
  attacks(
    { allowedTools: ["Bash"], interactors: [] },
    Object.entries(looks).map(
      ([name, text]): Row => ({
        name: `${name}, in arguments`,
        never: "stands in events",
        calls: [
          bash(`echo '${text}'`),
          ["Write", { file_path: "x", content: text, password: text }],
          ["Nope", { token: text, nested: { api_key: text } }],
        ],
        look: (after) => {
          const secret = text.split(/[\n ]/).at(-1) ?? text;
          expect(after.shown).not.toContain(secret.replace("-----END", "MIIEabc").slice(0, 40));
          if (name !== "a private key") expect(after.shown).not.toContain(text);
        },
      }),
    ),
  );
});

describe("arguments and results that are hard to write down", () => {
  const odd: readonly (readonly [string, Call])[] = [
    ["lone surrogates", ["Take", raw('{"a":"\\ud800","\\udfff":1}')]],
    ["NULs and controls", ["Take", { a: "\0\u0001\u001f\u007f\u0085\u2028\u2029" }]],
    ["quotes and SQL", ["Take", { a: "'; DROP TABLE records; --", '"': "\\" }]],
    ["numbers at the edge", ["Take", raw('{"a":1e308,"b":5e-324,"c":-0,"d":9007199254740993,"e":0.1}')]],
    ["__proto__", ["Take", raw('{"__proto__":{"a":1},"constructor":null}')]],
    ["letters of every plane", ["Take", { a: "é🜲\u{10ffff}\ufeff\u202e", é: 1, "e\u0301": 2 }]],
    ["three hundred kilobytes", ["Take", { a: "x".repeat(300_000) }]],
  ];
  test.each(odd)("%s: never breaks the chain, nor what a store gives back", async (_name, call) => {
    const here = scene();
    const after = await attack(here, {
      ...stored(here),
      allowedTools: ["Take"],
      tools: [tool("Take", { execute: async (input) => ({ ok: true, output: input }) })],
      calls: [call],
    });
    await after.live.close();
    const again = sqliteHost(here.path(".sluice/store"), { readOnly: true });
    const journals = await again.journal(after.result.runId);
    expect(verifyJournal(journals).faults).toEqual([]);
    await again.close();
  });
});

describe("a store that was changed", () => {
  /** Ends a run, changes its database, and says whether that is found. */
  async function tampered(change: string): Promise<readonly unknown[]> {
    const here = scene();
    const after = await attack(here, {
      ...stored(here),
      allowedTools: ["Read"],
      interactors: [approving()],
      calls: [read("a.txt"), write("new.txt")],
    });
    await after.live.close();
    const db = new DatabaseSync(here.path(".sluice/store/journal.db"));
    expect(db.prepare(change).run().changes).not.toBe(0);
    db.close();
    const again = sqliteHost(here.path(".sluice/store"), { readOnly: true });
    try {
      return verifyJournal(await again.journal(after.result.runId)).faults;
    } catch (thrown) {
      return [thrown];
    } finally {
      await again.close();
    }
  }
  test.each([
    [
      "a verdict is turned",
      "UPDATE records SET value = replace(value, 'approved', 'refused') WHERE value LIKE '%approved%'",
    ],
    [
      "who answered is another",
      "UPDATE records SET events = replace(events, 'approving', 'another') WHERE events LIKE '%approving%'",
    ],
    ["a record is gone", "DELETE FROM records WHERE place = (SELECT place FROM records LIMIT 1 OFFSET 3)"],
    ["the last record is gone", "DELETE FROM records WHERE place = (SELECT max(place) FROM records)"],
    ["a step is another's", "UPDATE records SET step_id = 'work#1/a1/turn/9/call' WHERE step_id LIKE '%/call'"],
    ["a record is said to be of another process", "UPDATE records SET incarnation = 'x' WHERE phase = 'done'"],
    ["the end says another output", "UPDATE runs SET end_value = '\"other\"' WHERE end_value IS NOT NULL"],
  ])("%s: never goes unfound", async (_name, change) => {
    expect(await tampered(change)).not.toEqual([]);
  });
});

test("a store that is full: never lets a call run whose record is missing", async () => {
  const here = scene();
  const store = createMemoryJournals().connect();
  let written = 0;
  const full = {
    ...store,
    append: (commit: Parameters<typeof store.append>[0]) => {
      written += 1;
      if (written > 4) throw new Error("disk full");
      return store.append(commit);
    },
  };
  await expect(
    attack(here, { allowedTools: ["Write"], host: createHost(full), calls: [write("new.txt")] }),
  ).rejects.toThrow();
  expect(() => here.text("new.txt")).toThrow();
});

test("a backup made while a run is at work: never holds a secret or a broken chain", async () => {
  const here = scene();
  here.put("key.txt", KEY);
  const after = await attack(here, { ...secretly, ...stored(here), calls: [read("key.txt")] });
  await after.live.close();
  const target = join(here.outer, "ws", "backup");
  const store = openJournalStore(here.path(".sluice/store"));
  store.backupTo(target);
  await store.close();
  expect(readFileSync(join(target, "journal.db")).includes(KEY)).toBe(false);
  writeFileSync(join(target, "x"), "");
  expect(eventData(after.events, "run.finished")).toHaveLength(1);
});
