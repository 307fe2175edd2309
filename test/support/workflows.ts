import { type LoadedWorkflow, type LoadWorkflowOptions, loadWorkflow } from "@sluice/workflows";

/** Loads a workflow from texts by path. A path that is missing cannot be read; the folders are those of the paths. */
export async function loadTexts(
  path: string,
  texts: Readonly<Record<string, string>>,
  options: Pick<LoadWorkflowOptions, "find" | "tools"> = {},
): Promise<LoadedWorkflow> {
  return await loadWorkflow(path, {
    ...options,
    read: async (wanted) => {
      const text = texts[wanted];
      if (text === undefined) throw new Error(`there is no file ${wanted}`);
      return text;
    },
    list: async (folder) => {
      const inside = Object.keys(texts).filter((name) => name.startsWith(`${folder}/`));
      return inside.length === 0 ? undefined : inside.map((name) => name.slice(folder.length + 1));
    },
  });
}

/** Loads one document given as data. What would hide or reverse text is written as an escape, as a file has to. */
export async function loadDocument(
  document: unknown,
  options?: Pick<LoadWorkflowOptions, "find" | "tools">,
): Promise<LoadedWorkflow> {
  return await loadTexts(
    "w.json",
    { "w.json": JSON.stringify(document, null, 2).replaceAll(HIDDEN, escaped) },
    options,
  );
}

const HIDDEN = /[\u202a-\u202e\u2066-\u2069]/gu;
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16)}`;

/** The diagnostics as short lines: rule, path and severity if it is a warning. */
export function ruleLines({ diagnostics }: LoadedWorkflow): readonly string[] {
  return diagnostics.map(({ rule, path, severity }) => `${rule} ${path}${severity === "warning" ? " (warning)" : ""}`);
}
