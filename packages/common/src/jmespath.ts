import { createRequire } from 'node:module';
import jmespath from 'jmespath';
import type { RE2JS } from 're2js';
import { errorMessage } from './errors/error-message.js';
import { isJsonObject, jsonAt } from './json-access.js';
import { mentions } from './untrusted-text/mentions.js';
import { MAX_MARKDOWN } from './untrusted-text/rendered-text.js';

/** A node of the tree that `jmespath` parses. */
interface Node {
  type: string;
  name: string;
  value: unknown;
  /** Those of a slice are numbers. */
  children?: (Node | number | null)[];
}

declare module 'jmespath' {
  /** The parser alone, which the published types leave out. */
  export function compile(expression: string): Node;
}

export const MAX_EXPRESSION = 1_000;
/** Nodes visited, elements made and pieces of text compared, so that no expression takes more than some milliseconds. */
const MAX_STEPS = 25_000;
const CHARACTERS_OF_A_STEP = 64;
/** Up to that, V8 searches a text in time that grows with its length alone. */
const SHORT_PATTERN = 250;

/** Over the text. */
const PASSES_OF_MENTIONS = 16;

/** Throws beyond what may be spent. */
export type Spend = (steps: number) => void;

type Call = (spend: Spend, ...values: unknown[]) => unknown;

/** Those of JMESPath and of OpenHands that say something about one value, and two of ours: `mentions` and `regex`. */
const FUNCTIONS = new Map<string, Call>(
  Object.entries<Call>({
    contains: (spend, where, what) =>
      typeof where === 'string'
        ? typeof what === 'string' && includes(spend, where, what)
        : Array.isArray(where) && where.map((each) => JSON.stringify(each)).includes(JSON.stringify(what)),
    ends_with: (_spend, text, end) => string(text).endsWith(string(end)),
    glob: (spend, text, pattern) => matchesGlob(spend, string(text), string(pattern)),
    icontains: (spend, text, part) => includes(spend, string(text).toLowerCase(), string(part).toLowerCase()),
    join: (spend, glue, parts) => {
      const texts = Array.isArray(parts) ? parts.filter((part) => typeof part === 'string') : [];
      spendOnText(string(glue).length * texts.length, spend);
      return texts.join(string(glue));
    },
    keys: (_spend, value) => (isJsonObject(value) ? Object.keys(value) : []),
    length: (_spend, value) => (typeof value === 'string' ? Array.from(value).length : sizeOf(value)),
    lower: (_spend, text) => string(text).toLowerCase(),
    mentions: (spend, text, name) => {
      spendOnText(Math.min(string(text).length, MAX_MARKDOWN) * PASSES_OF_MENTIONS, spend);
      return mentions(string(text), string(name));
    },
    not_null: (_spend, ...values) => values.find((value) => value !== null) ?? null,
    regex: (spend, text, pattern) => matches(spend, string(text), compiledPattern(string(pattern))),
    starts_with: (_spend, text, start) => string(text).startsWith(string(start)),
    to_string: (_spend, value) => (typeof value === 'string' ? value : JSON.stringify(value)),
    type: (_spend, value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value),
    upper: (_spend, text) => string(text).toUpperCase(),
    values: (_spend, value) => valuesOf(value) ?? [],
  }),
);

export const JMESPATH_FUNCTIONS = [...FUNCTIONS.keys()];

/** Why an expression cannot be used; null for a good one. */
export function expressionProblem(expression: string): string | null {
  try {
    checkNames(parse(expression));
    return null;
  } catch (error) {
    // The parser has no words for some, such as a single `=`.
    const reason =
      error instanceof TypeError ? "it cannot be read; label.name == 'agent' is one" : errorMessage(error);
    return `Expected a JMESPath expression: ${reason}`;
  }
}

/** Returns a budget of steps for one expression, or for several that belong together. */
export function stepBudget(): Spend {
  let steps = MAX_STEPS;
  return (count) => {
    steps -= count;
    if (steps < 0) {
      throw new Error('the expression takes too long for this event');
    }
  };
}

/** @throws Error for a malformed expression, or one that takes too long */
export function evaluate(expression: string, payload: unknown, spend = stepBudget()): unknown {
  const result = visit(parse(expression), payload, spend);
  spendOn(result, spend);
  return result;
}

/** Empty where there is no text, or it cannot be had from this payload. */
export function textAt(expression: string, payload: unknown): string {
  try {
    const text = evaluate(expression, payload);
    return typeof text === 'string' ? text : '';
  } catch {
    return '';
  }
}

/** Follows JMESPath: empty lists, objects and texts are false, 0 is true. */
export function isTruthy(value: unknown, spend?: Spend): boolean {
  const size = sizeOf(value);
  // The members of a large object are all looked up to see whether there is one.
  spend?.(isJsonObject(value) ? (size ?? 0) : 0);
  return value === 0 || Boolean(size ?? value);
}

function parse(expression: string): Node {
  if (expression.length > MAX_EXPRESSION) {
    throw new Error(`at most ${MAX_EXPRESSION} characters`);
  }
  return jmespath.compile(expression);
}

function checkNames(node: Node): void {
  const nodes = nodesIn(node);
  if (node.type === 'Function') {
    const call = FUNCTIONS.get(node.name);
    if (call === undefined) {
      throw new Error(`there is no function ${node.name}; there are ${JMESPATH_FUNCTIONS.join(', ')}`);
    }
    // `length` leaves out rest parameters, so a function of any number of arguments has 0 here.
    const takes = call.length - 1;
    if (takes > 0 && takes !== nodes.length) {
      throw new Error(`${node.name} takes ${takes} arguments`);
    }
    const [, pattern] = nodes;
    if (node.name === 'regex' && typeof pattern?.value === 'string') {
      compiledPattern(pattern.value);
    }
  }
  nodes.forEach((child) => checkNames(child.type === 'KeyValuePair' ? (child.value as Node) : child));
}

function nodesIn({ children = [] }: Node): Node[] {
  return children.filter((child) => typeof child === 'object' && child !== null);
}

/** Steps, and the values of children, are all that an expression can make; each of them is counted. */
function visit(node: Node, value: unknown, spend: Spend): unknown {
  spend(1);
  const { type, name, children = [] } = node;
  const nodes = nodesIn(node);
  const at = (index: number, given = value): unknown => {
    const child = nodes[index];
    return child === undefined ? null : visit(child, given, spend);
  };
  const all = (): unknown[] => nodes.map((child) => visit(child, value, spend));
  const isTrue = (given: unknown): boolean => isTruthy(given, spend);
  switch (type) {
    case 'Field':
      return jsonAt(value, name) ?? null;
    case 'Identity':
    case 'Current':
      return value;
    case 'Literal':
      return node.value;
    case 'Subexpression':
    case 'IndexExpression':
    case 'Pipe':
      return at(1, at(0));
    case 'Index':
      return Array.isArray(value) ? (value.at(Number(node.value)) ?? null) : null;
    case 'Slice': {
      const [start, stop, step] = children.map((child) => (typeof child === 'number' ? child : undefined));
      if (Array.isArray(value) && (step ?? 1) !== 1) {
        throw new Error('a slice with a step is not supported');
      }
      return Array.isArray(value) ? value.slice(start, stop) : null;
    }
    case 'Projection':
    case 'ValueProjection':
    case 'FilterProjection': {
      const list = type === 'ValueProjection' ? valuesOf(at(0)) : at(0);
      if (!Array.isArray(list)) {
        return null;
      }
      const kept = type === 'FilterProjection' ? list.filter((each) => isTrue(at(2, each))) : list;
      return kept.map((each) => at(1, each)).filter((each) => each !== null);
    }
    case 'Flatten': {
      const list = at(0);
      const flat = Array.isArray(list) ? list.flat() : null;
      spend(flat?.length ?? 0);
      return flat;
    }
    case 'MultiSelectList':
      return value === null ? null : all();
    case 'MultiSelectHash':
      return value === null
        ? null
        : Object.fromEntries(nodes.map((pair) => [pair.name, visit(pair.value as Node, value, spend)]));
    case 'OrExpression':
    case 'AndExpression': {
      const first = at(0);
      return isTrue(first) === (type === 'AndExpression') ? at(1) : first;
    }
    case 'NotExpression':
      return !isTrue(at(0));
    case 'Comparator':
      return compared(spend, name, at(0), at(1));
    case 'Function': {
      const values = all();
      values.forEach((each) => spendOn(each, spend));
      return FUNCTIONS.get(name)?.(spend, ...values) ?? null;
    }
    default:
      throw new Error(`${type} is not supported`);
  }
}

function compared(spend: Spend, sign: string, left: unknown, right: unknown): boolean | null {
  if (sign === 'EQ' || sign === 'NE') {
    [left, right].forEach((each) => spendOn(each, spend));
    return (JSON.stringify(left) === JSON.stringify(right)) === (sign === 'EQ');
  }
  if (typeof left !== 'number' || typeof right !== 'number') {
    return null;
  }
  const isOrEqual = sign.endsWith('E') && left === right;
  return isOrEqual || (sign.startsWith('G') ? left > right : left < right);
}

/** Looking at a whole value; what is shared counts as often as it is met. */
function spendOn(value: unknown, spend: Spend): void {
  if (typeof value === 'string') {
    spendOnText(value.length, spend);
    return;
  }
  const parts: unknown[] = Object.values(Object(value));
  spend(1 + parts.length);
  parts.forEach((part) => spendOn(part, spend));
}

function spendOnText(characters: number, spend: Spend): void {
  spend(Math.ceil(characters / CHARACTERS_OF_A_STEP));
}

function valuesOf(value: unknown): unknown[] | null {
  return isJsonObject(value) ? Object.values(value) : null;
}

/** Returns the number of items of a list, or members of an object. */
function sizeOf(value: unknown): number | null {
  return Array.isArray(value) ? value.length : isJsonObject(value) ? Object.keys(value).length : null;
}

/** Absent members are empty texts here: a filter about comments is false for an event without one. */
function string(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function includes(spend: Spend, text: string, part: string): boolean {
  spendOnText(part.length > SHORT_PATTERN ? text.length * part.length : 0, spend);
  return text.includes(part);
}

/** Loaded with the first pattern, as most installations have none. */
const loaded = createRequire(import.meta.url);
const re2 = (): typeof RE2JS => (loaded('re2js') as typeof import('re2js')).RE2JS;

/** `*` and `?`. */
function matchesGlob(spend: Spend, text: string, pattern: string): boolean {
  requireShort(pattern);
  const literal = re2().quote(pattern);
  const wild = literal.replaceAll(String.raw`\*`, '.*').replaceAll(String.raw`\?`, '.');
  return matches(spend, text, re2().compile(`(?s)^${wild}$`));
}

/** RE2 takes time that grows with the text times the size of the program (https://github.com/google/re2/wiki/Syntax). */
function matches(spend: Spend, text: string, compiled: RE2JS): boolean {
  spendOnText(text.length * compiled.programSize(), spend);
  return compiled.matcher(text).find();
}

/** @throws Error for a pattern that RE2 does not take, or a longer one than an expression may have */
function compiledPattern(pattern: string): RE2JS {
  requireShort(pattern);
  return re2().compile(pattern);
}

function requireShort(pattern: string): void {
  if (pattern.length > MAX_EXPRESSION) {
    throw new Error(`a pattern has at most ${MAX_EXPRESSION} characters`);
  }
}
