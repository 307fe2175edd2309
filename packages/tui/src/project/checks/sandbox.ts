import { realpathSync } from "node:fs";
import { probeSandbox } from "@sluice/stages";
import type { Place } from "../place.ts";
import { type Check, ok, warning } from "./check.ts";

/** Builds the sandbox that commands would run in, and lets a canary try to get out of it. */
export async function checkSandbox(workspace: string, { store }: Pick<Place, "store">): Promise<Check> {
  const { wall, missing } = await probeSandbox(realpathSync(workspace), [store]);
  if (wall !== undefined) return ok("sandbox", `${wall} holds: a program in it changed nothing and reached nothing`);
  const why = missing?.reason ?? "it was not looked for";
  return warning(
    "sandbox",
    `${why}; commands run without one, and those that are not plain are asked about`,
    missing?.fix,
  );
}
