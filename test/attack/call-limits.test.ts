import { symlinkSync } from "node:fs";
import { done, field, type GuardHook, type Json, pipeline, type StateLimits, stage } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import type { RunHandle } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type Attack,
  approving,
  attack,
  bash,
  type Call,
  edit,
  eventData,
  read,
  type Scene,
  scene,
  started,
  write,
} from "../support/attack.ts";
import { handClock } from "../support/hand-clock.ts";
import { eventsOf, session, type TestSession, tool } from "../support/run-kit.ts";
import { calling, failingAt, working } from "../support/stopped-runs.ts";
import { hasWall } from "../support/walls.ts";

// A stage with hard limits that count, whose model tries to do more. A person approves every request: none may be made for a call
// beyond a limit.

const WRITING = ["Read", "Edit", "Write", "Bash"];
const lines = (count: number, text = "x"): string => `${text}\n`.repeat(count);

/** A stage that may write everything, within these limits. */
function limited(limits: StateLimits, calls: readonly Call[], more: Partial<Attack> = {}): Attack {
  return { allowedTools: WRITING, limits, calls, interactors: [approving()], ...more };
}

function reasons(outputs: readonly Json[]): readonly (string | undefined)[] {
  return outputs.map((output) => {
    const reason = field(output, "reason");
    return typeof reason === "string" ? reason : undefined;
  });
}

describe("a limit on edited lines", () => {
  test("counts the larger of removed and added lines over all calls, and says limit, used and asked", async () => {
    const place = scene();
    place.put("big.txt", lines(30, "old"));
    const { outcomes, outputs, events } = await attack(
      place,
      limited({ maxEditLines: 10 }, [
        write("new.txt", lines(4)),
        read("big.txt"),
        // 30 lines removed, 1 added.
        write("big.txt", "short\n"),
        // 6 more lines fit exactly.
        write("other.txt", lines(6)),
        write("last.txt", "one\n"),
      ]),
    );
    expect(outcomes).toEqual(["ok", "ok", "limit", "ok", "limit"]);
    expect(reasons(outputs)[2]).toBe("this stage may edit 10 lines: 4 are used, and this call would edit 30");
    expect(reasons(outputs)[4]).toBe("this stage may edit 10 lines: 10 are used, and this call would edit 1");
    expect(place.text("big.txt")).toBe(lines(30, "old"));
    expect(eventData(events, "grant.requested")).toEqual([]);
  });

  test("counts a Write against the file that is there: unchanged lines are no edits", async () => {
    const place = scene();
    place.put("big.txt", lines(300, "old"));
    const { outcomes } = await attack(
      place,
      limited({ maxEditLines: 2 }, [read("big.txt"), write("big.txt", `${lines(299, "old")}new\n`)]),
    );
    expect(outcomes).toEqual(["ok", "ok"]);
    expect(place.text("big.txt").endsWith("old\nnew\n")).toBe(true);
  });

  test("counts every occurrence that an Edit replaces", async () => {
    const place = scene();
    place.put("many.txt", lines(8, "again"));
    const all: Call = ["Edit", { file_path: "many.txt", old_string: "again", new_string: "once", replace_all: true }];
    const { outcomes, outputs } = await attack(place, limited({ maxEditLines: 7 }, [read("many.txt"), all]));
    expect(outcomes).toEqual(["ok", "limit"]);
    expect(reasons(outputs)[1]).toContain("would edit 8");
  });

  test("does not count calls that fail, that are denied, or that change nothing", async () => {
    const place = scene();
    place.put("a.txt", lines(5, "same"));
    const { outcomes } = await attack(
      place,
      limited({ maxEditLines: 5 }, [
        // No call has read it.
        write("a.txt", lines(5)),
        read("a.txt"),
        edit("a.txt", "nowhere", lines(9)),
        write("a.txt", lines(6)),
        write("a.txt", lines(5, "same")),
        write("a.txt", lines(5)),
      ]),
    );
    expect(outcomes).toEqual(["stale_file", "ok", "old_string_not_found", "limit", "ok", "ok"]);
    expect(place.text("a.txt")).toBe(lines(5));
  });

  test("of one call holds for each call", async () => {
    const place = scene();
    const { outcomes, outputs } = await attack(
      place,
      limited({ maxLinesPerEdit: 3 }, [write("a/1", lines(3)), write("a/2", lines(4)), write("a/3", lines(3))]),
    );
    expect(outcomes).toEqual(["ok", "limit", "ok"]);
    expect(reasons(outputs)[1]).toContain("one call may edit 3 lines in this stage, and this call would edit 4");
  });

  test("holds for calls of one turn, in their order", async () => {
    const place = scene();
    const turns = [[write("a/1", lines(2)), write("a/2", lines(2)), write("a/3", lines(1))]];
    const { outcomes } = await attack(place, limited({ maxEditLines: 3 }, [], { turns }));
    expect(outcomes).toEqual(["ok", "limit", "ok"]);
  });
});

describe("a limit on files", () => {
  test("counts real paths: other spellings and links are the same file", async () => {
    const place = scene();
    place.put("src/one.txt", "1\n");
    symlinkSync("src", place.path("linked"));
    const spelled = ["src/one.txt", "./src/one.txt", "src//one.txt", place.path("src/one.txt"), "linked/one.txt"];
    const { outcomes, outputs } = await attack(
      place,
      limited({ maxFiles: 1 }, [
        read("src/one.txt"),
        ...spelled.map((path, at) => write(path, `${at}\n`)),
        write("src/two.txt"),
      ]),
    );
    expect(outcomes).toEqual(["ok", ...spelled.map(() => "ok"), "limit"]);
    expect(reasons(outputs).at(-1)).toBe("this stage may edit 1 file: 1 are used, and this call would edit 1 more");
  });

  test("counts an empty file, too", async () => {
    const { outcomes } = await attack(scene(), limited({ maxFiles: 1 }, [write("e/1", ""), write("e/2", "")]));
    expect(outcomes).toEqual(["ok", "limit"]);
  });
});

describe("in a stage that limits edits", () => {
  const writes = [
    "echo x > new.txt",
    "touch new.txt",
    "sed -i s/alpha/beta/ a.txt",
    "cp a.txt new.txt",
    "node -e 'require(`fs`).writeFileSync(`new.txt`, ``)'",
    "bash -c 'echo x > new.txt'",
    "npm test",
    "x=$(echo 1); echo $x > new.txt",
    "rm a.txt",
    "find . -name a.txt -delete",
    "git init -q sub",
  ];
  const reads = ["ls", "cat a.txt | head -3", "grep -rn alpha . | wc -l", "echo done > /dev/null"];

  test("a command without a sandbox runs only if it is known to only read; no one is asked", async () => {
    const place = scene();
    for (const rules of [WRITING, ["Read", "Edit", "Bash(npm test *)", "Bash(sed *)", "Bash(node *)"]]) {
      const { outcomes, events } = await attack(
        place,
        limited({ maxFiles: 3 }, writes.map(bash), { allowedTools: rules }),
      );
      expect(outcomes).toEqual(writes.map(() => "limit"));
      expect(eventData(events, "grant.requested")).toEqual([]);
    }
    const { outcomes } = await attack(place, limited({ maxEditLines: 1 }, reads.map(bash)));
    expect(outcomes).toEqual(reads.map(() => "ok"));
  });

  test("a line that only reads runs as it was judged, with the environment of a stage that may not write", async () => {
    const place = scene();
    const { outputs } = await attack(
      place,
      limited({ maxFiles: 1 }, [bash("ls nothing"), bash("git --version")], {
        env: { PATH: process.env.PATH, GIT_TRACE: place.path("PWN-trace") },
      }),
    );
    // With the path at which the program was found.
    expect(outputs).toEqual([
      expect.stringMatching(/^Exit code 2\n\/\S+\/ls: /),
      expect.stringContaining("git version"),
    ]);
  });

  test("no mode lets a command write", async () => {
    const { allowedTools: _none, ...free } = limited({ maxFiles: 1 }, writes.map(bash), { mode: "yolo" });
    const { outcomes } = await attack(scene(), free);
    expect(outcomes).toEqual(writes.map(() => "limit"));
  });

  test.skipIf(!hasWall())("a command in a sandbox runs, and can write nothing", async () => {
    const place = scene();
    const run = [...writes.slice(0, 6), "echo read only; cat a.txt"];
    const { outcomes, outputs } = await attack(
      place,
      limited({ maxEditLines: 100, maxFiles: 9 }, run.map(bash), { sandbox: "require" }),
    );
    expect(outcomes.slice(0, -1)).not.toContain("ok");
    expect(outputs.at(-1)).toBe("read only\nalpha\n");
    expect(place.text("a.txt")).toBe("alpha\n");
    expect(() => place.text("new.txt")).toThrow();
  });

  test.skipIf(!hasWall())("a granted command in a sandbox can write nothing", async () => {
    const place = scene();
    const { outputs, events } = await attack(
      place,
      limited({ maxFiles: 1 }, [bash("echo x > new.txt")], { sandbox: "require", allowedTools: ["Read"] }),
    );
    expect(eventData(events, "grant.answered")).toMatchObject([{ answer: "approve" }]);
    expect(JSON.stringify(outputs)).toContain("Read-only file system");
    expect(() => place.text("new.txt")).toThrow();
  });

  test("a tool that writes and does not measure its calls is denied", async () => {
    const tools = [tool("Deploy"), tool("Look", { effect: "read" })];
    const after = await attack(
      scene(),
      limited(
        { maxFiles: 1 },
        [
          ["Deploy", {}],
          ["Look", {}],
        ],
        { tools, allowedTools: ["Deploy", "Look"] },
      ),
    );
    expect(after.outcomes).toEqual(["limit", "ok"]);
    expect(reasons(after.outputs)[0]).toContain("Deploy does not report what its calls change");
    expect(started(after)).toEqual(["Look"]);
  });

  test.each([
    ["throws", () => Promise.reject(new Error("no idea"))],
    ["returns something else", () => JSON.parse('{"lines":1}')],
    ["returns less than no lines", () => [{ real: "/tmp/x", removed: -5, added: 0 }]],
    ["returns half a line", () => [{ real: "/tmp/x", removed: 0.5, added: 0 }]],
    ["returns no path", () => JSON.parse('[{"removed":1,"added":1}]')],
    ["returns a relative path", () => [{ real: "x", removed: 1, added: 1 }]],
  ])("a tool whose measure %s is denied", async (_what, measure) => {
    const tools = [tool("Deploy", { measure })];
    const after = await attack(
      scene(),
      limited({ maxFiles: 1 }, [["Deploy", {}]], { tools, allowedTools: ["Deploy"] }),
    );
    expect(after.outcomes).toEqual(["limit"]);
    expect(started(after)).toEqual([]);
  });

  test("a tool of one's own counts what it measures, over all its files", async () => {
    const measure: NonNullable<Parameters<typeof tool>[1]>["measure"] = (input) => {
      const files = Number(field(input, "files"));
      return Array.from({ length: files }, (_, at) => ({ real: `/ws/${at}`, removed: 2, added: 3 }));
    };
    const tools = [tool("Rename", { measure })];
    const call = (files: number): Call => ["Rename", { files }];
    const { outcomes } = await attack(
      scene(),
      limited({ maxFiles: 3, maxEditLines: 12 }, [call(4), call(3), call(2), call(1)], {
        tools,
        allowedTools: ["Rename"],
      }),
    );
    expect(outcomes).toEqual(["limit", "ok", "limit", "ok"]);
  });
});

test("a limit on tool calls counts those that ran, over all attempts", async () => {
  const place = scene();
  const { outcomes, outputs } = await attack(
    place,
    limited(
      { maxToolCalls: 2 },
      [read("nowhere"), ["Missing", {}], bash("rm -rf /etc/x"), read("a.txt"), read("secret.txt")],
      {
        allowedTools: ["Read"],
        interactors: [],
      },
    ),
  );
  expect(outcomes).toEqual(["not_found", "unknown_tool", "no_interactor", "ok", "limit"]);
  expect(reasons(outputs).at(-1)).toBe("this stage may run 2 tool calls, and 2 were run");
});

test("calls of one turn do not exceed a limit on tool calls together", async () => {
  const turns = [[read("a.txt"), read("docs/c.md"), read("src/b.ts"), write("x", "")]];
  const { outcomes } = await attack(scene(), limited({ maxToolCalls: 2 }, [], { turns }));
  expect(outcomes).toEqual(["ok", "ok", "limit", "limit"]);
});

describe("a limit on the bytes of results", () => {
  const tells: Call = ["Tell", {}];
  const telling = (output: Json, ok = true) => [
    tool("Tell", { effect: "read", execute: async () => ({ ok, output }) }),
  ];
  const bytes = async (output: Json, maxResultBytes: number, calls = 2, ok = true) =>
    await attack(scene(), {
      allowedTools: ["Tell"],
      tools: telling(output, ok),
      limits: { maxResultBytes },
      // Equal calls in a row are not run.
      calls: Array.from({ length: calls }, (_, at): Call => [tells[0], { at }]),
    });

  test("cuts what is beyond, says so, and keeps the whole result in the journal", async () => {
    const { outputs, recorded } = await bytes("abcdefghij", 15, 3);
    expect(outputs).toEqual([
      "abcdefghij",
      "abcde\n[This result was cut: the results of this stage may have 15 bytes together. Of 10 bytes, 5 are shown.]",
      "[This result was cut: the results of this stage may have 15 bytes together. Of 10 bytes, 0 are shown.]",
    ]);
    expect(recorded).toContain('"full":"abcdefghij"');
  });

  test("counts bytes of UTF-8 and never splits a character", async () => {
    const { outputs } = await bytes("\u{1F600}\u{1F600}", 11);
    expect(String(outputs[1]).split("\n")[0]).toBe(
      "[This result was cut: the results of this stage may have 11 bytes together. Of 8 bytes, 0 are shown.]",
    );
    expect((await bytes("\u{1F600}\u{1F600}", 13)).outputs[1]).toMatch(/^\u{1F600}\n\[This result was cut/u);
  });

  test("keeps the code of a typed error", async () => {
    const { outputs } = await bytes({ code: "no_luck", message: "x".repeat(500) }, 20, 1, false);
    expect(outputs).toEqual([{ code: "no_luck", message: expect.stringContaining("20 bytes together") }]);
  });

  test("cuts an object that is no typed error as text, whatever its code claims", async () => {
    const { outputs } = await bytes({ code: "x".repeat(5_000), list: [1, 2, 3] }, 30, 1);
    expect(String(outputs[0]).length).toBeLessThan(200);
    expect(outputs[0]).toMatch(/^\{"code":"x{21}\n\[This result was cut/);
  });

  test("holds for results of one turn, in their order", async () => {
    const turns = [[0, 1, 2].map((at): Call => ["Tell", { at }])];
    const { outputs } = await attack(scene(), {
      allowedTools: ["Tell"],
      tools: telling("12345678"),
      limits: { maxResultBytes: 12 },
      turns,
    });
    expect(outputs.map((output) => String(output).split("\n")[0]?.slice(0, 8))).toEqual([
      "12345678",
      "1234",
      "[This re",
    ]);
  });
});

describe("after a kill", () => {
  const calls: readonly Call[] = [write("a/1", lines(2)), write("a/2", lines(2)), write("a/3", lines(2)), read("a/1")];
  const limits: StateLimits = { maxEditLines: 5, maxToolCalls: 3, maxResultBytes: 50 };

  /** Runs until this record would be written, and resumes it in another process. */
  async function resumed(stopsAt: RegExp | undefined) {
    const place = scene();
    const memory = createMemoryJournals();
    const clock = handClock();
    const model = calling(calls);
    const known = working({ id: "limited", allowedTools: WRITING, limits });
    const start = session({
      cwd: place.root,
      model,
      clock,
      host: () =>
        createHost(stopsAt === undefined ? memory.connect() : failingAt(memory.connect(), stopsAt, "done"), { clock }),
    });
    const handle = start.start(known, { task: "x" });
    if (stopsAt === undefined) await handle;
    else await expect(handle).rejects.toMatchObject({ code: "store_io" });
    await start.host.close();
    const next = session({ cwd: place.root, model, clock, host: () => createHost(memory.connect(), { clock }) });
    if (stopsAt !== undefined) await next.resume(known, handle.runId);
    const events = await eventsOf(next.host, handle.runId);
    const decided = eventData(events, "call.decided").map(({ verdict, cause, result }) =>
      verdict === "approved" ? "approved" : `${String(cause)}: ${String(field(result ?? null, "reason"))}`,
    );
    const journals = await next.host.journal(handle.runId);
    const results = journals.flatMap(({ records }) =>
      records
        .filter(({ stepId, phase }) => stepId.endsWith("/call") && phase === "done")
        .map(({ value }) => {
          const ran: readonly Json[] = JSON.parse(value);
          return ran.map((one) => field(one, "bytes") ?? null);
        }),
    );
    return { decided, results };
  }

  test("a resumed run counts what was done before", async () => {
    const whole = await resumed(undefined);
    expect(whole.decided).toEqual([
      "approved",
      "approved",
      "limit: this stage may edit 5 lines: 4 are used, and this call would edit 2",
      "approved",
    ]);
    expect(whole.results).toEqual([[22], [22], [6]]);
    for (const stopsAt of [
      /turn\/2\/0\/verdicts$/,
      /turn\/2\/0\/call$/,
      /turn\/3\/0\/verdicts$/,
      /turn\/4\/0\/(?:verdicts|call)$/,
    ]) {
      const after = await resumed(stopsAt);
      expect(after.decided, String(stopsAt)).toEqual(whole.decided);
      // A call that is recovered has another result.
      if (stopsAt.source.endsWith("verdicts$")) expect(after.results).toEqual(whole.results);
    }
  });
});

describe("a call that was approved without limits and did not begin, in a run that is resumed with limits", () => {
  interface Lives {
    /** The step at which each process but the last one dies. */
    readonly dies: readonly [first: RegExp, ...later: RegExp[]];
    /** Of all processes but the first one. */
    readonly limits: StateLimits;
    readonly allowedTools?: readonly string[];
    readonly onCall?: GuardHook;
    /** Called when the first process has died. */
    readonly meanwhile?: () => void;
  }

  async function lives(place: Scene, calls: readonly Call[], given: Lives) {
    const { dies, limits, allowedTools = WRITING, onCall, meanwhile } = given;
    const options = { cwd: place.root, interactors: [approving()], ...(onCall === undefined ? {} : { onCall }) };
    const memory = createMemoryJournals();
    const clock = handClock();
    const model = calling(calls);
    const life = (store: JournalStore) => {
      const host = createHost(store, { clock });
      return session({ ...options, model, clock, host: () => host });
    };
    const dead = async (step: RegExp, begin: (live: TestSession) => RunHandle<string>) => {
      const live = life(failingAt(memory.connect(), step));
      const handle = begin(live);
      await expect(handle).rejects.toMatchObject({ code: "store_io" });
      await live.host.close();
      return handle.runId;
    };
    const free = working({ id: "limited", allowedTools });
    const now = working({ id: "limited", allowedTools, limits });
    const [first, ...later] = dies;
    const runId = await dead(first, (live) => live.start(free, { task: "x" }));
    meanwhile?.();
    for (const step of later) await dead(step, (live) => live.resume(now, runId, { allowChanged: true }));
    const last = life(memory.connect());
    await last.resume(now, runId, { allowChanged: true });
    const decided = eventData(await eventsOf(last.host, runId), "call.decided");
    return {
      refused: reasons(decided.map(({ result = null }) => result)),
      journal: JSON.stringify(await last.host.journal(runId)),
    };
  }

  test("is held to them", async () => {
    const place = scene();
    const { journal } = await lives(place, [write("a/1", lines(2))], {
      dies: [/\/call$/],
      limits: { maxEditLines: 1 },
    });
    expect(journal).toContain("this stage may edit 1 line: 0 are used, and this call would edit 2");
    expect(() => place.text("a/1")).toThrow("ENOENT");
  });

  test.each([
    ["the envelope", "", WRITING, []],
    ["the envelope", ", also after another resume", WRITING, [/turn\/2\/0\/verdicts$/]],
    ["a person", "", ["Read"], []],
    ["a person", ", also after another resume", ["Read"], [/turn\/2\/0\/verdicts$/]],
  ])("counts, approved by %s%s", async (_by, _also, allowedTools, more) => {
    const place = scene();
    const { refused } = await lives(place, [write("a/1", lines(2)), write("a/1", lines(4)), write("a/2", lines(1))], {
      dies: [/\/call$/, ...more],
      limits: { maxEditLines: 3, maxFiles: 1 },
      allowedTools,
    });
    expect(refused).toEqual([
      undefined,
      "this stage may edit 3 lines: 2 are used, and this call would edit 2",
      "this stage may edit 1 file: 1 are used, and this call would edit 1 more",
    ]);
    expect(place.text("a/1")).toBe(lines(2));
    expect(() => place.text("a/2")).toThrow("ENOENT");
  });

  test("cannot edit more than was counted", async () => {
    const place = scene();
    const { journal } = await lives(place, [read("a.txt"), edit("a.txt", "alpha", lines(9))], {
      dies: [/turn\/2\/0\/call$/],
      limits: { maxEditLines: 1 },
      // Called after the call was counted and before it runs.
      onCall: () => {
        place.put("a.txt", "alpha\n");
        return undefined;
      },
      meanwhile: () => place.put("a.txt", "other\n"),
    });
    expect(journal).toContain("stale_file");
    expect(place.text("a.txt")).toBe("alpha\n");
  });
});

test("a call that would fail when it is counted may not succeed when it runs", async () => {
  const place = scene();
  const { outcomes } = await attack(place, {
    ...limited({ maxEditLines: 1 }, [read("a.txt"), ["Glob", { pattern: "*" }], edit("a.txt", "alpha", lines(9))]),
    allowedTools: [...WRITING, "Glob"],
    // Called after a call was counted and before it runs.
    stageHook: ({ tool: name }) => {
      if (name === "Glob") place.put("a.txt", "other\n");
      if (name === "Edit") place.put("a.txt", "alpha\n");
      return undefined;
    },
  });
  expect(outcomes).toEqual(["ok", "ok", "stale_file"]);
  expect(place.text("a.txt")).toBe("alpha\n");
});

test("attempts share what they used", async () => {
  const place = scene();
  const seen: number[] = [];
  const finishing: Call = ["finish", { text: "done" }];
  const work = stage({
    prompt: "Work.",
    allowedTools: WRITING,
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 3,
    limits: { maxEditLines: 3 },
    assert: (_result, { attempt }) => (attempt === 1 ? { retry: "again" } : "ok"),
    onCall: ({ attempt }) => {
      seen.push(attempt);
      return undefined;
    },
  });
  const twice = pipeline({
    id: "twice",
    input: z.object({ task: z.string() }),
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output.text) },
  });
  const live = session({
    cwd: place.root,
    model: calling([write("a/1", lines(2)), finishing, write("a/2", lines(2))]),
  });
  const handle = live.start(twice, { task: "x" });
  expect((await handle).status).toBe("completed");
  const decided = eventData(await eventsOf(live.host, handle.runId), "call.decided");
  expect(decided.map(({ verdict, cause }) => cause ?? verdict)).toEqual(["approved", "limit"]);
  expect(seen).toEqual([1]);
});
