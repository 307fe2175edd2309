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

/** In a run of its own, a step gets what it reads with the run's input. `keyOf` is the name of a step's output there. */
export function childRoots(keyOf: (step: string) => string): TemplateRoots {
  return {
    previousStep: "ctx.run.input.previous_step",
    answer: "ctx.run.input.answer",
    stepPath: (name) => `ctx.run.input.steps.${keyOf(name)}`,
  };
}

const TEMPLATE = /(?<!\\)\{\{\s*([A-Za-z_]\w*)((?:[^}]|\}(?!\}))*)\}\}/gu;
/** The name after `steps`, and the word `output` that may follow it. */
const STEP = /^(?:\.([A-Za-z_][\w-]*)|\["([^"\\]*)"\])(?:\.output(?![\w-]))?/u;

/** The text with its templates as those of a state. What is none of Flujo's roots is left as it is. */
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

/** The steps that a text reads. */
export function stepsRead(text: string): readonly string[] {
  return [...text.matchAll(TEMPLATE)].flatMap(([, root, rest = ""]) => {
    const [found, name, quoted] = root === "steps" ? (STEP.exec(rest) ?? []) : [];
    return found === undefined ? [] : [name ?? quoted ?? ""];
  });
}
