/** Locales in which bash takes a line for the letters that were judged: in some others a backslash is half of a letter. */
export const READ_ALIKE = /^(?:C|POSIX|[A-Za-z_]+\.utf-?8(?:@[A-Za-z]+)?)$/i;

const WORD = /^[A-Za-z0-9_.-]*$/;

/** Variables that a line may set, and the values that do no harm. */
const HARMLESS = new Map<string, RegExp>([
  ["CI", WORD],
  ["NO_COLOR", WORD],
  ["FORCE_COLOR", WORD],
  ["NODE_ENV", WORD],
  ["PYTHONDONTWRITEBYTECODE", WORD],
  ["PYTHONUNBUFFERED", WORD],
  ["RUST_BACKTRACE", WORD],
  ["TZ", /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/],
  ["LANG", READ_ALIKE],
  ["PAGER", /^cat$/],
  ["GIT_PAGER", /^cat$/],
]);

/** Whether a line that sets this variable means no more than the same line without it. `variables` are allowed with plain words. */
export function isHarmlessSetting(name: string, value: string, variables: readonly string[]): boolean {
  if (/^LC_[A-Z]+$/.test(name)) return READ_ALIKE.test(value);
  const shape = HARMLESS.get(name);
  if (shape !== undefined) return shape.test(value);
  return variables.includes(name) && /^[A-Za-z0-9_.,:/@%+=-]*$/.test(value);
}
