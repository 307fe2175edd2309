import { fileOf } from "./fixtures.ts";
import { appends, finishes, sends, type Turns, turn, writes } from "./script.ts";

/** The command, in the folder of a case. */
export interface Recording {
  /** Writes a file of the workspace. */
  put(file: string, text: string): void;
  /** Writes a script and returns its model's id. */
  script(turns: Turns): string;
  /** Runs a command to its end, and returns what it printed; another exit code than this one is an error. */
  sluice(args: readonly string[], code?: number): Promise<string>;
  /** Starts a command that kills itself with SIGKILL at this place. */
  killed(place: string, args: readonly string[]): Promise<void>;
  /** Starts a command, which kills itself with SIGKILL at this place, if one is given. */
  start(args: readonly string[], place?: string): Running;
}
export interface Running {
  /** Waits until it prints this, after the last match. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Writes a line to its stdin. */
  write(line: string): void;
  /** Waits for its end, and returns what it printed; another exit code or signal than this one is an error. */
  ends(expected: number | "SIGKILL"): Promise<string>;
}

/** Commands run as they are, whether this machine can build a sandbox or not; siblings run one after the other. */
const FIXED = ["--sandbox", "off", "--max-parallel", "1"];
const run = (pipeline: string, task: string, model: string, ...more: readonly string[]): readonly string[] => [
  ...["run", `${fileOf(pipeline)}#${pipeline}`, task, "--model", model, ...FIXED, ...more],
];

const IN_TURN: Turns = {
  draft: [appends("drafted", "draft.txt"), finishes("the draft")],
  check: [appends("checked", "check.txt"), finishes("fine")],
};
const SIDE_BY_SIDE: Turns = {
  begin: [finishes("begun")],
  left: [appends("left", "left.txt"), finishes("gone left")],
  right: [appends("right", "right.txt"), finishes("gone right")],
  end: [appends("joined", "end.txt"), finishes("joined")],
};
/** In the second turn of the sibling that comes last. */
const IN_RIGHT = "after open right ^right#1/a1/turn/2/model$";
/** The line that answers a request: a run's id and the request's. */
const ASKS = /sluice answer (\S+) '([^']+)'/;

/** What each case records. `expected/` lists what it holds. */
export const CASES: Readonly<Record<string, (recording: Recording) => Promise<void>>> = {
  /** A command ran, and a poll sleeps after its first attempt. */
  async asleep({ script, sluice }) {
    await sluice(run("sleeping", "asleep", script({}), "--suspend-sleeps"), 3);
  },
  /** A question of a state, without an answer. */
  async asked({ script, sluice }) {
    await sluice(run("asked", "asked", script({}), "--wait=1ms"), 3);
  },
  /** Killed between the effect of a stage's call and the answer of its model. */
  async killed({ script, killed }) {
    await killed("after open . ^check#1/a1/turn/2/model$", run("inTurn", "killed", script(IN_TURN)));
  },
  /** Suspended by a refused key in the second turn of a stage, after a fault that passed. */
  async provider({ script, sluice }) {
    const [act, end] = IN_TURN.check ?? [];
    const busy = { status: 529, message: "busy", retryAfterMs: 1 };
    const refused = { status: 401, message: "invalid key" };
    const model = script({
      ...IN_TURN,
      check: [
        { ...act, errors: [busy] },
        { ...end, errors: [refused] },
      ],
    });
    await sluice(run("inTurn", "suspended by a provider", model), 3);
  },
  /** Killed when a file was written and not yet recorded. */
  async "killed-in-write"({ script, killed }) {
    const model = script({ ...IN_TURN, check: [writes("check.txt", "checked\n"), finishes("fine")] });
    await killed("before done . ^check#1/.*/call$", run("inTurn", "killed in a write", model));
  },
  /** Killed when a command had run and was not yet recorded. */
  async "outcome-unknown"({ script, killed }) {
    await killed("before done . ^check#1/.*/call$", run("inTurn", "killed in a command", script(IN_TURN)));
  },
  /** The same, and resumed: the call's outcome is unknown, and its run ends. */
  async resumed({ script, sluice, killed }) {
    await killed("before done . ^check#1/.*/call$", run("inTurn", "resumed", script(IN_TURN)));
    await sluice(["resume", await onlyRun(sluice)]);
  },
  /** A question that was answered, a grant that was given and used, and one that was denied. */
  async granted({ script, sluice, start }) {
    const question = turn("AskUser", { question: "Which colour?", options: ["red", "blue"] });
    const publish = [question, writes("granted.txt", "granted\n"), writes("denied.txt", "denied\n"), finishes("red")];
    const { until, ends } = start(run("asking", "granted", script({ publish }), "--wait"));
    for (const answer of [["--value", "red"], ["approve"], ["deny", "--reason", "that file stays away"]]) {
      const [, runId = "", request = ""] = await until(ASKS);
      await sluice(["answer", runId, request, ...answer]);
    }
    await ends(0);
  },
  /** A grant without an answer. */
  async "grant-open"({ script, sluice }) {
    const model = script({ publish: [writes("granted.txt", "granted\n"), finishes("granted")] });
    await sluice(run("asking", "a grant left open", model, "--wait=1ms"), 3);
  },
  /** Siblings that ended, their join, and the end of their run. */
  async "fan-out"({ script, sluice }) {
    await sluice(run("sideBySide", "side by side", script(SIDE_BY_SIDE)));
  },
  /** Killed when one sibling had ended and the other was waiting for its model. */
  async "killed-in-fan-out"({ script, killed }) {
    await killed(IN_RIGHT, run("sideBySide", "killed in a fan-out", script(SIDE_BY_SIDE)));
  },
  /** Cancelled while its process was waiting for an answer. */
  async cancelled({ script, sluice, start }) {
    const model = script({ publish: [writes("granted.txt", "granted\n"), finishes("granted")] });
    const { until, ends } = start(run("asking", "cancelled", model, "--wait"));
    const [, runId = ""] = await until(ASKS);
    await sluice(["cancel", runId, "--reason", "the wrong branch"]);
    await ends(1);
  },
  /** Cancelled when its process had been killed, with a sibling that had ended and one that had not. */
  async "cancelled-after-kill"({ script, sluice, killed }) {
    await killed(IN_RIGHT, run("sideBySide", "cancelled after a kill", script(SIDE_BY_SIDE)));
    await sluice(["cancel", await onlyRun(sluice), "--reason", "no longer needed"]);
  },
  /** A fork of a run that had ended, behind its fan-out; killed while it was waiting for its model. */
  async forked({ script, sluice, killed }) {
    await sluice(run("sideBySide", "forked", script(SIDE_BY_SIDE)));
    const model = script({ ...SIDE_BY_SIDE, end: [appends("again", "end.txt"), finishes("joined again")] });
    const fork = ["fork", await onlyRun(sluice), "--from", "end#1", "--model", model, ...FIXED];
    await killed("after open . ^end#1/a1/turn/2/model$", fork);
  },
  /**
   * A plan whose file another state audits; the approval of its event; two branches and their join; another pipeline; a question that
   * another state answers to. Killed between the effect of that state's call and the answer of its model.
   */
  async release({ put, script, sluice, start }) {
    put("AGENTS.md", "Be brief.\n");
    const model = script({
      plan: [writes("a.sql", "select 1\n"), sends("READY", { rationale: "it is audited" })],
      audit: [writes("audit.txt", "audited\n"), sends("FINE", { audited: true })],
      lint: [writes("lint.txt", "linted\n"), finishes("no findings")],
      types: [writes("types.txt", "checked\n"), finishes("no errors")],
      merge: [finishes("merged")],
      unit: [writes("unit.txt", "tested\n"), finishes("all green")],
      ship: [appends("shipping", "ship.txt"), sends("GONE")],
    });
    const killed = "after open . ^ship#1/a1/turn/2/model$";
    const { until, ends } = start(run("release", "the release", model, "--wait"), killed);
    const answers = [
      [/sluice answer (\S+) '(plan#[^']+)'/, "approve"],
      [/sluice answer (\S+) '(asking#[^']+)'/, "--value", "red"],
    ] as const;
    for (const [asks, ...answer] of answers) {
      const [, runId = "", request = ""] = await until(asks);
      await sluice(["answer", runId, request, ...answer]);
    }
    await ends("SIGKILL");
  },
  /** An orchestrator was refused a choice and made another one; killed when it was asked after the state. */
  async directed({ script, killed }) {
    const orchestrator = [
      turn("select_state", { state: "deploy" }),
      turn("select_state", { state: "write", input: { file: "a.txt" }, reason: "it is missing" }),
    ];
    const model = script({ orchestrator, write: [appends("written", "a.txt"), finishes("a.txt")] });
    await killed("after open . ^orchestrator#2/a1/turn/1/model$", run("directed", "directed", model));
  },
  /** A run of the gateway whose agent worked on two states; killed between the effect of a call and the next one. */
  async driven({ start }) {
    const line = ["gateway", "--workflow", `${fileOf("inTurn")}#inTurn`, "--task", "driven", "--no-wait"];
    const { write, until, ends } = start([...line, "--sandbox", "off"], "after open . ^check#1/a1/turn/2/model$");
    const send = (id: number, method: string, params: object): void =>
      write(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    const clientInfo = { name: "agent", version: "1.0.0" };
    send(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    await until(/"id":1\b/);
    const calls = [
      ["get_state", {}],
      ["Bash", { command: "echo drafted >> draft.txt" }],
      ["transition", { event: "finish", data: { text: "the draft" } }],
      ["Bash", { command: "echo checked >> check.txt" }],
    ] as const;
    for (const [index, [name, input]] of calls.entries()) {
      send(index + 2, "tools/call", { name, arguments: input });
      if (index + 1 < calls.length) await until(new RegExp(`"id":${index + 2}\\b`));
    }
    await ends("SIGKILL");
  },
  /** A state runs another pipeline; killed there between the effect of a call and the answer of its model. */
  async nested({ script, killed }) {
    const model = script({ work: [appends("worked", "work.txt"), finishes("done inside")] });
    await killed("after open inner ^work#1/a1/turn/2/model$", run("nested", "nested", model));
  },
  /** A model wrote a pipeline; killed in its run between the effect of a call and the answer of its model. */
  async written({ script, killed }) {
    const document = {
      id: "note",
      initial: "work",
      states: {
        work: { allowed_tools: ["Read"], instructions: "Read it.", on: { DONE: "done" } },
        done: { type: "final" },
      },
    };
    const model = script({
      design: [turn("create_pipeline", { document })],
      work: [turn("Read", { file_path: "nested.ts" }), sends("DONE")],
    });
    await killed("after open run ^work#1/a1/turn/2/model$", run("written", "written", model));
  },
  /** A router was refused a choice and made another one; killed between the effect of a call and the answer of its model. */
  async routed({ script, killed }) {
    const pick = [
      turn("choose", { choice: { to: "write", input: {} } }),
      turn("choose", { choice: { to: "write", input: { file: "a.txt" }, reason: "it is missing" } }),
    ];
    const model = script({ pick, write: [appends("written", "a.txt"), finishes("a.txt")] });
    await killed("after open . ^write#1/a1/turn/2/model$", run("routed", "routed", model));
  },
};

async function onlyRun(sluice: Recording["sluice"]): Promise<string> {
  const [, runId = ""] = /"runId": *"(r[^"]+)"/.exec(await sluice(["runs", "--output-format", "json"])) ?? [];
  return runId;
}
