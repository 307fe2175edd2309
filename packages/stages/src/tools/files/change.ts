import type { Json, JsonObject, ToolCall, ToolResult } from "@sluice/core";
import { displayPath, judgedPath } from "./paths.ts";
import { checkIntent, faultIntent, type Present, readPresent, replaceFile, staleFile } from "./replace-file.ts";
import { asFault, asResult, fault } from "./results.ts";
import {
  addsRedaction,
  decodeUtf8,
  encodeUtf8,
  type FileText,
  isBinary,
  lineDelta,
  MAX_FILE_BYTES,
  sha256,
} from "./text.ts";

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
  readonly real: string;
  readonly shown: string;
  readonly present: Present | undefined;
  readonly before: string;
  readonly rewritten: Rewritten;
  readonly bytes: Buffer;
  readonly hash: string;
}

/** Hashes before and after, or why the change is impossible. Recorded before anything is written. */
export async function prepareChange(path: string, rewrite: Rewrite, call: ToolCall): Promise<Json> {
  try {
    const plan = await planChange(path, rewrite, call);
    return { ...intentOf(plan) };
  } catch (thrown) {
    return faultIntent(asFault(thrown, path));
  }
}

export function executeChange(path: string, rewrite: Rewrite, call: ToolCall): Promise<ToolResult> {
  return asResult(async () => {
    const plan = await planChange(path, rewrite, call);
    checkIntent(intentOf(plan), call.intent, plan.shown);
    if (plan.present?.hash !== plan.hash) await replaceFile(plan.real, plan.bytes, plan.present, call);
    const delta = lineDelta(plan.before, plan.rewritten.after.text);
    return {
      ok: true,
      output: plan.rewritten.report(delta),
      notes: { [plan.real]: plan.hash },
      facts: {
        path: plan.shown,
        created: plan.present === undefined,
        ...delta,
        bytes: plan.bytes.length,
        before: plan.present?.hash ?? null,
        after: plan.hash,
        ...plan.rewritten.facts,
      },
    };
  });
}

function intentOf(plan: Plan): { real: string; before: string | null; after: string } {
  return { real: plan.real, before: plan.present?.hash ?? null, after: plan.hash };
}

async function planChange(path: string, rewrite: Rewrite, call: ToolCall): Promise<Plan> {
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
  return { real, shown, present, before: before?.text ?? "", rewritten, bytes, hash: sha256(bytes) };
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
