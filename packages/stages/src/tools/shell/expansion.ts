import type {
  ArithmeticExpression,
  Assignment,
  HereDocBody,
  ParameterExpansionPart,
  Script,
  Word,
  WordPart,
} from "unbash";
import { excerpt, unsupported } from "./refusal.ts";

/** What expanding a word does besides giving its value. */
export interface ExpansionVisitor {
  /** A script that runs in a subshell. */
  readonly script: (script: Script, via: string) => void;
  /** Text that bash evaluates as code once the values are there: nobody can tell what runs. */
  readonly unseen: (text: string, via: string) => void;
  /** A variable gets a value. */
  readonly assigned: (name: string) => void;
}

/** Numbers and operators only. A name's value is evaluated again, and `a[$(rm x)]` as a value runs rm. */
const PLAIN_ARITHMETIC = /^(?:0[xX][0-9a-fA-F]+|[0-9]+|[\s+\-*/%<>=!&|^~?:(),])*$/;
/** Counters the shell sets itself. */
const SHELL_NUMBER = /^\$(?:[?#$!]|\{#\})$/;
const PLAIN_INTEGER = /^\s*[-+]?[0-9]+\s*$/;

export function visitWord(word: Word, visitor: ExpansionVisitor): void {
  visitParts(word.parts, visitor);
}

export function visitHereDoc(body: HereDocBody, quoted: boolean, visitor: ExpansionVisitor): void {
  if (quoted) return;
  if (body.parts === undefined && /[$`]/.test(body.text.replace(/\\[\s\S]/g, "")))
    throw unsupported("the here-document");
  for (const part of body.parts ?? []) {
    // Quotes in it do not quote here, which the parser does not know: `${x:-'$(rm y)'}` runs rm.
    if (part.type === "ParameterExpansion" && /['"\\]/.test(part.text))
      throw unsupported(`${excerpt(part.text)} in a here-document`);
    visitPart(part, visitor);
  }
}

/** The right-hand side and the subscript of `name[subscript]=value`; the name itself is the caller's. */
export function visitAssignment(assignment: Assignment, visitor: ExpansionVisitor): void {
  if (assignment.index !== undefined) visitSubscript(assignment.index, assignment.text, visitor);
  if (assignment.value.type === "Word") {
    visitWord(assignment.value, visitor);
    return;
  }
  for (const element of assignment.value.elements) {
    if (/^\[(?![0-9]+\]=)/.test(element.text)) visitor.unseen(element.text, "[]");
    visitWord(element, visitor);
  }
}

/** An operand that `[[` or a slice evaluates as arithmetic. */
export function visitInteger(word: Word, visitor: ExpansionVisitor): void {
  if (!PLAIN_INTEGER.test(word.text) && !SHELL_NUMBER.test(word.text)) visitor.unseen(word.text, "(())");
  visitWord(word, visitor);
}

export function visitArithmetic(text: string, tree: ArithmeticExpression | undefined, visitor: ExpansionVisitor): void {
  const numeric = text.replace(/\$(?:[?#$!](?![A-Za-z0-9_[{(])|\{#\})/g, "0");
  if (!PLAIN_ARITHMETIC.test(numeric)) visitor.unseen(text, "(())");
  if (tree !== undefined) visitArithmeticTree(tree, visitor);
}

function visitArithmeticTree(node: ArithmeticExpression, visitor: ExpansionVisitor): void {
  switch (node.type) {
    case "ArithmeticBinary":
      visitArithmeticTree(node.left, visitor);
      visitArithmeticTree(node.right, visitor);
      return;
    case "ArithmeticUnary":
      visitArithmeticTree(node.operand, visitor);
      return;
    case "ArithmeticTernary":
      visitArithmeticTree(node.test, visitor);
      visitArithmeticTree(node.consequent, visitor);
      visitArithmeticTree(node.alternate, visitor);
      return;
    case "ArithmeticGroup":
      visitArithmeticTree(node.expression, visitor);
      return;
    case "ArithmeticWord":
      visitParts(node.parts, visitor);
      return;
    case "ArithmeticCommandExpansion":
      visitScript(node.text, node.script, "$()", visitor);
      return;
  }
}

function visitParts(parts: readonly WordPart[] | undefined, visitor: ExpansionVisitor): void {
  for (const part of parts ?? []) visitPart(part, visitor);
}

/** How each part begins and ends. The parser forgives a part without its end; bash reads on. */
const CLOSED: Readonly<Partial<Record<WordPart["type"], RegExp>>> = {
  SingleQuoted: /^'[^']*'$/,
  DoubleQuoted: /^"[\s\S]*"$/,
  AnsiCQuoted: /^\$'[\s\S]*'$/,
  LocaleString: /^\$"[\s\S]*"$/,
  ParameterExpansion: /^\$\{[\s\S]*\}$/,
  CommandExpansion: /^(?:\$\([\s\S]*\)|`[\s\S]*`)$/,
  ProcessSubstitution: /^[<>]\([\s\S]*\)$/,
  ArithmeticExpansion: /^(?:\$\(\([\s\S]*\)\)|\$\[[\s\S]*\])$/,
};

function visitPart(part: WordPart, visitor: ExpansionVisitor): void {
  if (CLOSED[part.type]?.test(part.text) === false) throw unsupported(`the word part ${excerpt(part.text)}`);
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
    case "SimpleExpansion":
      return;
    case "LocaleString":
      // Bash expands what a file of translations says in its place.
      visitor.unseen(part.text, '$""');
      visitParts(part.parts, visitor);
      return;
    case "DoubleQuoted":
    case "Glob":
    case "BraceExpansion":
    case "ExtendedGlob":
      visitParts(part.parts, visitor);
      return;
    case "CommandExpansion":
      visitScript(part.text, part.script, "$()", visitor);
      return;
    case "ProcessSubstitution":
      visitScript(part.text, part.script, `${part.operator}()`, visitor);
      return;
    case "ArithmeticExpansion":
      visitArithmetic(
        part.text.startsWith("$[") ? part.text.slice(2, -1) : part.text.slice(3, -2),
        part.expression,
        visitor,
      );
      return;
    case "ParameterExpansion":
      visitParameter(part, visitor);
      return;
  }
}

function visitScript(text: string, script: Script | undefined, via: string, visitor: ExpansionVisitor): void {
  // `$((` that is not arithmetic, `${ …; }`, and backticks within backticks: bash versions differ.
  const doubtful = /^\$(?:\\\n)*(?:\(\(|\{)/.test(text) || (text.startsWith("`") && text.includes("\\"));
  if (doubtful || script === undefined) throw unsupported(`the substitution ${excerpt(text)}`);
  visitor.script(script, via);
}

function visitSubscript(index: Word, text: string, visitor: ExpansionVisitor): void {
  if (!/^(?:[0-9]+|[@*])$/.test(index.text)) visitor.unseen(text, "[]");
  visitWord(index, visitor);
}

/** Where `${…}` ends is what parsers differ in, once it holds brackets besides those of expansions in it. */
function visitOperand(word: Word, visitor: ExpansionVisitor): void {
  const parts = word.parts;
  const bare = parts === undefined ? word.text : literalText(parts);
  if (/[{}()]/.test(bare)) throw unsupported(`the expansion text ${excerpt(word.text)}`);
  visitParts(parts, visitor);
}

/** What stands in it besides quoted text and expansions with brackets of their own. */
function literalText(parts: readonly WordPart[]): string {
  const texts = parts.map((part) => {
    if (part.type === "DoubleQuoted" || part.type === "LocaleString") return literalText(part.parts);
    const closed =
      part.type === "CommandExpansion" || part.type === "ParameterExpansion" || part.type === "ArithmeticExpansion";
    return closed || part.type === "SingleQuoted" || part.type === "AnsiCQuoted" ? "" : part.text;
  });
  return texts.join("");
}

function visitParameter(part: ParameterExpansionPart, visitor: ExpansionVisitor): void {
  const { operation } = part;
  if (part.index !== undefined) visitSubscript(part.index, part.text, visitor);
  const keys = part.index?.text === "@" || part.index?.text === "*";
  // `${!name}` expands what the value names, subscripts included.
  if (part.prefix === "!" && operation?.type !== "Names" && !keys) visitor.unseen(part.text, "!");
  if (operation === undefined) return;
  switch (operation.type) {
    case "Default":
      if (operation.operator === "=" || operation.operator === ":=") visitor.assigned(part.parameter);
      visitOperand(operation.operand, visitor);
      return;
    case "Remove":
      visitOperand(operation.operand, visitor);
      return;
    case "Replace":
      visitOperand(operation.pattern, visitor);
      visitOperand(operation.replacement, visitor);
      return;
    case "Slice":
      visitInteger(operation.offset, visitor);
      if (operation.length !== undefined) visitInteger(operation.length, visitor);
      return;
    case "CaseModification":
      if (operation.operand !== undefined) visitOperand(operation.operand, visitor);
      return;
    case "Transform":
      // `@P` expands the value as a prompt and runs what it holds; versions add more of the kind.
      if (!/^[QUuL]$/.test(operation.operand.text)) visitor.unseen(part.text, "@");
      visitOperand(operation.operand, visitor);
      return;
    case "Names":
      return;
    case "Unknown":
      throw unsupported(`the expansion ${excerpt(part.text)}`);
  }
}
