// The summary of a job: what was changed, what was denied, what it cost and how it ended.
import { code, jsonBlock, page, table } from "./page.mjs";

const HEADINGS = {
  success: "completed",
  denied: "completed with denied calls",
  "no-change": "completed without a change",
  suspended: "suspended",
  failed: "failed",
  cancelled: "cancelled",
  unverified: "the record cannot be verified",
  tampered: "the run interfered with the job",
  error: "no run",
};

/** The summary as Markdown. */
export function summaryOf({ conclusion, reason, result, changes, record, ms, artifact, store }) {
  return page([
    `## Sluice: ${HEADINGS[conclusion]}`,
    reason === "" ? "" : `<p>The job fails: ${code(reason, 1_000)}</p>`,
    factsTable({ result, record, ms }),
    ...changesPart(changes),
    ...deniedPart(result?.denied ?? []),
    ...suspendedPart(result, artifact, store),
    ...stagesPart(result?.stages ?? []),
    ...(result?.output === null || result?.output === undefined ? [] : ["### Output", jsonBlock(result.output)]),
  ]);
}

function factsTable({ result, record, ms }) {
  const usage = result?.usage;
  return table(
    [],
    [
      ...(result?.runId === undefined || result.runId === null ? [] : [["run", code(result.runId)]]),
      ...(usage === undefined
        ? []
        : [
            ["cost", costOf(usage)],
            ["tokens", tokensOf(usage)],
          ]),
      ...(ms === undefined ? [] : [["time", `${(ms / 1_000).toFixed(1)} s`]]),
      ...(record === undefined ? [] : [["record", recordOf(record)]]),
    ],
  );
}

function costOf({ costUsd, unpricedCalls = 0 }) {
  if (unpricedCalls > 0)
    return costUsd === undefined
      ? `unknown: the price of ${unpricedCalls} model calls is not known`
      : `at least $${costUsd.toFixed(4)}: the price of ${unpricedCalls} model calls is not known`;
  return costUsd === undefined ? "unknown" : `$${costUsd.toFixed(4)}`;
}

function tokensOf({ inputTokens, outputTokens }) {
  return `${inputTokens} in, ${outputTokens} out`;
}

function recordOf({ verified, records, head }) {
  return verified
    ? `verified: ${records} records, head ${code(head)}`
    : "not verified: it was changed or cannot be read";
}

function changesPart(changes) {
  if (changes === undefined) return ["### Changes", "<p>Unknown: git could not compare the files.</p>"];
  if (changes.length === 0) return ["### Changes", "<p>No file changed.</p>"];
  const kinds = { A: "added", D: "deleted", T: "type changed" };
  const lines = ({ added, removed }) => (added === null ? "binary" : `+${added} -${removed}`);
  return [
    `### Changes: ${counted(changes.length, "file")}`,
    table(
      ["file", "change", "lines"],
      changes.map((file) => [code(file.path), kinds[file.status] ?? "modified", lines(file)]),
    ),
  ];
}

function deniedPart(denied) {
  if (denied.length === 0) return ["### Denied", "<p>No call was denied.</p>"];
  return [
    `### Denied: ${counted(denied.length, "call")}`,
    table(
      ["stage", "tool", "cause"],
      denied.map(({ executionId, tool, cause }) => [code(executionId), code(tool), code(cause)]),
    ),
  ];
}

function suspendedPart(result, artifact, store) {
  if (result?.status !== "suspended" || result.runId === null) return [];
  const { reason, code: fault, message, wakeAt, retryAt, requests = [] } = result.suspended ?? {};
  const due = wakeAt ?? retryAt;
  return [
    "### Suspended",
    table(
      [],
      [
        ["reason", code([reason, fault].filter(Boolean).join(", "))],
        ...(message === undefined ? [] : [["message", code(message, 1_000)]]),
        ...(due === undefined ? [] : [["due", code(new Date(due).toISOString())]]),
        ...requests.map(({ kind, requestId }) => ["waits for", `${code(kind)} ${code(requestId)}`]),
      ],
    ),
    store
      ? `<p>The artifact ${code(`${artifact}-store`)} holds its journal. Another job continues it with the input resume: ${code(result.runId)}</p>`
      : "<p>Its journal was not kept, so no other job can continue it.</p>",
  ];
}

function stagesPart(stages) {
  if (stages.length === 0) return [];
  return [
    "### Stages",
    table(
      ["stage", "status", "turns", "tokens", "message"],
      stages.map(({ executionId, status, turns, usage, message = "" }) => [
        code(executionId),
        code(status),
        String(Number(turns)),
        tokensOf(usage),
        message === "" ? "" : code(message),
      ]),
    ),
  ];
}

function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
