import type { Environment } from "@sluice/tui/user";
import type { TerminalFacts } from "../../../output/terminal.ts";
import { type Check, ok, warning } from "./check.ts";

const NARROW = 60;

/** Checks whether there is a terminal, and what it can show. */
export function checkTerminal(facts: TerminalFacts, env: Environment): readonly Check[] {
  const { stdin, stdout, stderr } = facts;
  if (!(stdin && stdout && stderr)) {
    const piped = Object.entries({ stdin, stdout, stderr }).filter(([, isTerminal]) => !isTerminal);
    const names = piped.map(([name]) => name).join(", ");
    return [ok("terminal", `not a terminal (${names}): runs ask no questions here`)];
  }
  return [sizeOf(facts, env), coloursOf(facts, env), unicodeOf(env)];
}

function sizeOf({ columns, rows }: TerminalFacts, { TERM = "" }: Environment): Check {
  const measured = columns === undefined || columns === 0 ? "unknown size" : `${columns} × ${rows}`;
  const size = `${measured}, TERM=${TERM === "" ? "(not set)" : TERM}`;
  if (TERM === "" || TERM === "dumb")
    return warning(
      "terminal",
      `${size}: it may show neither colours nor boxes`,
      "if your terminal supports it: export TERM=xterm-256color",
    );
  if ((columns ?? 0) < NARROW && columns !== 0)
    return warning("terminal", `${size}: narrow, so lines wrap`, `widen it to at least ${NARROW} columns`);
  return ok("terminal", size);
}

function coloursOf({ colourBits }: TerminalFacts, { NO_COLOR }: Environment): Check {
  if ((NO_COLOR ?? "") !== "") return ok("colours", "none, as set by NO_COLOR");
  return ok("colours", colourBits <= 1 ? "none" : colourBits >= 24 ? "16 million" : `${2 ** colourBits}`);
}

function unicodeOf({ LC_ALL, LC_CTYPE, LANG }: Environment): Check {
  const locale = [LC_ALL, LC_CTYPE, LANG].find((value) => (value ?? "") !== "");
  if (/utf-?8/i.test(locale ?? "") || process.platform === "win32") return ok("unicode", locale ?? "yes");
  return warning(
    "unicode",
    `the locale is ${locale ?? "not set"}: characters beyond ASCII may not display`,
    "export LANG=C.UTF-8",
  );
}
