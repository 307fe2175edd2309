import { cleanInline } from "../text/clean.ts";
import type { Line } from "../text/line.ts";
import { ownVersion } from "../version.ts";

/** What stands at the top when the app opens: where it works, and what can be typed. */
export function greeting(folder: string): readonly Line[] {
  return [
    [
      { text: `Sluice ${ownVersion()}`, style: "strong" },
      { text: `  ${cleanInline(folder)}`, style: "dim" },
    ],
    [
      { text: "/run codeReview <task>", style: "accent" },
      { text: " starts a run, " },
      { text: "/help", style: "accent" },
      { text: " tells the rest, " },
      { text: "Ctrl-D", style: "accent" },
      { text: " quits" },
    ],
  ];
}
