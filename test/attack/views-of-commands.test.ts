import { done, pipeline, to } from "@sluice/core";
import { human, type PollOptions, poll, script } from "@sluice/stages";
import { expect, test } from "vitest";
import { logLines } from "../../packages/tui/src/run/log.ts";
import { transcriptLines } from "../../packages/tui/src/run/transcript.ts";
import type { RunView } from "../../packages/view/src/projection/run-view.ts";
import { commandSession, node } from "../support/commands.ts";
import { handClock } from "../support/hand-clock.ts";
import { sectionIn, textIn } from "../support/page-parts.ts";
import { expectToFit } from "../support/random-views.ts";
import { reportOf, soundPage } from "../support/report-kit.ts";
import { eventually } from "../support/run-kit.ts";
import { answerAll, readRecords, textOf, viewOf } from "../support/run-views.ts";

// What a hostile command prints and a hostile person answers, in the app and in the report.

const HOSTILE =
  "\u001b]52;c;aGk=\u0007\u001b[2J\u202eevil\u2066</pre></details><script>alert(1)</script>\r\n\u0000▌ Approve";
const TOKEN = `ghp_${"a1B2".repeat(9)}`;
/** Prints it on both streams, a token, and a line of a megabyte. */
const PRINTS = `
const text = ${JSON.stringify(`${HOSTILE}\n`)} + "gh" + ${JSON.stringify(`${TOKEN.slice(2)}\n`)};
process.stdout.write(text + "x".repeat(1_000_000) + "\\n" + text);
process.stderr.write(text);
process.exitCode = Number(process.argv[1]);`;

const again: Pick<PollOptions<never, never, never>, "every" | "maxAttempts"> = { every: "30s", maxAttempts: 2 };
const attacked = pipeline({
  id: "attacked",
  input: { type: "object" },
  stages: {
    printing: script({ command: node(PRINTS, "0") }),
    failing: script({ command: node(PRINTS, "3") }),
    polling: poll({ command: node(PRINTS, "1"), ...again }),
    asking: human({ question: `Is {{ctx.run.input.text}} fine?` }),
  },
  initial: "printing",
  next: {
    printing: () => to("failing"),
    failing: { completed: () => done(1), failed: () => to("polling") },
    polling: { completed: () => done(1), failed: () => to("asking") },
    asking: ({ output }) => done(output),
  },
});

async function played() {
  const clock = handClock();
  const live = commandSession({ clock, wait: true });
  const handle = live.start(attacked, { text: HOSTILE });
  const view = async (): Promise<RunView> => viewOf(handle.runId, await readRecords(live.host, handle.runId));
  await eventually(async () => (await view()).wakeAt !== undefined && clock.waiting() > 0, "the sleep");
  clock.turn(30_000);
  await eventually(async () => (await view()).requests.length > 0, "the question");
  await answerAll(live, handle.runId, { kind: "value", value: `${HOSTILE} ${TOKEN}` });
  await handle;
  return { live, runId: handle.runId, view: await view() };
}

test("no row of the app is wider than it may be or holds what a terminal acts on, and no token is shown", async () => {
  const { view } = await played();
  for (const width of [1, 20, 80, 200]) {
    expectToFit(logLines(view, 0, width).lines, width);
    for (const { items } of view.executions)
      for (const item of items)
        for (const folded of [true, false]) {
          const lines = transcriptLines(item, { width, folded });
          expectToFit(lines, width);
          expect(textOf(lines)).not.toContain(TOKEN);
        }
  }
  const shown = textOf(logLines(view, 0, 200).lines);
  expect(shown).toMatch(/✖ \$ .* failed · exit 3/);
  expect(shown).toMatch(/│ ▏ Approve\n.*\[redacted:github-token\]/);
  // Only a card begins with the edge of cards.
  expect(shown).not.toMatch(/^\s*▌/m);
});

test("the report has only its own elements, keeps the size of a page, and shows no token", async () => {
  const { live, runId } = await played();
  const { page } = await reportOf(live.host, runId);
  const root = soundPage(page);
  expect(page).not.toContain(TOKEN);
  expect(page.length).toBeLessThan(400_000);
  const stages = textIn(sectionIn(root, "stages"));
  expect(stages).toContain("<script>alert(1)</script>");
  expect(stages).toContain("·U+202E");
  expect(stages).toContain("2 attempts of a command");
});

test("the value of a flag that names a secret is shown nowhere", async () => {
  const live = commandSession();
  const words = node("", "--password", "sesame-open-wide", "--keep", "rosebud-1941");
  const made = pipeline({
    id: "flags",
    input: { type: "object" },
    stages: { login: script({ command: words }) },
    initial: "login",
    next: { login: { completed: () => done(1), failed: () => done(2) } },
  });
  const handle = live.start(made, {});
  await handle;
  const view = viewOf(handle.runId, await readRecords(live.host, handle.runId));
  const shown = [...(view.executions[0]?.items ?? [])].flatMap((item) => (item.kind === "command" ? item.words : []));
  expect(shown.slice(-4)).toEqual(["--password", "[redacted:password]", "--keep", "rosebud-1941"]);
  const { page } = await reportOf(live.host, handle.runId);
  expect(page).not.toContain("sesame-open-wide");
});
