import jmespath from 'jmespath';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { isJsonObject } from '@slipway/common/json-merge.js';

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

export class ExpressionError extends Error {}

/** Throws beyond what may be spent. */
export type Spend = (steps: number) => void;

type Call = (values: readonly unknown[], spend: Spend) => unknown;

/** The functions of JMESPath and of OpenHands that say something about one event; none takes a regular expression. */
const FUNCTIONS: Readonly<Record<string, { takes: number | 'any'; call: Call }>> = {
  contains: { takes: 2, call: ([where, what], spend) => contains(where, what, spend) },
  ends_with: { takes: 2, call: ([text, end]) => string(text).endsWith(string(end)) },
  glob: { takes: 2, call: ([text, pattern], spend) => matchesGlob(string(text), string(pattern), spend) },
  icontains: {
    takes: 2,
    call: ([text, part], spend) => includes(string(text).toLowerCase(), string(part).toLowerCase(), spend),
  },
  join: { takes: 2, call: ([glue, parts], spend) => joined(string(glue), parts, spend) },
  keys: { takes: 1, call: ([value]) => (isJsonObject(value) ? Object.keys(value) : []) },
  length: { takes: 1, call: ([value]) => lengthOf(value) },
  lower: { takes: 1, call: ([text]) => string(text).toLowerCase() },
  not_null: { takes: 'any', call: (values) => values.find((value) => value !== null) ?? null },
  starts_with: { takes: 2, call: ([text, start]) => string(text).startsWith(string(start)) },
  to_string: { takes: 1, call: ([value]) => (typeof value === 'string' ? value : JSON.stringify(value)) },
  type: { takes: 1, call: ([value]) => typeOf(value) },
  upper: { takes: 1, call: ([text]) => string(text).toUpperCase() },
  values: { takes: 1, call: ([value]) => (isJsonObject(value) ? Object.values(value) : []) },
};

export const FILTER_FUNCTIONS = Object.keys(FUNCTIONS);

/** Why an expression cannot be used; null for a good one. */
export function filterProblem(expression: string): string | null {
  try {
    checkNames(parse(expression));
    return null;
  } catch (error) {
    return `Expected a JMESPath expression: ${errorMessage(error)}`;
  }
}

/** For one expression, or several that belong together. */
export function stepBudget(): Spend {
  let steps = MAX_STEPS;
  return (count) => {
    steps -= count;
    if (steps < 0) {
      throw new ExpressionError('the expression takes too long for this event');
    }
  };
}

/** @throws ExpressionError for a malformed expression, or one that takes too long */
export function evaluate(expression: string, payload: unknown, spend = stepBudget()): unknown {
  const result = visit(parse(expression), payload, spend);
  spend(costOf(result, spend));
  return result;
}

/** As JMESPath counts: empty lists, objects and texts are false, 0 is true. */
export function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) {
    return value.length > 0;
  }
  return typeof value === 'object' && value !== null
    ? Object.keys(value).length > 0
    : typeof value === 'number' || Boolean(value);
}

function parse(expression: string): Node {
  if (expression.length > MAX_EXPRESSION) {
    throw new ExpressionError(`at most ${MAX_EXPRESSION} characters`);
  }
  try {
    return jmespath.compile(expression);
  } catch (error) {
    throw new ExpressionError(errorMessage(error), { cause: error });
  }
}

function checkNames(node: Node): void {
  if (node.type === 'Function') {
    const known = Object.hasOwn(FUNCTIONS, node.name) ? FUNCTIONS[node.name] : undefined;
    if (known === undefined) {
      throw new ExpressionError(
        `there is no function ${node.name}; there are ${FILTER_FUNCTIONS.join(', ')}`,
      );
    }
    if (known.takes !== 'any' && known.takes !== nodesIn(node).length) {
      throw new ExpressionError(`${node.name} takes ${known.takes} arguments`);
    }
  }
  nodesIn(node).forEach((child) => checkNames(child.type === 'KeyValuePair' ? (child.value as Node) : child));
}

function nodesIn({ children }: Node): Node[] {
  return (children ?? []).filter((child) => typeof child === 'object' && child !== null);
}

/** Steps, and the values of children, are all that an expression can make; each of them is counted. */
function visit(node: Node, value: unknown, spend: Spend): unknown {
  spend(1);
  const nodes = nodesIn(node);
  const [left, right, condition] = nodes;
  const at = (child: Node | undefined, given: unknown): unknown =>
    child === undefined ? null : visit(child, given, spend);
  const isTrue = (given: unknown): boolean => {
    // The members of a large object are all looked up to see whether there is one.
    spend(isJsonObject(given) ? Object.keys(given).length : 0);
    return isTruthy(given);
  };
  const project = (list: readonly unknown[]): unknown[] =>
    list.map((element) => at(right, element)).filter((each) => each !== null);
  switch (node.type) {
    case 'Field':
      return isJsonObject(value) && Object.hasOwn(value, node.name)
        ? (Reflect.get(value, node.name) ?? null)
        : null;
    case 'Identity':
    case 'Current':
      return value;
    case 'Literal':
      return node.value;
    case 'Subexpression':
    case 'IndexExpression':
    case 'Pipe':
      return at(right, at(left, value));
    case 'Index':
      return Array.isArray(value) ? (value.at(Number(node.value)) ?? null) : null;
    case 'Slice':
      return Array.isArray(value) ? sliced(value, node.children ?? []) : null;
    case 'Projection': {
      const list = at(left, value);
      return Array.isArray(list) ? project(list) : null;
    }
    case 'ValueProjection': {
      const object = at(left, value);
      return isJsonObject(object) ? project(Object.values(object)) : null;
    }
    case 'FilterProjection': {
      const list = at(left, value);
      return Array.isArray(list) ? project(list.filter((element) => isTrue(at(condition, element)))) : null;
    }
    case 'Flatten': {
      const list = at(left, value);
      const flat = Array.isArray(list) ? list.flat() : null;
      spend(flat?.length ?? 0);
      return flat;
    }
    case 'MultiSelectList':
      return value === null ? null : nodes.map((child) => at(child, value));
    case 'MultiSelectHash':
      return value === null
        ? null
        : Object.fromEntries(nodes.map(({ name, value: child }) => [name, at(child as Node, value)]));
    case 'OrExpression': {
      const first = at(left, value);
      return isTrue(first) ? first : at(right, value);
    }
    case 'AndExpression': {
      const first = at(left, value);
      return isTrue(first) ? at(right, value) : first;
    }
    case 'NotExpression':
      return !isTrue(at(left, value));
    case 'Comparator':
      return compared(node.name, at(left, value), at(right, value), spend);
    case 'Function': {
      const values = nodes.map((child) => at(child, value));
      values.forEach((each) => spend(costOf(each, spend)));
      const known = Object.hasOwn(FUNCTIONS, node.name) ? FUNCTIONS[node.name] : undefined;
      return known?.call(values, spend) ?? null;
    }
    default:
      throw new ExpressionError(`${node.type} is not supported`);
  }
}

/** Of looking at a whole value; what is shared counts as often as it is met. */
function costOf(value: unknown, spend: Spend): number {
  if (typeof value === 'string') {
    return Math.ceil(value.length / CHARACTERS_OF_A_STEP);
  }
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach((each) => spend(1 + costOf(each, spend)));
  }
  return 1;
}

function compared(sign: string, left: unknown, right: unknown, spend: Spend): unknown {
  if (sign === 'EQ' || sign === 'NE') {
    spend(costOf(left, spend) + costOf(right, spend));
    return (JSON.stringify(left) === JSON.stringify(right)) === (sign === 'EQ');
  }
  if (typeof left !== 'number' || typeof right !== 'number') {
    return null;
  }
  switch (sign) {
    case 'GT':
      return left > right;
    case 'GTE':
      return left >= right;
    case 'LT':
      return left < right;
    default:
      return left <= right;
  }
}

function sliced(list: readonly unknown[], children: NonNullable<Node['children']>): unknown[] {
  const [start, stop, step] = children.map((child) => (typeof child === 'number' ? child : null));
  if ((step ?? 1) !== 1) {
    throw new ExpressionError('a slice with a step is not supported');
  }
  return list.slice(start ?? 0, stop ?? undefined);
}

/** Absent members are empty texts here: a filter about comments is false for an event without one. */
function string(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function includes(text: string, part: string, spend: Spend): boolean {
  spend(part.length > SHORT_PATTERN ? Math.ceil((text.length * part.length) / CHARACTERS_OF_A_STEP) : 0);
  return text.includes(part);
}

function contains(where: unknown, what: unknown, spend: Spend): boolean {
  if (typeof where === 'string') {
    return typeof what === 'string' && includes(where, what, spend);
  }
  const wanted = JSON.stringify(what);
  return Array.isArray(where) && where.some((each) => JSON.stringify(each) === wanted);
}

function joined(glue: string, parts: unknown, spend: Spend): string {
  const texts = Array.isArray(parts) ? parts.filter((part) => typeof part === 'string') : [];
  spend(Math.ceil((glue.length * texts.length) / CHARACTERS_OF_A_STEP));
  return texts.join(glue);
}

function lengthOf(value: unknown): number | null {
  if (typeof value === 'string') {
    return value.length - (value.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)?.length ?? 0);
  }
  return typeof value === 'object' && value !== null ? Object.keys(value).length : null;
}

function typeOf(value: unknown): string {
  if (value === null || Array.isArray(value)) {
    return value === null ? 'null' : 'array';
  }
  return typeof value;
}

/** `*` and `?`, in time that grows with the product of both lengths at most. */
function matchesGlob(text: string, pattern: string, spend: Spend): boolean {
  let [at, within] = [0, 0];
  let star: { pattern: number; text: number } | null = null;
  while (at < text.length) {
    spend(1);
    const wanted = pattern[within];
    if (wanted === '*') {
      star = { pattern: within, text: at };
      within += 1;
    } else if (wanted === '?' || wanted === text[at]) {
      at += 1;
      within += 1;
    } else if (star !== null) {
      star.text += 1;
      at = star.text;
      within = star.pattern + 1;
    } else {
      return false;
    }
  }
  return /^\**$/.test(pattern.slice(within));
}
