import { applyDecorators } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';
import { closest, distance } from 'fastest-levenshtein';
import { InvalidInputError } from '../errors/domain-error.js';
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
 * Members that a body has and its class does not know, which are nearly always misspelt. Bodies of the API's document and of
 * other clients may have some: their names are in the header `X-Ignored-Members` of the response then.
 *
 * @throws InvalidInputError with the nearest known name, where there must be none
 */
export function judgeUnknownMembers(type: object, body: object): void {
  const known = membersOf(type);
  const unknown = Object.keys(body)
    .filter((name) => !known.has(name))
    .slice(0, MAX_NAMED);
  const treatment = treatments.get(type);
  if (unknown.length === 0 || treatment === 'told') {
    return;
  }
  if (treatment === 'refused') {
    throw new InvalidInputError(
      unknown.map((name) => ({ loc: ['body', name], ...unknownMember(name, [...known]) })),
    );
  }
  // Any text may be a name, and a header takes few characters.
  const names = unknown.map((name) => encodeURIComponent(name.slice(0, MAX_NAME).toWellFormed()));
  currentRequest()?.setHeader?.('X-Ignored-Members', names.join(', '));
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
