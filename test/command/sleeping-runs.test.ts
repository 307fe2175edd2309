import { expect, test } from "vitest";
import { printed, textAt } from "../support/command.ts";
import { deskHere } from "../support/command-here.ts";
import { sends } from "../support/workflow-desk.ts";

// What the command prints about a run that sleeps, and about the choices of a router.

const SLEEPS = `id: publish
initial: cooling
states:
  cooling: { timer: { for: 2h }, on: { success: writing } }
  writing:
    instructions: Write about {{ctx.task}}.
    on: { WRITTEN: complete }
  complete: { type: final, outcome: completed }
`;

const CHOOSES = `id: choosing
initial: pick
states:
  pick: { router: { targets: [writing, nothing], prompt: "Choose for {{ctx.task}}." } }
  writing:
    instructions: Write about {{ctx.task}}.
    on: { WRITTEN: complete }
  nothing: { type: final, outcome: cancelled }
  complete: { type: final, outcome: completed }
`;

const choose = (to: string, reason = "") => ({ calls: [{ tool: "choose", input: { choice: { to, reason } } }] });

test("show and audit say until when a run sleeps", async () => {
  const here = deskHere();
  here.write("publish.yaml", SLEEPS);
  const model = here.script({ writing: [sends("WRITTEN")] });
  const run = ["run", "publish.yaml", "a task", "--model", model, "--suspend-sleeps", "--output-format", "json"];
  const runId = textAt(printed(await here.sluice(run)), "runId");
  const { stdout } = await here.sluice(["show", runId]);
  expect(stdout).toMatch(/^r\S+ {2}suspended \(sleeping\)$/m);
  expect(stdout).toMatch(/^ {2}wakes at +\d{4}-.*Z \(in (?:2h00m|1h59m)\)$/m);
  expect(stdout).toMatch(/^cooling#1 +unfinished +1 +0 .* \d+ ms$/m);
  const json = printed(await here.sluice(["show", runId, "--output-format", "json"]));
  expect(json).toMatchObject({ wakeAt: expect.any(Number), stages: [{ sleeps: 1, nextWakeAt: expect.any(Number) }] });
  const audit = await here.sluice(["audit", runId]);
  expect(audit.stdout).toMatch(/sleep\.started +cooling#1 +until=\d+ \(\d{4}-.*Z\) sleeps=1/);
  expect(audit.stdout).toMatch(/run\.suspended +reason=sleeping wakeAt=\d+ \(\d{4}-.*Z\)/);
});

test("show lists the routes of a run, with the targets that a router had and why it refused some", async () => {
  const here = deskHere();
  here.write("choosing.yaml", CHOOSES);
  const model = here.script({
    pick: [choose("\u001b[2Jnowhere<b>"), choose("writing", "it is due")],
    writing: [sends("WRITTEN", { rationale: "it is written" })],
  });
  const run = ["run", "choosing.yaml", "a task", "--model", model, "--output-format", "json"];
  const runId = textAt(printed(await here.sluice(run)), "runId");
  const { stdout } = await here.sluice(["show", runId]);
  expect(stdout).not.toContain("\u001b");
  expect(stdout).toMatch(
    /^routes:\n {2}pick#1 chose .*nowhere<b>, which was refused.*\n.*\n {2}pick#1 to writing {2}the model's choice\n {4}the stage says: it is due\n {4}✖ refused .*nowhere<b>\n.*no target.*\n {4}✔ chosen +writing\n {4}○ not chosen {2}nothing\n {2}writing#1 by WRITTEN to complete/m,
  );
  const json = printed(await here.sluice(["show", runId, "--output-format", "json"]));
  expect(json).toMatchObject({
    routes: [
      { outcome: "stayed", executionId: "pick#1" },
      { outcome: "moved", to: ["writing"], rationale: "it is due", considered: [{ verdict: "refused" }, {}, {}] },
      { outcome: "moved", event: "WRITTEN", to: ["complete"] },
    ],
  });
});
