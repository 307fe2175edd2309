import type { AndOr, Elif, If, Pipeline, PipelineNode, SyntaxNode } from "unbash";
import {
  type Case,
  type CompoundList,
  parse,
  type Redirection,
  type Script,
  type Statement,
  type TestExpression,
  type While,
  type Word,
} from "unbash";
import { after, type Directories, type Flow, START, sameDirectories, stay, union } from "./directory.ts";
import { type ExpansionVisitor, visitArithmetic, visitInteger, visitWord } from "./expansion.ts";
import { addPath, assign, type Context, type Findings } from "./findings.ts";
import { excerpt, ShellRefusal, unsupported } from "./refusal.ts";
import type { Inner } from "./shells.ts";
import { addGlob, addUnseen, inside, visitCommand, visitRedirection, type Walk } from "./simple.ts";
import { checkSource, isPortable } from "./text.ts";
import { readWord } from "./word.ts";

const MAX_DEPTH = 16;

type CommandNode = Exclude<Statement["command"], AndOr | Pipeline>;

/** Finds all that a line runs and touches; throws a ShellRefusal where that cannot be told. */
export function walkLine(source: string, findings: Findings): void {
  const context: Context = { via: [], assignments: [], dialect: "bash", depth: 0, foreign: false };
  visitScript(parseSource(source), newWalk(findings), context, START);
}

function newWalk(findings: Findings): Walk {
  const walk: Walk = {
    findings,
    visitor: (context, directories) => expansions(walk, context, directories),
    text: (inner, context, directories) => visitText(walk, inner, context, directories),
  };
  return walk;
}

function expansions(walk: Walk, context: Context, directories: Directories): ExpansionVisitor {
  return {
    script: (script, via) => {
      visitScript(script, walk, inside(context, via), directories);
    },
    unseen: (text, via) => addUnseen(walk.findings, text, inside(context, via), directories),
    assigned: (name) => assign(walk.findings, name),
  };
}

function parseSource(source: string): Script {
  checkSource(source);
  return parse(source);
}

type Text = Extract<Inner, { kind: "text" }>;

function visitText(walk: Walk, inner: Text, context: Context, directories: Directories): Flow {
  const { text, dialect } = inner;
  const unseen = (): void => addUnseen(walk.findings, text, context, directories);
  if (dialect === "other" || (dialect === "posix" && !isPortable(text))) unseen();
  try {
    const flow = visitScript(parseSource(text), walk, { ...context, dialect }, directories);
    return inner.inShell === true ? flow : stay(directories);
  } catch (thrown) {
    if (!(thrown instanceof ShellRefusal) || thrown.code === "too_complex") throw thrown;
    // The line around it is understood, so only this text is unknown.
    unseen();
    return stay(directories);
  }
}

function visitScript(
  script: Script & { errors?: readonly { message: string }[] | undefined },
  walk: Walk,
  context: Context,
  directories: Directories,
): Flow {
  const problem = script.errors?.[0];
  if (problem !== undefined) throw new ShellRefusal("syntax", `bash syntax: ${problem.message}`);
  if (context.depth > MAX_DEPTH)
    throw new ShellRefusal("too_complex", `commands are nested more than ${MAX_DEPTH} deep`);
  return visitStatements(script.commands, walk, context, directories);
}

function visitStatements(
  statements: readonly Statement[],
  walk: Walk,
  context: Context,
  directories: Directories,
): Flow {
  let flow = stay(directories);
  for (const statement of statements) {
    const start = after(flow);
    const end = visitNode(statement.command, walk, context, start);
    flow = statement.background === true ? stay(start) : end;
  }
  return flow;
}

function visitList(list: CompoundList, walk: Walk, context: Context, directories: Directories): Flow {
  return visitStatements(list.commands, walk, context, directories);
}

function visitNode(node: AndOr | PipelineNode, walk: Walk, context: Context, directories: Directories): Flow {
  if (node.type === "AndOr") return visitAndOr(node, walk, context, directories);
  if (node.type === "Pipeline") return visitPipeline(node, walk, context, directories);
  return visitCompound(node, walk, context, directories);
}

function visitAndOr(node: AndOr, walk: Walk, context: Context, directories: Directories): Flow {
  let flow = stay(directories);
  for (const [at, command] of node.commands.entries()) {
    const operator = node.operators[at - 1];
    if (operator === undefined) {
      flow = visitNode(command, walk, context, directories);
    } else if (operator === "&&") {
      const next = visitNode(command, walk, context, flow.ok);
      flow = { ok: next.ok, fail: union(flow.fail, next.fail) };
    } else {
      const next = visitNode(command, walk, context, flow.fail);
      flow = { ok: union(flow.ok, next.ok), fail: next.fail };
    }
  }
  return flow;
}

function visitPipeline(node: Pipeline, walk: Walk, context: Context, directories: Directories): Flow {
  if (node.commands.length === 1) {
    const only = node.commands[0];
    const flow = only === undefined ? stay(directories) : visitCompound(only, walk, context, directories);
    return node.prefixes.some((prefix) => prefix.type === "Negation") ? { ok: flow.fail, fail: flow.ok } : flow;
  }
  let reached = directories;
  for (const command of node.commands)
    reached = union(reached, after(visitCompound(command, walk, context, directories)));
  return stay(reached);
}

function visitCompound(node: CommandNode, walk: Walk, context: Context, directories: Directories): Flow {
  const visitor = walk.visitor(context, directories);
  const { findings } = walk;
  switch (node.type) {
    case "Command":
      return visitCommand(node, walk, context, directories);
    case "Redirected": {
      visitRedirections(node.redirects, walk, context, directories);
      return visitCompound(node.command, walk, context, directories);
    }
    case "Subshell": {
      if (isDoubleParenthesis(node.body)) throw unsupported("a subshell that begins with ((");
      visitList(node.body, walk, context, directories);
      return stay(directories);
    }
    case "BraceGroup":
      return visitList(node.body, walk, context, directories);
    case "If":
      return visitIf(node, walk, context, directories);
    case "While":
      return visitLoop(node, walk, context, directories);
    case "For":
    case "Select": {
      assign(findings, readWord(node.name).text);
      for (const word of node.wordlist ?? []) {
        visitWord(word, visitor);
        addGlob(readWord(word), walk, directories);
      }
      return repeated(walk, directories, (start) => after(visitList(node.body, walk, context, start)));
    }
    case "ArithmeticFor": {
      // Its counter is a name, and the values of names are evaluated.
      visitor.unseen("for ((…))", "(())");
      for (const part of [node.initialize, node.test, node.update]) visitArithmetic("", part, visitor);
      return repeated(walk, directories, (start) => after(visitList(node.body, walk, context, start)));
    }
    case "Case":
      return visitCase(node, walk, context, directories);
    case "Function": {
      const name = readWord(node.name);
      if (name.dynamic || node.body.type === "CompoundList") throw unsupported("the function definition");
      findings.shadowed.add(name.text);
      findings.outOfOrder = true;
      visitCompound(node.body, walk, context, directories);
      return stay(directories);
    }
    case "Coproc":
      // Within a substitution bash runs its default name as a command.
      throw unsupported("a coprocess");
    case "TestCommand":
      visitTest(node.expression, visitor, (word) =>
        addPath(findings, { word: readWord(word), access: "read", from: "operand", directories }),
      );
      return stay(directories);
    case "ArithmeticCommand":
      visitArithmetic(node.body, node.expression, visitor);
      return stay(directories);
  }
}

function visitRedirections(
  items: readonly Redirection[],
  walk: Walk,
  context: Context,
  directories: Directories,
): void {
  for (const item of items) visitRedirection(item, walk, context, directories);
}

function isDoubleParenthesis(body: CompoundList): boolean {
  let node: SyntaxNode | undefined = body.commands[0]?.command;
  while (node?.type === "AndOr" || node?.type === "Pipeline") node = node.commands[0];
  const first = node?.type === "Redirected" ? node.command : node;
  return first?.type === "Subshell" && first.pos === body.pos;
}

/** A body that moves has other folders to start from the next time: then no relative path is certain. */
function repeated(walk: Walk, directories: Directories, body: (start: Directories) => Directories): Flow {
  const end = union(directories, body(directories));
  if (!sameDirectories(end, directories)) walk.findings.outOfOrder = true;
  return stay(end);
}

function visitLoop(node: While, walk: Walk, context: Context, directories: Directories): Flow {
  return repeated(walk, directories, (start) => {
    const flow = visitList(node.clause, walk, context, start);
    return union(after(flow), after(visitList(node.body, walk, context, after(flow))));
  });
}

function visitIf(node: If, walk: Walk, context: Context, directories: Directories): Flow {
  const branches: readonly (If | Elif)[] = [node, ...node.elif];
  let start = directories;
  let end: Directories = [];
  for (const branch of branches) {
    const clause = visitList(branch.clause, walk, context, start);
    end = union(end, after(visitList(branch.then, walk, context, clause.ok)));
    start = clause.fail;
  }
  return stay(union(end, node.else === undefined ? start : after(visitList(node.else, walk, context, start))));
}

function visitCase(node: Case, walk: Walk, context: Context, directories: Directories): Flow {
  const visitor = walk.visitor(context, directories);
  visitWord(node.word, visitor);
  readWord(node.word);
  let end = directories;
  for (const item of node.items) {
    for (const pattern of item.pattern) {
      visitWord(pattern, visitor);
      readWord(pattern);
    }
    // With `;&` the next body starts where this one ended.
    end = union(end, after(visitList(item.body, walk, context, end)));
  }
  return stay(end);
}

const FILE_OPERATOR = /^-(?:[abcdefghkprsuwxGLNOS]|nt|ot|ef)$/;
const INTEGER_OPERATOR = /^-(?:eq|ne|lt|le|gt|ge)$/;

function visitTest(test: TestExpression, visitor: ExpansionVisitor, file: (word: Word) => void): void {
  switch (test.type) {
    case "TestUnary":
      if (FILE_OPERATOR.test(test.operator)) file(test.operand);
      if (/^-[vR]$/.test(test.operator) && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(test.operand.text)) {
        visitor.unseen(excerpt(test.operand.text), "[[");
      }
      visitWord(test.operand, visitor);
      return;
    case "TestBinary":
      for (const word of [test.left, test.right]) {
        if (FILE_OPERATOR.test(test.operator)) file(word);
        if (INTEGER_OPERATOR.test(test.operator)) visitInteger(word, visitor);
        else visitWord(word, visitor);
      }
      return;
    case "TestLogical":
      for (const operand of test.operands) visitTest(operand, visitor, file);
      return;
    case "TestNot":
      visitTest(test.operand, visitor, file);
      return;
    case "TestGroup":
      visitTest(test.expression, visitor, file);
      return;
  }
}
