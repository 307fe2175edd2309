import { nanoUsd, usdOf } from "../base/money.ts";
import type { Usage } from "../definition/result.ts";

export const NO_USAGE: Usage = Object.freeze({ inputTokens: 0, outputTokens: 0 });

export function addUsage(a: Usage, b: Usage): Usage {
  const costUsd = sum(a.costUsd, b.costUsd, (x, y) => usdOf(nanoUsd(x) + nanoUsd(y)));
  const unpricedCalls = sum(a.unpricedCalls, b.unpricedCalls, (x, y) => x + y);
  const unmeteredCalls = sum(a.unmeteredCalls, b.unmeteredCalls, (x, y) => x + y);
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(unpricedCalls === undefined ? {} : { unpricedCalls }),
    ...(unmeteredCalls === undefined ? {} : { unmeteredCalls }),
  };
}

function sum(a: number | undefined, b: number | undefined, add: (a: number, b: number) => number): number | undefined {
  return a === undefined ? b : b === undefined ? a : add(a, b);
}
