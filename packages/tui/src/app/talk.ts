import { sendMessage } from "@sluice/stages";
import { stateLabel } from "@sluice/view";
import { userName } from "../user/person.ts";
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

/** Sends text to the stage on screen, or offers to start a run with it. */
async function sendOrStart(text: string, app: Steering, focus: Watched | undefined): Promise<void> {
  const view = focus?.watch.view();
  if (focus !== undefined && view !== undefined && view.endedAt === undefined) {
    const to = chosenOf(view, focus.chosen)?.runId ?? focus.run.runId;
    const secrets = await app.engine.secretsToward(to, focus.run.host);
    await sendMessage(focus.run.host, to, secrets.text(text), secrets.text(userName()));
    app.say("sent; the stage reads it before its next turn", "good");
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
