import type { Documented, Entry } from "./public-types.ts";

/** The file of an entry in docs/api: `@sluice/core/host` is core-host.md. */
export function apiPageName(entry: string): string {
  return `${entry.replace("@sluice/", "").replaceAll("/", "-")}.md`;
}

/**
 * The page of one entry: functions and values first, then types, each with its comment and its declaration. Types that another
 * page has are only linked.
 */
export function apiPage({ name, own, needed }: Entry, about: string, all: readonly Entry[]): string {
  const values = own.filter(({ isType }) => !isType);
  const types = own.filter(({ isType }) => isType);
  const pages = new Map(all.flatMap((entry) => entry.own.map((one) => [textOf(one), entry.name] as const)));
  const elsewhere = needed.flatMap((one) => {
    const page = pages.get(textOf(one));
    return page === undefined ? [] : [`[${one.name}](${apiPageName(page)}#${one.name.toLowerCase()})`];
  });
  const rest = needed.filter((one) => !pages.has(textOf(one)));
  return [
    `# ${name}\n`,
    `${about} \`npm run api\` writes this page from the declarations. [All entries](README.md)\n`,
    ...section("Functions and values", values),
    ...section("Types", types),
    ...(elsewhere.length === 0 ? [] : ["## Types of other entries\n", `${elsewhere.join(" · ")}\n`]),
    ...section("Types that these use", rest, "They are not exported."),
  ].join("\n");
}

/** The list of all pages. */
export function apiIndex(entries: readonly { readonly name: string; readonly about: string }[]): string {
  const rows = entries.map(({ name, about }) => `| [\`${name}\`](${apiPageName(name)}) | ${about} |`);
  return [
    "# API reference\n",
    "One page for each entry of the packages. To learn Sluice, start with [your first pipeline](../first-pipeline.md).\n",
    "| Entry | Contains |",
    "| --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

function textOf({ name, text }: Documented): string {
  return `${name} ${text}`;
}

function section(title: string, all: readonly Documented[], note?: string): readonly string[] {
  if (all.length === 0) return [];
  const links = [...new Set(all.map(({ name }) => name))].map((name) => `[${name}](#${name.toLowerCase()})`);
  return [`## ${title}\n`, ...(note === undefined ? [] : [`${note}\n`]), `${links.join(" · ")}\n`, ...all.map(entryOf)];
}

function entryOf({ name, doc, text }: Documented): string {
  return [`### ${name}\n`, ...(doc === "" ? [] : [`${doc}\n`]), "```ts", indented(text), "```\n"].join("\n");
}

/** With two spaces per level, as everywhere else; the compiler writes four. */
function indented(text: string): string {
  return text.replaceAll(/^(?: {4})+/gm, (spaces) => spaces.slice(spaces.length / 2)).replaceAll(/\n{2,}/g, "\n");
}
