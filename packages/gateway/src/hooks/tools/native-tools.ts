// The tools of another agent as the permission gate sees them: the names and the subjects of our own, carried out over there.
import {
  type Clock,
  defineTool,
  type FileEdit,
  type Json,
  type MeasureScene,
  SluiceError,
  type Subject,
  systemClock,
  type TextMask,
  type Tool,
  type ToolCall,
  type ToolResult,
  type Workspace,
} from "@sluice/core";
import { toJsonValue } from "@sluice/core/runtime";
import {
  commandJudge,
  fileSubjects,
  maskedHead,
  NO_MASK,
  predictChange,
  reportingChanges,
  treeSubjects,
} from "@sluice/stages/tools";
import { z } from "zod";
import { type PatchedFile, readPatch } from "./apply-patch.ts";

/** Hands an approved call over to the host. `input` is what it may run; of Bash it may have another command line. */
export type HandOver = (call: ToolCall, input: Json) => Promise<ToolResult>;

export interface NativeToolsOptions {
  readonly handOver: HandOver;
  /** Tools of the host's MCP servers that the session knows, as `mcp__server__tool`. */
  readonly mcpTools?: readonly string[];
  /** Variables that a command line may set, in addition to the harmless ones. */
  readonly variables?: readonly string[];
  /** Refuses commands, because a session that requires a sandbox cannot put the host's shell into one. */
  readonly requiresSandbox?: boolean;
  /** Whether skills cannot run commands at this host. Otherwise each use of a skill needs a grant. */
  readonly skillsRunNothing?: boolean;
  readonly clock?: Clock;
}

/** The tool behind calls that an adapter refused: the gate denies and records them. */
export const REFUSED_TOOL = "HostCall";

const options = z.record(z.string(), z.json()).optional();
const read = z.union([
  z.strictObject({ file_path: z.string(), options }),
  z.strictObject({ folders: z.array(z.string()).min(1), options }),
]);
const places = { path: z.string(), more: z.array(z.string()).optional() };
const grep = z.strictObject({ pattern: z.string(), ...places, glob: z.string().optional(), options });
const glob = z.strictObject({ pattern: z.string(), ...places });
const bash = z.strictObject({
  command: z.string().min(1),
  folder: z.string(),
  background: z.boolean().optional(),
  options,
});
const replaced = { old_string: z.string(), new_string: z.string(), replace_all: z.boolean().optional() };
const edits = z.strictObject({ file_path: z.string(), edits: z.array(z.strictObject(replaced)).min(1) });
const patchInput = z.strictObject({ patch: z.string(), folder: z.string() });
const edit = z.union([
  z.strictObject({ file_path: z.string(), ...replaced }),
  edits,
  patchInput,
  z.strictObject({ file_path: z.string(), cell: z.record(z.string(), z.json()) }),
]);
const write = z.union([z.strictObject({ file_path: z.string(), content: z.string() }), edits, patchInput]);
type Edit = z.infer<typeof edit>;
type Write = z.infer<typeof write>;

const DESCRIPTION = "Carried out by the agent's own host.";

/** Characters of a result that are kept. */
const LONGEST_OUTPUT = 500_000;

function shortened(output: Json, secrets: TextMask = NO_MASK): Json {
  const text = typeof output === "string" ? output : JSON.stringify(output);
  return text.length <= LONGEST_OUTPUT ? output : maskedHead(text, LONGEST_OUTPUT, secrets);
}

export function nativeTools(given: NativeToolsOptions): readonly Tool[] {
  const {
    handOver,
    mcpTools = [],
    variables = [],
    requiresSandbox = false,
    skillsRunNothing = false,
    clock = systemClock,
  } = given;
  const judge = commandJudge({ variables });
  const hand = async (input: unknown, call: ToolCall): Promise<ToolResult> => {
    const json = toJsonValue(input);
    if (!json.ok) throw new Error(`the input is not JSON: ${json.fault}`);
    const result = await handOver(call, json.value);
    return { ...result, output: shortened(result.output, call.secrets) };
  };
  /** Finds out which watched files the host has changed: what it reports does not say that reliably. */
  const change = (input: unknown, call: ToolCall, outlives = false): Promise<ToolResult> =>
    reportingChanges(call, clock, async () => {
      const result = await hand(input, call);
      return outlives ? { ...result, changesUnknown: true } : result;
    });
  const about = { description: DESCRIPTION };
  /** Of tools whose processes the host starts, which a sandbox here does not hold. */
  const outside = { ...about, startsProcesses: true as const };

  const unwalled: readonly Subject[] = requiresSandbox
    ? [{ kind: "refused", reason: "this run requires a sandbox, and the host's own shell runs outside it" }]
    : [];

  /** The line as the host's shell runs it in the workspace. */
  const lineOf = ({ command, folder }: z.infer<typeof bash>, { root }: Workspace): string =>
    folder === root ? command : `cd '${folder.replaceAll("'", `'\\''`)}' && ${command}`;
  const aroundLine = ({ background }: z.infer<typeof bash>): readonly Subject[] => [
    ...unwalled,
    ...(background === true
      ? [
          {
            kind: "opaque" as const,
            reason: "the command runs in the background, so it can act after this state has ended",
          },
        ]
      : []),
  ];

  return [
    defineTool({
      ...about,
      name: "Read",
      input: read,
      effect: "read",
      subjects: (input, workspace) =>
        "folders" in input
          ? input.folders.flatMap((folder) => treeSubjects(folder, "read", workspace))
          : fileSubjects(input.file_path, "read", workspace),
      execute: hand,
    }),
    defineTool({
      ...about,
      name: "Grep",
      input: grep,
      effect: "read",
      subjects: ({ path, more = [] }, workspace) =>
        [path, ...more].flatMap((one) => treeSubjects(one, "read", workspace)),
      execute: hand,
    }),
    defineTool({
      ...about,
      name: "Glob",
      input: glob,
      effect: "read",
      subjects: ({ path, more = [] }, workspace) =>
        [path, ...more].flatMap((one) => treeSubjects(one, "read", workspace)),
      execute: hand,
    }),
    defineTool({
      ...about,
      name: "Edit",
      input: edit,
      effect: "write",
      subjects: (input, workspace) => written(input, workspace),
      measure: measured,
      execute: (input, call) => change(input, call),
    }),
    defineTool({
      ...about,
      name: "Write",
      input: write,
      effect: "write",
      subjects: (input, workspace) => written(input, workspace),
      measure: measured,
      execute: (input, call) => change(input, call),
    }),
    defineTool({
      ...about,
      name: "Bash",
      input: bash,
      effect: "write",
      ready: judge.ready,
      subjects: (input, workspace, scene) => [
        ...aroundLine(input),
        ...judge.subjects(lineOf(input, workspace), workspace, scene),
      ],
      execute: async (input, call) => {
        const line = lineOf(input, call.workspace);
        const judged = call.judged.slice(aroundLine(input).length);
        let approved: string;
        try {
          approved = judge.lineToRun(line, { ...call, judged });
        } catch (thrown) {
          if (!(thrown instanceof SluiceError)) throw thrown;
          return { ok: false, output: { code: thrown.code, message: thrown.message } };
        }
        return await change(call.anyLine ? input : { ...input, command: approved }, call, input.background);
      },
    }),
    defineTool({
      ...about,
      name: "WebFetch",
      input: z.strictObject({ urls: z.array(z.url({ protocol: /^https?$/ })).min(1), options }),
      effect: "write",
      subjects: ({ urls }) =>
        [...new Set(urls.map((url) => new URL(url).host))].map((host) => ({ kind: "host", host })),
      execute: hand,
    }),
    defineTool({
      ...about,
      name: "WebSearch",
      input: z.strictObject({ query: z.string(), options }),
      effect: "write",
      subjects: () => [],
      execute: hand,
    }),
    defineTool({
      ...about,
      name: "Agent",
      input: z.strictObject({ options }),
      effect: "write",
      // Each call that the subagent makes is judged by itself.
      subjects: () => [],
      execute: hand,
    }),
    defineTool({
      ...(skillsRunNothing ? about : outside),
      name: "Skill",
      input: z.strictObject({ options }),
      effect: "write",
      subjects: () =>
        skillsRunNothing
          ? []
          : [...unwalled, { kind: "opaque", reason: "a skill can run commands that the gate does not see" }],
      execute: (input, call) => {
        if (!skillsRunNothing) call.startsUnwalled();
        return hand(input, call);
      },
    }),
    ...mcpTools.map((name) =>
      defineTool({
        ...outside,
        name,
        input: z.record(z.string(), z.json()),
        effect: "write",
        subjects: () => [],
        execute: (input, call) => {
          call.startsUnwalled();
          return change(input, call);
        },
      }),
    ),
    defineTool({
      ...about,
      name: REFUSED_TOOL,
      input: z.strictObject({ tool: z.string(), reason: z.string() }),
      effect: "write",
      subjects: ({ reason }) => [{ kind: "refused", reason }],
      execute: hand,
    }),
  ];
}

function written(input: Edit | Write, workspace: Workspace): readonly Subject[] {
  if (!("patch" in input)) return fileSubjects(input.file_path, "write", workspace);
  return patchedFiles(input).flatMap(({ path }) => fileSubjects(path, "write", workspace));
}

/** Every file that a patch touches, with what happens to it; a moved file is two of them. */
function patchedFiles({ patch, folder }: z.infer<typeof patchInput>): readonly {
  readonly path: string;
  readonly of: PatchedFile;
  readonly moved?: string;
}[] {
  const parsed = readPatch(patch);
  if (!parsed.ok) throw new Error(parsed.reason);
  const absolute = (path: string): string => (path.startsWith("/") ? path : `${folder}/${path}`);
  return parsed.files.flatMap((of) => {
    const path = absolute(of.path);
    if (of.kind !== "update" || of.to === undefined) return [{ path, of }];
    return [
      { path, of },
      { path: absolute(of.to), of, moved: path },
    ];
  });
}

async function measured(input: Edit | Write, scene: MeasureScene): Promise<readonly FileEdit[]> {
  if ("cell" in input) throw new Error("the lines of a notebook cell cannot be counted");
  if ("content" in input) return await predictChange(input.file_path, () => input.content, scene);
  if ("patch" in input) return await measuredPatch(input, scene);
  const steps = "edits" in input ? input.edits : [input];
  return await predictChange(
    input.file_path,
    (before) => steps.reduce<string | undefined>(replacedText, before),
    scene,
  );
}

/** The text after one replacement. The host may be less exact in finding the old text; then the change cannot be predicted. */
function replacedText(
  before: string | undefined,
  { old_string, new_string, replace_all = false }: z.infer<typeof edits>["edits"][number],
): string {
  if (old_string === "") return new_string;
  const lines = (text: string): string => text.replaceAll("\r\n", "\n");
  const text = lines(before ?? "");
  const old = lines(old_string);
  if (!text.includes(old)) throw new Error("old_string does not occur exactly in the file");
  const after = replace_all ? text.split(old).join(lines(new_string)) : text.replace(old, () => lines(new_string));
  return before?.includes("\r\n") === true ? after.replaceAll("\n", "\r\n") : after;
}

async function measuredPatch(input: z.infer<typeof patchInput>, scene: MeasureScene): Promise<readonly FileEdit[]> {
  const counted: FileEdit[] = [];
  for (const { path, of, moved } of patchedFiles(input)) {
    if (of.kind === "delete" || (of.kind === "update" && of.to !== undefined && moved === undefined)) {
      counted.push(...(await predictChange(path, () => undefined, scene)));
      continue;
    }
    const [subject] = fileSubjects(path, "write", scene.workspace);
    if (subject?.kind !== "path") throw new Error(`${path} cannot be changed`);
    let whole = 0;
    if (moved !== undefined) {
      const [all] = await predictChange(moved, () => undefined, scene);
      whole = all?.removed ?? 0;
    }
    const removed = of.kind === "update" ? of.removed : 0;
    counted.push({ real: subject.real, removed, added: of.added + whole });
  }
  return counted;
}
