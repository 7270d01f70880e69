import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { IsDefined, IsOptional, ValidateBy, ValidateIf, type ValidationOptions } from 'class-validator';

/** A class whose members carry rules. */
export type DtoClass<T extends object = object> = new () => T;

/** What a rule says of a bad value; `path` leads further down from the property (an index, a key). */
export interface FieldProblem {
  type: string;
  msg: string;
  path?: string[];
}

/** The problems of a value that has broken a rule; at least one. */
export type DescribeProblems = (value: unknown) => FieldProblem[];

/** How a rule's description travels in class-validator's error context to the pipe. */
export interface RuleContext {
  describe: DescribeProblems;
}

/**
 * Options that make a class-validator decorator say *why* it refuses a value (type and sentence), not only that it does:
 * `@IsString(because({ type: 'string_type', msg: 'Expected a string.' }))`.
 */
export function because(
  why: FieldProblem | DescribeProblems,
  options?: ValidationOptions,
): ValidationOptions {
  const describe: DescribeProblems = typeof why === 'function' ? why : () => [why];
  return {
    ...options,
    message: ({ value }) => describe(value)[0]?.msg ?? '',
    context: { describe } satisfies RuleContext,
  };
}

interface Presence {
  /** The member must be there. */
  required?: boolean;
  /** null is accepted and keeps its meaning. */
  nullable?: boolean;
}

const MISSING: FieldProblem = { type: 'missing', msg: 'This member is required.' };

/**
 * Absent members pass unless required; null passes where it is allowed.
 *
 * @param refused what to say of a null that is not allowed
 */
export function presence(
  { required = false, nullable = false }: Presence,
  refused: FieldProblem | DescribeProblems,
): PropertyDecorator {
  if (!required) {
    return nullable ? IsOptional() : ValidateIf((_object: object, value: unknown) => value !== undefined);
  }
  const describe: DescribeProblems = typeof refused === 'function' ? refused : () => [refused];
  const isDefined = IsDefined(because((value) => (value === undefined ? [MISSING] : describe(value))));
  return nullable
    ? composeDecorators(
        ValidateIf((_object: object, value: unknown) => value !== null),
        isDefined,
      )
    : isDefined;
}

/** A rule that class-validator has no decorator for: a value is good when `describe` finds no problem. */
export function customRule(name: string, describe: DescribeProblems): PropertyDecorator {
  return ValidateBy(
    { name, validator: { validate: (value: unknown) => describe(value).length === 0 } },
    because(describe),
  );
}

/** {@link customRule} together with {@link presence}. */
export function fieldRule(name: string, options: Presence, describe: DescribeProblems): PropertyDecorator {
  return composeDecorators(presence(options, describe), customRule(name, describe));
}

/** What every field decorator takes: presence, and what OpenAPI says of the member. */
export interface FieldOptions extends Presence {
  description: string;
  /** null counts as absent. */
  nullIsAbsent?: boolean;
  example?: unknown;
  default?: unknown;
}

/** Makes the property a member of the input, with its coercion, and documents it. */
export function documentedField(
  options: FieldOptions,
  schema: ApiPropertyOptions,
  coerce: Coerce = (value) => value,
): PropertyDecorator {
  return composeDecorators(
    member((value) => (value === null && options.nullIsAbsent === true ? undefined : coerce(value))),
    ApiProperty(
      Object.assign({}, schema, {
        description: options.description,
        // The generator wants the names of an object's own required members in this place.
        ...(Array.isArray(schema.required)
          ? { required: schema.required, selfRequired: options.required ?? false }
          : { required: options.required ?? false }),
        // A choice of schemas has null among them.
        ...((options.nullable === true || options.nullIsAbsent === true) &&
          !('oneOf' in schema) && { nullable: true }),
        ...(options.example !== undefined && { example: options.example }),
        ...(options.default !== undefined && { default: options.default }),
      }),
    ),
  );
}

/** One property decorator made of several, which register their rules in this order. */
export function composeDecorators(...decorators: PropertyDecorator[]): PropertyDecorator {
  return (target, property) => {
    for (const decorate of decorators) {
      decorate(target, property);
    }
  };
}

/** Turns what JSON holds into what the DTO holds; `undefined` counts as absent. */
type Coerce = (value: unknown) => unknown;

const declaredMembers = new WeakMap<object, Map<string, Coerce>>();
const membersByClass = new WeakMap<DtoClass, ReadonlyMap<string, Coerce>>();

/** Makes the property a member that is taken from the input; members without it are dropped. */
function member(coerce: Coerce): PropertyDecorator {
  return (target, property) => {
    const own = declaredMembers.get(target) ?? new Map<string, Coerce>();
    declaredMembers.set(target, own.set(String(property), coerce));
  };
}

/** The members of a DTO class and of the classes it extends. */
function membersOf(type: DtoClass): ReadonlyMap<string, Coerce> {
  let members = membersByClass.get(type);
  if (!members) {
    members = new Map(
      prototypesOf(type)
        .toReversed()
        .flatMap((prototype) => [...(declaredMembers.get(prototype) ?? [])]),
    );
    membersByClass.set(type, members);
  }
  return members;
}

function prototypesOf(type: DtoClass): object[] {
  const chain: object[] = [];
  let prototype: unknown = type.prototype;
  while (typeof prototype === 'object' && prototype !== null) {
    chain.push(prototype);
    prototype = Object.getPrototypeOf(prototype);
  }
  return chain;
}

const NO_MEMBERS: Record<string, unknown> = {};

/**
 * Builds a DTO from a parsed JSON object: listed members only, absent ones stay absent.
 *
 * Done by hand, not with class-transformer: that one walks the whole input before the members' own coercions run,
 * takes each value's `constructor` member for its class (so `{"constructor":5}` throws), and drops keys of that name
 * from maps.
 */
export function toDto<T extends object>(type: DtoClass<T>, plain: Record<string, unknown>): T {
  const dto = Object.assign(new type(), NO_MEMBERS);
  // Plain stores: an object for each member, or one for all of them, costs several times as much.
  const members: Record<string, unknown> = dto;
  for (const [property, coerce] of membersOf(type)) {
    const value = Object.hasOwn(plain, property) ? coerce(plain[property]) : undefined;
    if (value !== undefined) {
      members[property] = value;
    }
  }
  return dto;
}

const EXTRA_MEMBERS = Symbol('extra members');

/** Remembers, on the DTO, which members of the input it does not know (`extra_forbidden` needs them). */
export function rememberExtraMembers(
  dto: object,
  plain: Record<string, unknown>,
  known: readonly string[],
): void {
  const extra = Object.keys(plain).filter((key) => !known.includes(key));
  Object.defineProperty(dto, EXTRA_MEMBERS, { value: extra, enumerable: false });
}

export function extraMembers(dto: object): readonly string[] {
  return (dto as { [EXTRA_MEMBERS]?: readonly string[] })[EXTRA_MEMBERS] ?? [];
}

/** More elements than this serve no request of ours, and each one costs time and perhaps a line in the response. */
export const MAX_ELEMENTS = 1_000;

/** Stands in for a list or map with too many elements, so that nothing walks through them. */
class TooManyElements {
  constructor(readonly most: number) {}
}

/** What `convert` makes of `count` elements, or the stand-in when there are too many of them. */
export function unlessTooMany<T>(count: number, convert: () => T, most = MAX_ELEMENTS): T | TooManyElements {
  return count > most ? new TooManyElements(most) : convert();
}

/** The problem of a value that is no list or map: it is something else, or has too many elements. */
export function noCollection(otherwise: FieldProblem): DescribeProblems {
  return (value) =>
    value instanceof TooManyElements
      ? [{ type: 'too_long', msg: `Expected at most ${value.most} elements.` }]
      : [otherwise];
}
