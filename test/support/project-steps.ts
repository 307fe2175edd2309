/** What happens to a project folder, one after the other, in `fixtures/command/opens.ts`. */
export type ProjectStep =
  /** A command opens the project, with --trust or without, and calls the guard hook of its config. */
  | { readonly open: "trust" | "plain" | "trust, and call" | "plain, and call" }
  /** The same, with a change between the load and the call. */
  | { readonly open: "plain, and call"; readonly before: readonly [path: string, content: string] }
  | { readonly write: readonly [path: string, content: string] }
  | { readonly link: readonly [path: string, target: string] };
