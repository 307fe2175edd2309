/** A bug that is put into a copy of the sources: each text stands there once, and becomes the other. */
export interface Bug {
  readonly name: string;
  /** The rule it breaks, by its number in README.md beside this. */
  readonly rule: string;
  /** Where it shows: after a kill at a place, or where a process was presumed dead. */
  readonly shows: "zombie" | { readonly at: string; readonly changed?: true };
  /** Below packages/. */
  readonly file: string;
  readonly changes: readonly (readonly [text: string, instead: string])[];
}

const RUNNER = "core/src/journal/host/step-runner.ts";
const RUN_CALL = "core/src/run/tool-calls/execute-tool-call.ts";
const WRITER = "sqlite/src/writer.ts";

export const BUGS: readonly Bug[] = [
  {
    name: "ordinals-unchecked",
    shows: { at: "works main/fan/b/fan/b write", changed: true },
    rule: "2",
    file: "core/src/journal/host/recorded-steps.ts",
    changes: [["if (known.stepId !== stepId) throw mismatch(ordinal, known.stepId, stepId);", ""]],
  },
  {
    name: "decided-again",
    shows: { at: "Ledger acted" },
    rule: "2",
    file: "core/src/run/tool-calls/record-verdicts.ts",
    changes: [
      [
        'const recorded = await journal.run(stepNames.calls(groupId, "verdicts"), decide, { decides: decidesVerdict });',
        'let recorded = await journal.run(stepNames.calls(groupId, "verdicts"), decide, { decides: decidesVerdict }); if (decidedHere.length === 0) recorded = await decide({ event: () => undefined } as never);',
      ],
    ],
  },
  {
    name: "changed-pipeline-continues",
    shows: { at: "Long works", changed: true },
    rule: "9",
    file: "stages/src/session/session.ts",
    changes: [
      [
        "const comparison = comparePipeline(spec, runId, journals, options, preparation.clean);",
        "const comparison = comparePipeline(spec, runId, journals, { ...options, allowChanged: true }, preparation.clean);",
      ],
    ],
  },
  {
    name: "sleep-recorded-before-it-is-slept",
    shows: { at: "sleeps main draft#1/a1/precondition/1/now" },
    rule: "3",
    file: RUNNER,
    changes: [
      ["await waitForSignal(this.#run, { until: epochMs });", "mine = true;"],
      [
        "sleepUntil(stepId: string, epochMs: number): Promise<void> {\n    return this.#step",
        "sleepUntil(stepId: string, epochMs: number): Promise<void> {\n    let mine = false;\n    const slept = () => (mine ? waitForSignal(this.#run, { until: epochMs }) : undefined);\n    const then = (done: Promise<void>) => done.then(slept);\n    return then(this.#step",
      ],
      ["hand: ignore,\n    });", "hand: ignore,\n    }));"],
    ],
  },
  {
    name: "call-recorded-before-it-acts",
    shows: { at: "after main/fan-1/docs done docs#1/a1/turn/1/1/call" },
    rule: "3",
    file: RUN_CALL,
    changes: [
      [
        "? authorization.execute(call)",
        '? (runnable.call.tool === "Post" ? (setImmediate(() => void authorization.execute(call)), Promise.resolve({ ok: true, output: "sent" })) : authorization.execute(call))',
      ],
    ],
  },
  {
    name: "open-record-after-the-effect",
    shows: { at: "Post acted" },
    rule: "4",
    file: RUNNER,
    changes: [
      [
        "openRecord === undefined ? step.open && this.#commitOpen(ordinal, step) : readOpenRecord(openRecord);",
        "openRecord === undefined ? undefined : readOpenRecord(openRecord);",
      ],
      [
        "step.call?.close();\n      const { text, value }",
        "step.call?.close();\n      if (openRecord === undefined && step.open) await this.#commitOpen(ordinal, step);\n      const { text, value }",
      ],
    ],
  },
  {
    name: "foreign-call-repeated",
    shows: { at: "after rename 1 a.txt" },
    rule: "4",
    file: RUN_CALL,
    changes: [
      [
        "if (step.opened !== undefined && step.opened.incarnation !== step.incarnation) {",
        'if (step.opened?.incarnation === "never") {',
      ],
    ],
  },
  {
    name: "unknown-counted-as-done",
    shows: { at: "Post acted" },
    rule: "4",
    file: RUN_CALL,
    changes: [
      [
        'if (tool?.recover === undefined || intent === undefined) return "unknown";',
        'if (tool?.recover === undefined || intent === undefined) return "done";',
      ],
    ],
  },
  {
    name: "survivors-not-killed",
    shows: { at: "the command of lint.log works" },
    rule: "4",
    file: RUN_CALL,
    changes: [["await deps.endSurvivors?.(call.idempotencyKey);", ""]],
  },
  {
    name: "announcements-repeated",
    shows: { at: "Post acted" },
    rule: "5",
    file: RUNNER,
    changes: [
      [
        "const own = step.call?.events ?? step.events?.(value) ?? NO_EVENTS;",
        "const own = openRecord === undefined ? (step.call?.events ?? step.events?.(value) ?? NO_EVENTS) : [...(step.open?.events ?? []), ...(step.call?.events ?? step.events?.(value) ?? [])];",
      ],
    ],
  },
  {
    name: "append-without-the-fence",
    shows: "zombie",
    rule: "6",
    file: WRITER,
    changes: [["AND t.epoch = ? AND t.owner = ?)", "AND (t.epoch = ? OR 1) AND (t.owner = ? OR 1))"]],
  },
  {
    name: "early-answer-lost",
    shows: { at: "waits main request/plan#1/a1/t2.c1" },
    rule: "6",
    file: RUNNER,
    changes: [
      [
        "found ??= (await store.signals(this.runId, name))[this.#takenSoFar(name)];",
        "found ??= (await store.signals(this.runId, name)).filter(({ at }) => at >= performance.timeOrigin)[this.#takenSoFar(name)];",
      ],
    ],
  },
  {
    name: "two-answers-accepted",
    shows: { at: "Long works" },
    rule: "6",
    file: WRITER,
    changes: [
      ["addSignal.run(runNo, message.name, answers, received);", "addSignal.run(runNo, message.name, null, received);"],
    ],
  },
  {
    name: "message-consumed-twice",
    shows: { at: "prompt wrap#1/a1 enter" },
    rule: "6",
    file: RUNNER,
    changes: [
      [
        "for (const { name, count } of takes) this.#take",
        "for (const { name, count } of call === undefined ? [] : takes) this.#take",
      ],
    ],
  },
  {
    name: "dead-owner-counts-as-live",
    shows: { at: "Post acted" },
    rule: "7",
    file: "sqlite/src/owners.ts",
    changes: [["return isLocked(file, 0) && isLocked(file, RECHECK_MS);", "return mayExist(file);"]],
  },
  {
    name: "blob-after-its-record",
    shows: { at: "after main done long" },
    rule: "8",
    file: "sqlite/src/blobs.ts",
    changes: [
      ["      put();\n      const confirm", "      setImmediate(put);\n      const confirm"],
      ["if (!existsSync(join(folder, digest))) put();", ""],
    ],
  },
  {
    name: "sibling-restarts",
    shows: { at: "Post acted" },
    rule: "1",
    file: "core/src/journal/host/run-children.ts",
    changes: [
      [
        "return { at: { runId: childId, epoch, incarnation, seq, head }, ...resumed };",
        "return { at: { runId: childId, epoch, incarnation, seq, head }, ...resumed, recorded: NO_RECORDED_STEPS };",
      ],
    ],
  },
  {
    name: "finished-sibling-forgotten",
    rule: "1",
    shows: { at: "before main done fan-1" },
    file: "core/src/journal/host/run-children.ts",
    changes: [["else onEnd(child.key, end);", ""]],
  },
  {
    name: "join-before-a-siblings-end",
    shows: { at: "Post acted" },
    rule: "1",
    file: "core/src/journal/host/run-children.ts",
    changes: [
      [
        "if (reason === undefined) works.push(work(child.key, opened));",
        "if (reason === undefined && fresh) works.push(work(child.key, opened));\n      else if (reason === undefined) void work(child.key, opened);",
      ],
    ],
  },
];
