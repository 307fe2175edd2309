/** A folder whose config is loaded by `fixtures/command/loads.ts`, and what is done to it after its code was digested. */
export interface Load {
  readonly root: string;
  readonly write?: readonly [path: string, content: string];
  /** Puts a link in the place of what is there. */
  readonly link?: readonly [path: string, target: string];
}
