/** An element of a page. */
export interface Element {
  readonly tag: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly Node[];
}
type Node = Element | string;

const VOID: ReadonlySet<string> = new Set(["meta", "br", "hr"]);
const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

interface Open {
  readonly tag: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: Node[];
}

/**
 * Reads a page as strictly as nobody has to: every element is closed where it belongs, every attribute is quoted and named once,
 * no text holds a `<` or an entity of another kind. What a browser would fix is an error here.
 */
export function parsePage(page: string): Element {
  const start = /^<!doctype html>\n/.exec(page)?.[0].length;
  if (start === undefined) throw new Error("the page has no doctype");
  const top: Open = { tag: "", attributes: new Map(), children: [] };
  const open: Open[] = [top];
  let at = start;
  while (at < page.length) {
    const here = open.at(-1) ?? top;
    if (here.tag === "style") {
      const end = page.indexOf("</style", at);
      here.children.push(page.slice(at, end));
      at = end;
    } else if (page[at] !== "<") {
      const end = page.indexOf("<", at);
      const text = page.slice(at, end === -1 ? page.length : end);
      here.children.push(decoded(text));
      at += text.length;
      continue;
    }
    const tag = /^<(\/?)([a-z][a-z0-9]*)((?: [A-Za-z-]+(?:="[^"<>]*")?)*)(\/?)>/i.exec(page.slice(at, at + 20_000));
    if (tag === null) throw new Error(`not a tag: ${JSON.stringify(page.slice(at, at + 80))}`);
    const [whole, closing, name = "", written = "", alone] = tag;
    at += whole.length;
    if (closing === "/") {
      if (here.tag !== name || written !== "") throw new Error(`</${name}> ends <${here.tag}>`);
      open.pop();
      continue;
    }
    const element: Open = { tag: name, attributes: attributesIn(written), children: [] };
    here.children.push(element);
    if (alone === "" && !VOID.has(name)) open.push(element);
  }
  const [root, ...others] = top.children.filter((child) => typeof child !== "string");
  if (open.length !== 1 || root === undefined || others.length > 0) throw new Error("the page is not one element");
  return root;
}

function attributesIn(written: string): ReadonlyMap<string, string> {
  const attributes = new Map<string, string>();
  for (const [, name = "", value = ""] of written.matchAll(/ ([A-Za-z-]+)(?:="([^"]*)")?/g)) {
    if (attributes.has(name)) throw new Error(`${name} is there twice`);
    attributes.set(name, decoded(value));
  }
  return attributes;
}

function decoded(text: string): string {
  return text.replaceAll(/&([^;&]{0,12};?)/g, (_whole, reference: string) => {
    const name = reference.endsWith(";") ? reference.slice(0, -1) : "";
    const [, code] = /^#(\d+)$/.exec(name) ?? [];
    const character = NAMED[name] ?? (code === undefined ? undefined : String.fromCodePoint(Number(code)));
    if (character === undefined) throw new Error(`not a reference: &${reference}`);
    return character;
  });
}

/** An element and all below it, in order. */
export function elementsIn(element: Element): readonly Element[] {
  return [element, ...element.children.flatMap((child) => (typeof child === "string" ? [] : elementsIn(child)))];
}

export function textIn(node: Node): string {
  return typeof node === "string" ? node : node.children.map(textIn).join("");
}

/** The values of an attribute, in order. */
export function valuesOf(element: Element, name: string): readonly string[] {
  return elementsIn(element).flatMap(({ attributes }) => attributes.get(name) ?? []);
}

/** The section of a report with that id. */
export function sectionIn(page: Element, id: string): Element {
  const found = elementsIn(page).find(({ attributes }) => attributes.get("id") === id);
  if (found === undefined) throw new Error(`no section ${id}`);
  return found;
}
