import type {
  AnyState,
  ChoosingState,
  ChosenRoute,
  ModelSettings,
  Reads,
  RouteFallback,
  StageContext,
  StateCommon,
} from "@sluice/core";
import {
  type CommonOptions,
  createReport,
  isTexts,
  MODEL_SETTINGS,
  readModelSettings,
  readPrompt,
  stateSpec,
} from "@sluice/core/runtime";

/** The kind of states that let a model choose what follows. */
const ROUTER = "router";

/** The options of a router. */
export interface RouterOptions<A extends Record<string, AnyState>, T extends string, I>
  extends Omit<StateCommon<Reads<A>, I, ChosenRoute>, "allowedTools" | "onCall" | "sandbox" | "env">,
    ModelSettings {
  /** The states that may follow. One that has reached its visit cap is not offered. */
  readonly targets: readonly T[];
  /** States whose outputs the prompt and the hooks read. Only their types are used. */
  readonly reads?: A;
  /** What the model reads before it chooses: text with `{{ctx.path}}` templates, or a function. */
  readonly prompt: string | ((ctx: StageContext<Reads<A>, I>) => string);
  /** How often the model may choose; what was wrong with a refused choice is fed back. Default: 3. */
  readonly tries?: number;
  /** Where the run continues if the router fails, whatever the reason. Without it, its `failed` route decides. */
  readonly fallback?: RouteFallback;
}
/** RouterOptions with erased types. */
type ErasedOptions = CommonOptions &
  Omit<RouterOptions<Record<string, AnyState>, string, unknown>, keyof CommonOptions>;

const KEYS = ["targets", "reads", "prompt", ...MODEL_SETTINGS, "tries", "fallback"];
const TRIES = 3;

/**
 * Defines a state in which a model chooses the state that follows, among declared targets and with an input that fits its schema.
 * It has no tools: it can only choose. Its output `{ to, input, reason }` is its route, so it needs no entry in `next`. Never
 * throws: `pipeline()` reports its problems with all others.
 */
export function router<
  const T extends string,
  const A extends Record<string, AnyState> = Record<never, never>,
  I = undefined,
>(options: RouterOptions<A, T, I>): ChoosingState<T, NoInfer<I>>;
export function router(given: ErasedOptions): ChoosingState<string, never> {
  const { targets, prompt, tries = TRIES, fallback, ...rest } = given;
  const report = createReport();
  const settings = readModelSettings(report, rest);
  const common: CommonOptions = settings.rest;
  const { references, render } = readPrompt(report, prompt, common.setup !== undefined);
  const isList = isTexts(targets);
  if (!isList) report.add("targets", "must be a list of states", '["fix", "done"]');
  if (!Number.isSafeInteger(tries) || tries < 1) report.add("tries", "must be a whole number from 1");
  if (fallback !== undefined && (typeof fallback !== "object" || typeof fallback?.to !== "string"))
    report.add("fallback", 'must be an object: { to: "fix", input: {} }');
  const chosen = isList ? [...targets] : [];
  const spec = stateSpec(
    ROUTER,
    { ...common, allowedTools: [] },
    {
      keys: KEYS,
      problems: report.problems,
      options: { prompt: render, visibility: "allowed", turnCap: tries, ...settings.options },
      chooses: { targets: chosen, ...(fallback === undefined ? {} : { fallback: { ...fallback } }) },
      checksOutput: true,
      completionTool: "choose",
      templates: { prompt: references },
      shape: { turnCap: tries },
      parts: { prompt: typeof prompt === "function" ? "a function" : { data: prompt }, tries, ...settings.parts },
    },
  );
  return { kind: ROUTER, targets: chosen, spec };
}
