import { expect, test } from "vitest";
import { fakeRun } from "../support/fake-gateway-run.ts";
import { gateway } from "../support/gateway-clients.ts";
import { conformance, conformanceTools, withTokens } from "../support/gateway-conformance.ts";

/** The scenarios of the official suite that a server of tools has to pass. */
const APPLICABLE = [
  "server-initialize",
  "ping",
  "tools-list",
  "tools-call-simple-text",
  "tools-call-error",
  "tools-call-with-progress",
  "tools-call-elicitation",
  "json-schema-2020-12",
  "server-sse-multiple-streams",
  "dns-rebinding-protection",
];

/** The others, by the reason why the gateway cannot pass them. */
const NOT_APPLICABLE: Readonly<Record<string, readonly string[]>> = {
  "the gateway declares tools and no other capability": [
    "logging-set-level",
    "tools-call-with-logging",
    "completion-complete",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
  ],
  "results of the gateway's tools are text": [
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
  ],
  "the gateway calls no model": ["tools-call-sampling"],
  "the gateway asks with one form of its own": ["elicitation-sep1034-defaults", "elicitation-sep1330-enums"],
  "a stream is not resumed: a client that lost it makes the call again": ["server-sse-polling"],
};

test("the gateway passes the scenarios of the official suite that apply to it", async () => {
  const url = await withTokens(() => gateway(fakeRun(conformanceTools()), { progressMs: 20 }));
  const results = await conformance(`${url}/mcp`);

  const passed = [...results].filter(([, ok]) => ok).map(([name]) => name);
  expect(passed.sort()).toEqual([...APPLICABLE].sort());
  const failed = [...results].filter(([, ok]) => !ok).map(([name]) => name);
  expect(failed.sort()).toEqual(Object.values(NOT_APPLICABLE).flat().sort());
});
