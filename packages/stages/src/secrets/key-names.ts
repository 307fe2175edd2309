// Which names say that their value is a key, and which values look like one.

/** Names of variables that hold keys. */
const KEY_VARIABLE =
  /(?:^|_)(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET(?:_KEY(?:_BASE)?)?|AUTH|PRIVATE_KEY|CREDENTIALS?|PASS|PAT|PWD)$|(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|BEARER_TOKEN_\w+)$/i;
/** Many of these are not secret (`SORT_KEY=name`), so the value must look like a secret too. */
const PERHAPS_KEY = /(?:^|_)(?:KEY|JWT)$/i;
/** What may follow the name of a key: which one of several it is. */
const WHICH_ONE =
  /_(?:\d{1,4}|PROD(?:UCTION)?|LIVE|TEST(?:ING)?|DEV(?:ELOPMENT)?|STAG(?:E|ING)|SANDBOX|PREVIEW|PRIMARY|SECONDARY|OLD|NEW)$/i;
/** The end of names of settings that hold keys. */
const KEY_SETTING = /(?:key|token|secret|password|auth)$/i;
const PRIVATE_KEY = /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/;
/** A value that names the file of a key. A key in base64 may begin with a slash as well, but has no ending. */
const FILE =
  /^(?:(?:~|\.{1,2})\/|[A-Z]:\\|\/(?:home|Users|root|etc|var|opt|tmp|run|usr|mnt|srv)\/|\/[\w./@+-]*\.[a-z][a-z0-9]{1,4}$)/;

/** Whether the name of a variable says that it holds a key. */
export function isKeyName(name: string): boolean {
  return KEY_VARIABLE.test(name);
}

/** Whether the name of a variable may say that it holds a key, if its value looks like one. */
export function mayBeKeyName(name: string): boolean {
  const base = name.replace(WHICH_ONE, "");
  return isKeyName(base) || PERHAPS_KEY.test(base);
}

/** Whether the name of a setting, a flag or a parameter says that it holds a key. */
export function isKeySetting(name: string): boolean {
  return isKeyName(name) || KEY_SETTING.test(name);
}

/** Excludes passwords such as `postgres`: redacting ordinary words would break files and protect nothing. */
export function looksRandom(text: string): boolean {
  return text.length >= 16 && /\d/.test(text) && /[A-Za-z]/.test(text) && !/\s/.test(text);
}

/** Whether the value of a variable with a key's name looks like one: it looks random and names no file, or it holds a private key. */
export function looksLikeKey(text: string): boolean {
  return PRIVATE_KEY.test(text) || (looksRandom(text) && !FILE.test(text));
}

/** Whether a word looks like a key without any name: it has 16 letters and digits in a row. Ordinary paths, names and UUIDs do not. */
export function isKeyWord(word: string): boolean {
  return (word.match(/[A-Za-z0-9]{16,}/g) ?? []).some(looksRandom);
}
