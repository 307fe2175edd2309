import { readFileSync } from "node:fs";

/** The version of this package. */
export function ownVersion(): string {
  const { version }: { readonly version: string } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return version;
}
