import jmespath from 'jmespath';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { isJsonObject } from '@slipway/common/json-merge.js';

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
const MAX_STEPS = 100_000;
const CHARACTERS_OF_A_STEP = 64;
const GLOB_CHARACTERS_OF_A_STEP = 8;

export class ExpressionError extends Error {}

type Spend = (steps: number) => void;
type Call = (values: readonly unknown[], spend: Spend) => unknown;
type Compare = (left: number, right: number) => boolean;

const ANY_NUMBER = -1;

/**
 * The functions of JMESPath and of OpenHands that say something about one event, with the number of arguments. None
 * takes a regular expression.
 */
const FUNCTIONS = new Map<string, [takes: number, call: Call]>([
  ['contains', [2, ([where, what]) => contains(where, what)]],
  ['ends_with', [2, ([text, end]) => string(text).endsWith(string(end))]],
  ['glob', [2, ([text, pattern], spend) => matchesGlob(string(text), string(pattern), spend)]],
  ['icontains', [2, ([text, part]) => string(text).toLowerCase().includes(string(part).toLowerCase())]],
  ['join', [2, ([glue, parts], spend) => joined(string(glue), parts, spend)]],
  ['keys', [1, ([value]) => (isJsonObject(value) ? Object.keys(value) : [])]],
  [
    'length',
    [
      1,
      ([value]) =>
        typeof value === 'string' ? Array.from(value).length : (membersOf(value)?.length ?? null),
    ],
  ],
  ['lower', [1, ([text]) => string(text).toLowerCase()]],
  ['not_null', [ANY_NUMBER, (values) => values.find((value) => value !== null) ?? null]],
  ['starts_with', [2, ([text, start]) => string(text).startsWith(string(start))]],
  ['to_string', [1, ([value]) => (typeof value === 'string' ? value : JSON.stringify(value))]],
  ['type', [1, ([value]) => (Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value)]],
  ['upper', [1, ([text]) => string(text).toUpperCase()]],
  ['values', [1, ([value]) => (isJsonObject(value) ? Object.values(value) : [])]],
]);

const COMPARISONS: Readonly<Record<string, Compare>> = {
  GT: (left, right) => left > right,
  GTE: (left, right) => left >= right,
  LT: (left, right) => left < right,
  LTE: (left, right) => left <= right,
};

export const FILTER_FUNCTIONS = [...FUNCTIONS.keys()];

/** Why an expression cannot be used; null for a good one. */
export function filterProblem(expression: string): string | null {
  try {
    checkNames(parse(expression));
    return null;
  } catch (error) {
    return `Expected a JMESPath expression: ${errorMessage(error)}`;
  }
}

/** @throws ExpressionError for a malformed expression, or one that takes too long */
export function evaluate(expression: string, payload: unknown): unknown {
  let steps = MAX_STEPS;
  const spend = (count: number): void => {
    steps -= count;
    if (steps < 0) {
      throw new ExpressionError('the expression takes too long for this event');
    }
  };
  const result = visit(parse(expression), payload, spend);
  spend(costOf(result, spend));
  return result;
}

/** As JMESPath counts: empty lists, objects and texts are false, 0 is true. */
export function isTruthy(value: unknown): boolean {
  const members = membersOf(value);
  return members === null ? typeof value === 'number' || Boolean(value) : members.length > 0;
}

/** Null for what is neither an object nor a list. */
function membersOf(value: unknown): unknown[] | null {
  return typeof value === 'object' && value !== null ? Object.values(value) : null;
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
    const [takes] = FUNCTIONS.get(node.name) ?? [];
    if (takes === undefined) {
      const known = FILTER_FUNCTIONS.join(', ');
      throw new ExpressionError(`there is no function ${node.name}; there are ${known}`);
    }
    if (takes !== ANY_NUMBER && takes !== nodesIn(node).length) {
      throw new ExpressionError(`${node.name} takes ${takes} arguments`);
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
  const at = (index: number, given = value): unknown => {
    const child = nodes[index];
    return child === undefined ? null : visit(child, given, spend);
  };
  const project = (list: unknown, isKept = (_element: unknown) => true): unknown =>
    Array.isArray(list)
      ? list
          .filter(isKept)
          .map((element) => at(1, element))
          .filter((each) => each !== null)
      : null;
  switch (node.type) {
    case 'Field':
      return isJsonObject(value) && Object.hasOwn(value, node.name) ? (value[node.name] ?? null) : null;
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
    case 'Slice':
      return Array.isArray(value) ? sliced(value, node.children ?? []) : null;
    case 'Projection':
      return project(at(0));
    case 'ValueProjection': {
      const object = at(0);
      return isJsonObject(object) ? project(Object.values(object)) : null;
    }
    case 'FilterProjection':
      return project(at(0), (element) => isTruthy(at(2, element)));
    case 'Flatten': {
      const list = at(0);
      const flat = Array.isArray(list) ? list.flat() : null;
      spend(flat?.length ?? 0);
      return flat;
    }
    case 'MultiSelectList':
      return value === null ? null : nodes.map((_child, index) => at(index));
    case 'MultiSelectHash':
      return value === null
        ? null
        : Object.fromEntries(nodes.map((pair) => [pair.name, visit(pair.value as Node, value, spend)]));
    case 'OrExpression': {
      const first = at(0);
      return isTruthy(first) ? first : at(1);
    }
    case 'AndExpression': {
      const first = at(0);
      return isTruthy(first) ? at(1) : first;
    }
    case 'NotExpression':
      return !isTruthy(at(0));
    case 'Comparator':
      return compared(node.name, at(0), at(1), spend);
    case 'Function': {
      const values = nodes.map((_child, index) => at(index));
      values.forEach((each) => spend(costOf(each, spend)));
      const [, call] = FUNCTIONS.get(node.name) ?? [];
      return call?.(values, spend) ?? null;
    }
    default:
      throw new ExpressionError(`${node.type} is not supported`);
  }
}

/** Of looking at a whole value; what is shared counts as often as it is met. */
function costOf(value: unknown, spend: Spend): number {
  membersOf(value)?.forEach((each) => spend(1 + costOf(each, spend)));
  return typeof value === 'string' ? Math.ceil(value.length / CHARACTERS_OF_A_STEP) : 1;
}

function compared(sign: string, left: unknown, right: unknown, spend: Spend): boolean | null {
  if (sign === 'EQ' || sign === 'NE') {
    spend(costOf(left, spend) + costOf(right, spend));
    return (JSON.stringify(left) === JSON.stringify(right)) === (sign === 'EQ');
  }
  const isOrdered = typeof left === 'number' && typeof right === 'number';
  return isOrdered ? (COMPARISONS[sign]?.(left, right) ?? null) : null;
}

function sliced(list: readonly unknown[], children: NonNullable<Node['children']>): unknown[] {
  const [start, stop, step] = children.map((child) => (typeof child === 'number' ? child : undefined));
  if ((step ?? 1) !== 1) {
    throw new ExpressionError('a slice with a step is not supported');
  }
  return list.slice(start, stop);
}

/** Absent members are empty texts here: a filter about comments is false for an event without one. */
function string(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function contains(where: unknown, what: unknown): boolean {
  if (typeof where === 'string') {
    return typeof what === 'string' && where.includes(what);
  }
  const wanted = JSON.stringify(what);
  return Array.isArray(where) && where.some((each) => JSON.stringify(each) === wanted);
}

function joined(glue: string, parts: unknown, spend: Spend): string {
  const texts = Array.isArray(parts) ? parts.filter((part) => typeof part === 'string') : [];
  spend(Math.ceil((glue.length * texts.length) / CHARACTERS_OF_A_STEP));
  return texts.join(glue);
}

/** `*` and `?`, by which beginnings of the text each beginning of the pattern matches. */
function matchesGlob(text: string, pattern: string, spend: Spend): boolean {
  let beginnings = [true, ...Array<boolean>(text.length).fill(false)];
  for (const wanted of pattern.split('')) {
    spend(Math.ceil(beginnings.length / GLOB_CHARACTERS_OF_A_STEP));
    let isAfterStar = false;
    beginnings = beginnings.map((matches, end) => {
      isAfterStar ||= matches;
      const isLetter = wanted === '?' || wanted === text[end - 1];
      return wanted === '*' ? isAfterStar : end > 0 && isLetter && beginnings[end - 1] === true;
    });
  }
  return beginnings.at(-1) === true;
}
