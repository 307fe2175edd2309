import type { Clock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { Choice, CommandSpec, CompletionSource } from "../composer/completion/completion.ts";
import { createFileFinder, type FileFinder, workspaceListing } from "../composer/completion/file-finder.ts";
import {
  type Composer,
  type ComposerEffect,
  clearText,
  createComposer,
  filesFound,
  replaceText,
  update,
} from "../composer/composer.ts";
import { editOutside } from "../composer/external-editor.ts";
import { appendHistory, readHistory } from "../composer/history/history-file.ts";
import type { Key } from "../composer/keys.ts";
import type { Environment } from "../user/environment.ts";

export interface InputOptions {
  readonly env: Environment;
  readonly clock: Clock;
  /** The workspace whose files `@` completes. */
  readonly root: string;
  /** The folder of the run store, whose files are not completed; undefined if there is none yet. */
  readonly store: () => Promise<string | undefined>;
  readonly commands: readonly CommandSpec[];
  /** The values of a kind of argument. */
  readonly choices: (kind: string) => readonly Choice[];
  readonly width: () => number;
  readonly submit: (text: string) => void;
  /** Gives the terminal to another program. */
  readonly lend: <T>(work: () => Promise<T>) => Promise<T>;
  /** Reports what failed. */
  readonly warn: (text: string) => void;
  readonly changed: () => void;
}

/** The composer with its side effects: the history file, the workspace's files and the external editor. */
export class Input {
  readonly #options: InputOptions;
  readonly #files: FileFinder;
  #composer: Composer;

  constructor(options: InputOptions) {
    this.#options = options;
    this.#files = createFileFinder({ list: workspaceListing(options.root, options.store) });
    const { entries, fault } = readHistory(options.env);
    this.#composer = createComposer(entries);
    if (fault !== undefined) options.warn(fault);
  }

  get composer(): Composer {
    return this.#composer;
  }

  get isEmpty(): boolean {
    return this.#composer.editor.text === "";
  }

  /** Whether the composer handled the key. */
  key(key: Key): boolean {
    const { state, handled, effect } = update(this.#composer, key, this.#context());
    this.#composer = state;
    if (effect !== undefined) this.#perform(effect);
    return handled;
  }

  clear(): void {
    this.#composer = clearText(this.#composer);
  }

  /** Replaces the text. Can be undone. */
  replace(text: string): void {
    this.#composer = replaceText(this.#composer, text);
  }

  close(): void {
    this.#files.close();
  }

  #context(): CompletionSource & { readonly width: number } {
    const { commands, choices, width } = this.#options;
    return { commands, choices, width: width() };
  }

  #perform(effect: ComposerEffect): void {
    const { env, clock, submit, warn } = this.#options;
    switch (effect.kind) {
      case "submit": {
        const fault = appendHistory(env, effect.text);
        if (fault !== undefined) warn(fault);
        submit(effect.text);
        break;
      }
      case "find-files":
        void this.#findFiles(effect.query, clock.now());
        break;
      case "edit-outside":
        void this.#edit(effect.text);
        break;
    }
  }

  async #findFiles(query: string, now: number): Promise<void> {
    const found = await this.#files.find(query, now);
    this.#composer = filesFound(this.#composer, found, this.#context());
    this.#options.changed();
  }

  async #edit(text: string): Promise<void> {
    const { env, lend, warn, changed } = this.#options;
    try {
      const edited = await lend(() => editOutside(text, env));
      if (edited.ok) this.replace(edited.text);
      else warn(edited.fault);
    } catch (thrown) {
      warn(`the text could not be edited: ${messageOf(thrown)}`);
    }
    changed();
  }
}
