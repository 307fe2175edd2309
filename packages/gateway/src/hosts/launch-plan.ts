import { SluiceError } from "@sluice/core";
import type { HostName } from "../host-names.ts";
import { claude } from "./claude.ts";
import { codex } from "./codex.ts";
import { copilot } from "./copilot.ts";
import { gemini } from "./gemini.ts";
import type { Host, HostArguments, HostClass, HostForm, LaunchPlan, LaunchRequest } from "./host.ts";
import { opencode } from "./opencode.ts";
import { qwen } from "./qwen.ts";
import { isMeasured } from "./version.ts";

export const HOSTS: Readonly<Record<HostName, Host>> = { claude, codex, gemini, qwen, copilot, opencode };

/**
 * How a host is started, and the class that follows. Reads nothing and starts nothing. Throws Validation `host_argument` if an
 * argument could lift the class, and Validation `host_mode` if the host does not have what is asked for.
 */
export function launchPlan(name: HostName, request: LaunchRequest): LaunchPlan {
  const host = HOSTS[name];
  if (request.native === true && request.mode === "hard" && name !== "claude")
    throw new SluiceError(
      "Validation",
      "host_mode",
      `${host.title} cannot keep its own tools in class hard; leave native tools out, or use class guarded`,
    );
  const given = readArguments(host, request.args);
  const { weaker, atMost = "guarded", links = [], ...planned } = host.plan(request);
  const { level, why } = classOf(host, request, planned.form, weaker === undefined ? undefined : { weaker, atMost });
  const prompt = request.task === undefined || given.hasPrompt ? [] : host.prompt(request.task, given.command);
  return {
    ...planned,
    host: name,
    class: level,
    command: host.command,
    args: [...(given.command === undefined ? [] : [given.command]), ...planned.args, ...given.rest, ...prompt],
    cwd: request.workspace,
    links,
    notes: [...why, ...planned.notes],
  };
}

const CLASSES: Readonly<Record<HostForm, HostClass>> = {
  "gateway tools only": "hard",
  "inverted default": "hard",
  hooks: "guarded",
};

function classOf(
  host: Host,
  { version, proven }: LaunchRequest,
  form: HostForm,
  limit: { readonly weaker: string; readonly atMost: HostClass } | undefined,
): { readonly level: HostClass; readonly why: readonly string[] } {
  if (!isMeasured(version, host.measured) && proven === undefined) {
    const which = version === undefined ? "reports no version" : `${version} was not measured`;
    return {
      level: "advisory",
      why: [
        `${host.title} ${which}, so nothing is promised: run sluice hook doctor ${host.name} once to prove what this version does.`,
      ],
    };
  }
  const level =
    proven === undefined || isMeasured(version, host.measured) ? CLASSES[form] : weakerOf(proven, CLASSES[form]);
  if (limit === undefined) return { level, why: [] };
  return { level: weakerOf(level, limit.atMost), why: [`${limit.weaker}.`] };
}

/** The class of a session of a person's own whose hooks are installed. */
export function hookClass(name: HostName, version: string | undefined, proven: HostClass | undefined): HostClass {
  if (isMeasured(version, HOSTS[name].measured)) return "guarded";
  return proven === undefined ? "advisory" : weakerOf(proven, "guarded");
}

const ORDER: readonly HostClass[] = ["advisory", "guarded", "hard"];

function weakerOf(a: HostClass, b: HostClass): HostClass {
  return ORDER.indexOf(a) < ORDER.indexOf(b) ? a : b;
}

/** Whether what was proven is at least what is asked for. */
export function reaches(proven: HostClass, asked: HostClass): boolean {
  return weakerOf(proven, asked) === asked;
}

interface GivenArguments {
  readonly command: string | undefined;
  readonly rest: readonly string[];
  readonly hasPrompt: boolean;
}

/** Passes on what is known to leave the class as it is. An option that a later version adds is refused until it is listed. */
function readArguments(host: Host, args: readonly string[]): GivenArguments {
  const known = host.arguments;
  const command = known.commands.find((word) => word === args[0]);
  const rest = command === undefined ? args : args.slice(1);
  let hasPrompt = false;
  for (let index = 0; index < rest.length; index += 1) {
    const word = rest[index] ?? "";
    if (word === "--") {
      refuseWords(host, rest.slice(index + 1));
      hasPrompt ||= index + 1 < rest.length;
      break;
    }
    if (!word.startsWith("-")) {
      refuseWords(host, [word]);
      if (/^[a-z][a-z-]*$/.test(word) && !known.commands.includes(word))
        throw refused(host, word, "a single word could be a command of the host; use --task, or several words");
      hasPrompt ||= !known.commands.includes(word);
      continue;
    }
    const { name, value } = splitOption(word);
    if (known.flags.includes(name) && value === undefined) continue;
    const check = known.checked?.[name];
    if (!known.values.includes(name) && check === undefined) throw refused(host, name, reasonOf(known, name));
    const next = value ?? rest[index + 1];
    if (next === undefined || (value === undefined && next.startsWith("-")))
      throw refused(host, name, `it needs a value; write ${name}=<value> for one that begins with a dash`);
    if (check !== undefined && !check.test(next)) throw refused(host, `${name} ${next}`, reasonOf(known, name));
    hasPrompt ||= known.prompts.includes(name);
    if (value === undefined) index += 1;
  }
  return { command, rest, hasPrompt };
}

function refuseWords(host: Host, words: readonly string[]): void {
  const [first] = words;
  if (first !== undefined && !host.arguments.words)
    throw refused(host, first, `${host.title} takes its prompt as an option; use --task`);
}

function splitOption(word: string): { readonly name: string; readonly value: string | undefined } {
  const [, name, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
  return { name: name ?? word, value };
}

function reasonOf(known: HostArguments, name: string): string {
  if (Object.hasOwn(known.refused, name)) return known.refused[name] ?? "";
  if (/^-[^-]./.test(name)) return "write each short option as a word of its own";
  return "it is not one of the options that are known to leave the class as it is";
}

function refused(host: Host, word: string, reason: string): SluiceError {
  return new SluiceError("Validation", "host_argument", `${word} is not passed to ${host.title}: ${reason}`);
}
