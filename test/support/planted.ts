import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { secretForms } from "../../packages/stages/src/secrets/encodings.ts";

/** Secrets, each for one place: one that only its value gives away, and one that everybody would take for a key. */
export interface Planted {
  readonly place: string;
  /** What stands in the place of the known one. */
  readonly name: string;
  /** The value of a variable of the environment that is called like a key. */
  readonly known: string;
  /** In a form that is well known. */
  readonly looks: string;
}

export interface Plants {
  readonly all: readonly Planted[];
  /** Both of a place, in a text. */
  at(place: string): string;
  one(place: string): Planted;
  /** Variables that hold the known ones, but for those that are known from elsewhere. */
  readonly env: Readonly<Record<string, string>>;
  /** By place, both in a text: for programs of the tests. */
  readonly texts: Readonly<Record<string, string>>;
}

/** `elsewhere` has what the secrets of places are called that no variable here makes known. */
export function plants(places: readonly string[], elsewhere: Readonly<Record<string, string>>): Plants {
  const all = places.map((place): Planted => {
    const digits = createHash("sha256")
      .update(place)
      .digest("base64")
      .replaceAll(/[^A-Za-z0-9]/g, "x");
    return {
      place,
      name: elsewhere[place] ?? variableOf(place),
      known: `K7${digits.slice(0, 22)}`,
      looks: `sk-${digits.slice(-26).toUpperCase()}9`,
    };
  });
  const byPlace = new Map(all.map((one) => [one.place, one]));
  const one = (place: string): Planted => {
    const found = byPlace.get(place);
    if (found === undefined) throw new Error(`nothing was planted in ${place}`);
    return found;
  };
  const both = ({ known, looks }: Planted): string => `${known} and ${looks}`;
  return {
    all,
    one,
    at: (place) => both(one(place)),
    env: Object.fromEntries(
      all.flatMap(({ place, name, known }) => (place in elsewhere ? [] : [[name, known] as const])),
    ),
    texts: Object.fromEntries(all.map((planted) => [planted.place, both(planted)])),
  };
}

function variableOf(place: string): string {
  return `${place.toUpperCase().replaceAll("-", "_")}_TOKEN`;
}

/** Where secrets are looked for. */
export interface Sink {
  readonly name: string;
  readonly text: string;
  /** A place that keeps what tools really returned, as the docs say: only known secrets are none of its business. */
  readonly keepsLooks?: true;
}

/** Further secrets, and what each is. */
interface Further {
  readonly known: ReadonlyMap<string, string>;
  readonly looks: ReadonlyMap<string, string>;
}

/** Each secret that is in a sink: its place, the sink, and the text around it. */
export function leaks(all: readonly Planted[], sinks: readonly Sink[], further: Further): readonly string[] {
  const found: string[] = [];
  const forms = new Map([
    ...further.known,
    ...all.flatMap(({ place, known: value }) => [
      ...[...secretForms(new Map([[value, place]])).keys()].map((form) => [form, `${place} (known)`] as const),
      // Half of one is too much.
      [value.slice(0, 12), `${place} (half of the known)`] as const,
      [value.slice(12), `${place} (half of the known)`] as const,
    ]),
  ]);
  const looks = new Map([
    ...further.looks,
    ...all.map(({ place, looks: value }) => [value, `${place} (by its looks)`] as const),
  ]);
  for (const { name, text, keepsLooks } of sinks) {
    for (const [secret, place] of keepsLooks === true ? forms : [...forms, ...looks]) {
      const at = text.indexOf(secret);
      if (at < 0) continue;
      const around = text.slice(Math.max(0, at - 80), at + secret.length + 20).replaceAll(/\s+/g, " ");
      found.push(`${place} × ${name}: …${around}…`);
    }
  }
  return found;
}

/** Every byte of a folder, as characters. */
export function bytesOf(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}
