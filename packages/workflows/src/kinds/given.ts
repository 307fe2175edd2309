/** The members of a document's data that are given, since one that is undefined is not the same as one that is absent. */
export function given<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const own: { [K in keyof T]?: Exclude<T[K], undefined> } = JSON.parse(JSON.stringify(members));
  return own;
}
