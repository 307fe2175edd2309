// What a config says about notifications, and how it is checked.

import type { Problem } from "@sluice/core";
import { readHttpAddress } from "@sluice/stages/runtime";
import { kindOf, listOf, membersOf, oneOf, type Read, text, that } from "./fields.ts";

/** What can be reported. `budget`: money of the run, or a cap of its pipeline at 80 % and when it is reached. */
export const NOTIFY_ON = ["request", "suspended", "finished", "budget"] as const;
export type NotifyOn = (typeof NOTIFY_ON)[number];

/** To whom runs are reported, and when: a program or an address. */
export interface NotifyOption {
  /** What is reported; default: all. */
  readonly on?: readonly NotifyOn[];
  /** A program with its arguments, started without a shell in the workspace. The notification is JSON on its stdin. */
  readonly command?: readonly string[];
  /** Where the notification is posted as JSON: an `https` address, or an `http` one of this machine. */
  readonly url?: string;
  /** US dollars of one run; `budget` is reported once it costs more. */
  readonly budgetUsd?: number;
}

const FIELDS: { readonly [Name in keyof Required<NotifyOption>]: Read<Required<NotifyOption>[Name]> } = {
  on: listOf(oneOf(NOTIFY_ON)),
  command: listOf(text),
  url: (value, path, problems) => {
    const read = text(value, path, problems);
    const fault = read === undefined ? undefined : addressFault(read);
    // An address may hold a secret, and is not shown.
    if (fault !== undefined) problems.push({ path, message: fault });
    return fault === undefined ? read : undefined;
  },
  budgetUsd: that(
    (value): value is number => typeof value === "number" && Number.isFinite(value) && value > 0,
    "must be an amount of US dollars above 0",
  ),
};
const NAMES = Object.keys(FIELDS).join(", ");
const isField = (name: string): name is keyof NotifyOption => Object.hasOwn(FIELDS, name);

/** Reads one entry of `notify`. */
export const notifyOption: Read<NotifyOption> = (value, path, problems) => {
  const members = membersOf(value);
  if (members === undefined) {
    problems.push({ path, message: `must be an object, not ${kindOf(value)}`, suggestion: "write { url: … }" });
    return undefined;
  }
  const found: { -readonly [Name in keyof NotifyOption]: NotifyOption[Name] } = {};
  const own: Problem[] = [];
  const read = <Name extends keyof NotifyOption>(name: Name, member: unknown): void => {
    const setting: Required<NotifyOption>[Name] | undefined = FIELDS[name](member, `${path}.${name}`, own);
    if (setting !== undefined) found[name] = setting;
  };
  for (const [name, member] of members) {
    if (isField(name)) read(name, member);
    else own.push({ path: `${path}.${name}`, message: "is not a field of a notification", suggestion: `use ${NAMES}` });
  }
  const targets = members.filter(([name]) => name === "command" || name === "url");
  if (targets.length !== 1)
    own.push({ path, message: "needs either a command or a url", suggestion: "use an entry for each" });
  if (found.command?.length === 0) own.push({ path: `${path}.command`, message: "names no program" });
  problems.push(...own);
  return own.length === 0 ? found : undefined;
};

function addressFault(address: string): string | undefined {
  const read = readHttpAddress(address);
  if (!read.ok) return read.fault === "not_http" ? "is not an http(s) address" : "contains a user name or a password";
  const { protocol, hostname } = read.url;
  const isHere = hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname);
  return protocol === "https:" || isHere ? undefined : "must be an https address, or an http address of this machine";
}
