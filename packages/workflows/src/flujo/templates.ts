// Flujo's templates, `{{ context.name }}`, as those of a state, `{{ctx.context.name}}`.

/** Where the values of a step's templates are. */
export interface TemplateRoots {
  /** `previous_step`. */
  readonly previousStep: string;
  /** `resume_input`. */
  readonly answer: string;
  /** The output of a step, or undefined if there is no such step. */
  stepPath(name: string): string | undefined;
}

/** Where a stage finds them. `keyOf` is the name of a step's output upstream. */
export function stageRoots(keyOf: (step: string) => string | undefined): TemplateRoots {
  return {
    previousStep: "ctx.input.previous_step",
    answer: "ctx.input.answer",
    stepPath: under("ctx.upstream", keyOf),
  };
}

/** A step that is not a stage gets them with the input of its own run. */
export function childRoots(keyOf: (step: string) => string | undefined): TemplateRoots {
  const input = "ctx.run.input";
  return {
    previousStep: `${input}.previous_step`,
    answer: `${input}.answer`,
    stepPath: under(`${input}.steps`, keyOf),
  };
}

function under(root: string, keyOf: (step: string) => string | undefined): (step: string) => string | undefined {
  return (step) => {
    const key = keyOf(step);
    return key === undefined ? undefined : `${root}.${key}`;
  };
}

/** No template begins inside another one, so that those that are never closed cost no more than their length. */
const TEMPLATE = /(?<!\\)\{\{\s*([A-Za-z_]\w*)((?:[^{}]|\{(?!\{)|\}(?!\}))*)\}\}/gu;
/** The name after `steps`, and the word `output` that may follow it. */
const STEP = /^(?:\.([A-Za-z_][\w-]*)|\["([^"\\]*)"\])(?:\.output(?![\w-]))?/u;

/** The text with its templates as those of a state. What is not one of Flujo's roots is left as it is. */
export function stateTemplates(text: string, roots: TemplateRoots): string {
  return text.replaceAll(TEMPLATE, (whole, root: string, rest: string) => {
    const path = pathOf(root, rest.trimEnd(), roots);
    return path === undefined ? whole : `{{${path}}}`;
  });
}

function pathOf(root: string, rest: string, roots: TemplateRoots): string | undefined {
  switch (root) {
    case "context":
      return `ctx.context${rest}`;
    case "previous_step":
      return `${roots.previousStep}${rest}`;
    case "resume_input":
      return `${roots.answer}${rest}`;
    case "input":
      return `ctx.run.input${rest}`;
    case "steps": {
      const [found, name, quoted] = STEP.exec(rest) ?? [];
      const path = found === undefined ? undefined : roots.stepPath(name ?? quoted ?? "");
      return path === undefined || found === undefined ? undefined : `${path}${rest.slice(found.length)}`;
    }
    default:
      return undefined;
  }
}

/** Whether a text reads what a state has from the one before it: its output, or the last answer. */
export function readsInput(text: string): boolean {
  return [...text.matchAll(TEMPLATE)].some(([, root]) => root === "previous_step" || root === "resume_input");
}

/** Whether a text reads the last answer of a person. */
export function readsAnswer(text: string): boolean {
  return [...text.matchAll(TEMPLATE)].some(([, root]) => root === "resume_input");
}

/** The steps that a text reads, and where it does. */
export function stepsRead(
  text: string,
): readonly { readonly name: string; readonly offset: number; readonly length: number }[] {
  return [...text.matchAll(TEMPLATE)].flatMap(({ 0: whole, 1: root, 2: rest = "", index: offset }) => {
    const [found, name, quoted] = root === "steps" ? (STEP.exec(rest) ?? []) : [];
    return found === undefined ? [] : [{ name: name ?? quoted ?? "", offset, length: whole.length }];
  });
}
