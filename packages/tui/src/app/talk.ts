import { type ExecutionView, type RunView, stateLabel } from "@sluice/view";
import { type Steering, usageError } from "./command.ts";
import { confirmation } from "./overlay/question.ts";
import { chosenOf, type Watched } from "./watched.ts";

const DEFAULT_PIPELINE = "codeReview";

/** Runs a submitted line: a command, or a message for a run. */
export async function talk(text: string, app: Steering, focus: Watched | undefined): Promise<void> {
  const command = commandIn(text);
  if (command === undefined) await sendOrStart(text, app, focus);
  else await runCommand(command, app);
}

/** The name and the words of a slash command; undefined for plain text. */
export function commandIn(text: string): { readonly name: string; readonly words: string } | undefined {
  const [, name, words = ""] = /^\/(\S+)\s*(.*)$/s.exec(text.trim()) ?? [];
  return name === undefined ? undefined : { name, words: words.trim() };
}

async function runCommand(
  { name, words }: { readonly name: string; readonly words: string },
  app: Steering,
): Promise<void> {
  const command = app.commands.find((known) => known.name === name);
  if (command === undefined) throw usageError(`there is no command /${name}; /help lists all`);
  await command.run(words, app);
}

/** Who reads a message, and when. */
function readerOf(view: RunView, chosen: ExecutionView | undefined): string {
  const isAgent = chosen !== undefined && chosen.turn > 0 && chosen.endedAt === undefined;
  const reader = isAgent ? "the stage reads it before its next turn" : "an agent reads it before its next turn";
  return view.status === "suspended" || view.unattended === true
    ? `${reader}, once the run continues; /resume continues it`
    : reader;
}

/** Sends text to the stage on screen, or offers to start a run with it. */
async function sendOrStart(text: string, app: Steering, focus: Watched | undefined): Promise<void> {
  const view = focus?.watch.view();
  if (focus !== undefined && view !== undefined && view.endedAt === undefined) {
    const chosen = chosenOf(view, focus.chosen);
    await app.send({ runId: chosen?.runId ?? focus.run.runId, host: focus.run.host }, text, "steer");
    app.say(`sent; ${readerOf(view, chosen)}`, "good");
    return;
  }
  const pipeline = (await app.engine.project()).defaultPipeline ?? DEFAULT_PIPELINE;
  const start = `Start ${stateLabel(pipeline)}`;
  app.ask(
    confirmation(`No run is active. ${start} with this task?`, [], ["Not now", start], (yes) => {
      if (yes) void app.perform(async () => app.turnTo(await app.engine.start(pipeline, text)));
      else app.putBack(text);
    }),
  );
}
