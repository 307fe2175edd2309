import type { Plants } from "./planted.ts";
import type { ServerReply } from "./sse-server.ts";

/** A secret with characters that JSON and URLs escape, and that no pattern knows. */
export const PHRASE = 'open "sesame" \\ now/please+1';

/** What the model says, turn by turn, after three refusals by the provider; `known` are places that only their settings make known. */
export function saysSecrets({ at, one }: Plants, known: readonly string[]): readonly ServerReply[] {
  const both = (place: string): string => at(place);
  const { known: key } = one("provider-key");
  const bash = (command: string) => ({ name: "Bash", input: { command } });
  const finish = (place: string) => ({ name: "finish", input: { text: both(place) } });
  const again = {
    "retry-after": "0",
    "set-cookie": `sid=${both("provider-header")}`,
    "x-request-id": both("provider-header"),
  };
  const echo = JSON.stringify({
    type: "error",
    error: { type: "rate_limit_error", message: `limit for ${both("provider-limit")}, x-api-key: ${key}` },
    headers: { "x-api-key": key },
  });
  return [
    {
      text: `I was about to say ${both("provider-stream")}`,
      events: (events) => [
        ...events.slice(0, 4),
        `event: content_block_delta\ndata: {"type":"${both("provider-stream")}\n\n`,
      ],
    },
    { status: 429, rawBody: echo, headers: again },
    { status: 503, rawBody: `<h1>no</h1><p>x-api-key: ${key}</p>${both("provider-page")}`, headers: again },
    {
      reasoning: `hm, ${both("reasoning")}`,
      text: `It is ${both("text")}, ${PHRASE}, ${known.map(both).join(", ")}.`,
      calls: [
        { name: "Read", input: { file_path: ".env" } },
        { name: "Read", input: { file_path: "key.pem" } },
        { name: "Read", input: { file_path: "edited.txt" } },
        { name: "Grep", input: { pattern: "needle", output_mode: "content" } },
        { name: "Grep", input: { pattern: both("grep-pattern") } },
        { name: "Glob", input: { pattern: "src/*.ts" } },
        {
          name: "Broken",
          input: { text: both("argument"), password: "tulip-argument-window", [both("argument-key")]: [PHRASE] },
        },
        { name: "Speaks", input: {}, id: `toolu_${one("call-id").known}_${one("call-id").looks}` },
        { name: one("tool-name").known, input: {} },
        { name: one("tool-name").looks, input: {} },
        { name: "Speaks", rawInput: `{"text":"${both("broken-arguments")}` },
      ],
    },
    {
      calls: [
        bash(`true 'Authorization: Bearer ${one("bash-header").known}' 'x-api-key: ${one("bash-header").looks}'`),
        bash(`true https://me:${one("bash-login").known}@h.example/ https://me:${one("bash-login").looks}@h.example/`),
        bash(`true 'https://h.example/?token=${one("bash-query").known}&api_key=${one("bash-query").looks}'`),
        bash(`true SOME_TOKEN=${one("bash-variable").known} OTHER_TOKEN=${one("bash-variable").looks}`),
        bash("cat stdout.txt encoded.txt; cat stderr.txt >&2"),
        bash("cat exit.txt; exit 3"),
        bash("cat big.txt"),
        bash("env"),
        { name: "Vetoed", input: {} },
        { name: "Write", input: { file_path: "new.txt", content: both("write-content") } },
        {
          name: "Edit",
          input: { file_path: "edited.txt", old_string: both("edit-old"), new_string: both("edit-new") },
        },
        ...["says", "fails", "breaks", "ends"].map((name) => ({ name: `mcp__near__${name}`, input: {} })),
      ],
    },
    {
      calls: [
        { name: "Outside", input: { text: both("refused-call") } },
        { name: "AskUser", input: { question: `Is it ${both("question")}?` } },
        { name: "finish", input: { text: 1, [both("invalid-completion")]: both("invalid-completion") } },
      ],
    },
    { calls: [finish("completion")] },
    { calls: [finish("second-completion")] },
    { calls: [finish("last-completion")] },
  ];
}
