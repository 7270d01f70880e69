import { applyDecorators } from '@nestjs/common';
import { isJsonObject } from '@slipway/common/json-access.js';
import { getMetadataStorage } from 'class-validator';
import { closest, distance } from 'fastest-levenshtein';
import { InvalidInputError } from '../errors/problem-error.js';
import { SchemaRules } from '../openapi/schema-rules.js';
import { currentRequest } from '../requests/request-context.js';
import type { FieldProblem } from './field.js';

type Treatment = 'refused' | 'told';

const MAX_NAMED = 20;
const MAX_NAME = 100;

const treatments = new Map<unknown, Treatment>();
const members = new Map<unknown, ReadonlySet<string>>();

/** On the body of a route that no client of others calls: a member that it does not know is an error. */
export function NoOtherMembers(): ClassDecorator {
  return applyDecorators(SchemaRules({ additionalProperties: false }), treated('refused'));
}

/** On a body whose route says itself what it has ignored. */
export function TellsOtherMembers(): ClassDecorator {
  return treated('told');
}

function treated(treatment: Treatment): ClassDecorator {
  return (type) => void treatments.set(type, treatment);
}

/**
 * Members that a body has and its class, or that of an object in it, does not know; they are nearly always misspelt. Bodies of the API's document and of
 * other clients may have some: their names are in the header `X-Ignored-Members` of the response then.
 *
 * @param input what was made of the body by its class
 * @throws InvalidInputError with the nearest known name, where there must be none
 */
export function judgeUnknownMembers(type: object, input: unknown, body: unknown): void {
  const treatment = treatments.get(type);
  const unknown = treatment === 'told' ? [] : [...unknownIn(input, body, [])].slice(0, MAX_NAMED);
  if (unknown.length === 0) {
    return;
  }
  if (treatment === 'refused') {
    throw new InvalidInputError(
      unknown.map(({ path, name, known }) => ({
        loc: ['body', ...path, name],
        ...unknownMember(name, [...known]),
      })),
    );
  }
  // Any text may be a name, and a header takes few characters.
  const names = unknown.map(({ path, name }) =>
    [...path, name].map((each) => encodeURIComponent(each.slice(0, MAX_NAME).toWellFormed())).join('.'),
  );
  currentRequest()?.setHeader?.('X-Ignored-Members', names.join(', '));
}

interface UnknownMember {
  path: readonly string[];
  name: string;
  known: ReadonlySet<string>;
}

function* unknownIn(input: unknown, given: unknown, path: readonly string[]): Generator<UnknownMember> {
  if (!isObjectOrList(input) || !isObjectOrList(given)) {
    return;
  }
  // An object may have a member of the name `constructor`.
  const { constructor } = Object.getPrototypeOf(input) as object;
  const known = membersOf(constructor);
  if (known.size > 0) {
    yield* Object.keys(given)
      .filter((name) => !known.has(name))
      .map((name) => ({ path, name, known }));
  }
  for (const [name, value] of Object.entries(input)) {
    yield* unknownIn(value, Reflect.get(given, name), [...path, name]);
  }
}

function isObjectOrList(value: unknown): value is object {
  return isJsonObject(value) || Array.isArray(value);
}

/** Every member has a rule, be it that it may be absent. */
function membersOf(type: object): ReadonlySet<string> {
  const found = members.get(type);
  if (found !== undefined) {
    return found;
  }
  const rules = getMetadataStorage().getTargetValidationMetadatas(type as () => void, '', false, false);
  const names = new Set(rules.map(({ propertyName }) => propertyName));
  members.set(type, names);
  return names;
}

/** Names the member that may be meant, where one begins alike or is nearly the same. */
export function unknownMember(name: string, known: readonly string[]): FieldProblem {
  const meant = name.length <= MAX_NAME ? nearestOf(name, known) : undefined;
  const advice = meant === undefined ? '.' : `: did you mean ${meant}?`;
  return { type: 'extra_forbidden', msg: `This member is not known here${advice}` };
}

function nearestOf(name: string, known: readonly string[]): string | undefined {
  const nearest = known.length > 0 ? closest(name, known) : '';
  return distance(name, nearest) <= Math.max(2, name.length / 3)
    ? nearest
    : known.find((each) => each.startsWith(name));
}
