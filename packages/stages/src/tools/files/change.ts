import type { FileEdit, Json, JsonObject, MeasureScene, ToolCall, ToolResult } from "@sluice/core";
import { lineDelta } from "./line-delta.ts";
import { displayPath, judgedPath } from "./paths.ts";
import {
  checkIntent,
  faultIntent,
  type Present,
  readPresent,
  replaceFile,
  staleFile,
  type WriteIntent,
} from "./replace-file.ts";
import { asFault, asResult, fault } from "./results.ts";
import { addsRedaction, decodeUtf8, encodeUtf8, type FileText, isBinary, MAX_FILE_BYTES, sha256 } from "./text.ts";

// What Edit and Write share: planning, recording and making the change of one file.

/** Computes the new content of a file; `before` is undefined if there is no file. Throws the model's mistakes. */
export type Rewrite = (before: FileText | undefined, shown: string) => Rewritten;
interface Rewritten {
  readonly after: FileText;
  /** The result for the model. */
  readonly report: (delta: { readonly added: number; readonly removed: number }) => string;
  readonly facts?: JsonObject;
}

interface Plan {
  readonly intent: WriteIntent;
  readonly shown: string;
  readonly present: Present | undefined;
  readonly before: string;
  readonly rewritten: Rewritten;
  readonly bytes: Buffer;
}

/** Hashes before and after, or why the change is impossible. Recorded before anything is written. */
export async function prepareChange(path: string, rewrite: Rewrite, call: ToolCall): Promise<Json> {
  try {
    return { ...(await planChange(path, rewrite, call)).intent };
  } catch (thrown) {
    return faultIntent(asFault(thrown, path));
  }
}

/** What the change would do now: nothing if it is impossible, because it then fails without writing. */
export async function measureChange(path: string, rewrite: Rewrite, scene: MeasureScene): Promise<readonly FileEdit[]> {
  // Whatever is wrong now, running the call is held to no edits.
  const plan = await planChange(path, rewrite, scene).catch(() => undefined);
  return plan === undefined || plan.intent.before === plan.intent.after ? [] : [editOf(plan)];
}

/**
 * What another program's change would do to a file. `rewrite` gets the text, or undefined if there is no file, and returns the new one,
 * or undefined if the file is removed. Throws if the change cannot be predicted.
 */
export async function predictChange(
  path: string,
  rewrite: (before: string | undefined) => string | undefined,
  scene: MeasureScene,
): Promise<readonly FileEdit[]> {
  const real = judgedPath(path, "write", scene);
  const present = await readPresent(real);
  const before = present === undefined ? undefined : textOf(present, displayPath(real, scene.workspace)).text;
  const after = rewrite(before);
  if (before === after) return [];
  const { added, removed } = lineDelta(before ?? "", after ?? "");
  return [{ real, removed, added: Math.max(added, removed === 0 ? 1 : 0) }];
}

function editOf({ intent, before, rewritten }: Plan): FileEdit {
  const { added, removed } = lineDelta(before, rewritten.after.text);
  // A change of line ends or of the byte order mark alone is still an edit.
  return { real: intent.real, removed, added: Math.max(added, removed === 0 && intent.before !== null ? 1 : 0) };
}

/** Refuses a change that is larger than the one that was counted. */
function checkEdits(plan: Plan, counted: readonly FileEdit[] | undefined): void {
  if (counted === undefined || plan.intent.before === plan.intent.after) return;
  const now = editOf(plan);
  const known = counted.find(({ real }) => real === now.real);
  if (known === undefined || now.added > known.added || now.removed > known.removed)
    throw staleFile(plan.shown, "it changed after the call was checked");
}

export function executeChange(path: string, rewrite: Rewrite, call: ToolCall): Promise<ToolResult> {
  return asResult(async () => {
    const plan = await planChange(path, rewrite, call);
    const { intent, shown, present, before, rewritten, bytes } = plan;
    const { real, after } = intent;
    checkIntent(intent, call.intent, shown);
    checkEdits(plan, call.edits);
    if (intent.before !== after) await replaceFile(real, bytes, present, call);
    const delta = lineDelta(before, rewritten.after.text);
    return {
      ok: true,
      output: rewritten.report(delta),
      notes: { [real]: after },
      ...(intent.before === after ? { changed: [] } : {}),
      facts: {
        path: shown,
        created: present === undefined,
        ...delta,
        bytes: bytes.length,
        before: intent.before,
        after,
        ...rewritten.facts,
      },
    };
  });
}

async function planChange(path: string, rewrite: Rewrite, call: MeasureScene): Promise<Plan> {
  const real = judgedPath(path, "write", call);
  const shown = displayPath(real, call.workspace);
  const present = await readPresent(real);
  const before = present === undefined ? undefined : textOf(present, shown);
  if (present !== undefined && call.notes[real] !== present.hash) {
    throw staleFile(
      shown,
      call.notes[real] === undefined ? "this stage has not read it" : "it changed since it was read",
    );
  }
  const rewritten = rewrite(before, shown);
  if (!rewritten.after.text.isWellFormed())
    throw fault("not_text", "The new content is not valid Unicode text. Nothing was written.");
  if (addsRedaction(before?.text ?? "", rewritten.after.text)) {
    throw fault(
      "redacted_content",
      `The new content contains "[redacted:", which replaces a secret in what you read. Writing it would destroy the secret in ${shown}. Edit only the lines around it.`,
    );
  }
  const bytes = encodeUtf8(rewritten.after);
  if (bytes.length > MAX_FILE_BYTES) {
    throw fault("file_too_large", `The new content has ${bytes.length} bytes; the limit is ${MAX_FILE_BYTES}.`);
  }
  const intent = { real, before: present?.hash ?? null, after: sha256(bytes) };
  return { intent, shown, present, before: before?.text ?? "", rewritten, bytes };
}

function textOf(present: Present, shown: string): FileText {
  const text = isBinary(present.bytes) ? undefined : decodeUtf8(present.bytes);
  if (text === undefined) {
    throw fault(
      "not_text",
      `${shown} is not UTF-8 text, so it cannot be edited or overwritten. Use Bash to change it.`,
    );
  }
  return text;
}
