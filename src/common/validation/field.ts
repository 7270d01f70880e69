import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { ValidateBy, ValidateIf } from 'class-validator';

/** One property decorator made of several. */
export function composeDecorators(...decorators: PropertyDecorator[]): PropertyDecorator {
  return (target, property) => {
    for (const decorate of decorators) {
      decorate(target, property);
    }
  };
}

/** A class whose members carry rules. */
export type DtoClass<T extends object = object> = new () => T;

/** Turns what JSON holds into what the DTO holds; `undefined` counts as absent. */
type Coerce = (value: unknown) => unknown;

const declared = new WeakMap<object, Map<string, Coerce>>();
const resolved = new WeakMap<DtoClass, ReadonlyMap<string, Coerce>>();

/** Makes the property a member that is taken from the input; members without it are dropped. */
function member(coerce: Coerce): PropertyDecorator {
  return (target, property) => {
    const own = declared.get(target) ?? new Map<string, Coerce>();
    declared.set(target, own.set(String(property), coerce));
  };
}

/** The members of a DTO class and of the classes it extends. */
function membersOf(type: DtoClass): ReadonlyMap<string, Coerce> {
  let members = resolved.get(type);
  if (!members) {
    members = new Map(
      prototypesOf(type)
        .toReversed()
        .flatMap((prototype) => [...(declared.get(prototype) ?? [])]),
    );
    resolved.set(type, members);
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

/** What a rule says of a bad value; `path` leads further down from the property (an index, a key). */
export interface FieldProblem {
  type: string;
  msg: string;
  path?: string[];
}

type DescribeProblems = (value: unknown) => FieldProblem[];

/** Under this name a rule's `describe` travels in class-validator's error context to `inputProblems`. */
export interface FieldRuleContext {
  describe: DescribeProblems;
}

interface Presence {
  /** The member must be there. */
  required?: boolean;
  /** null is accepted and keeps its meaning. */
  nullable?: boolean;
}

/**
 * A class-validator rule that can say *why* a value is wrong (type and sentence), not only that it is.
 * Absent members pass unless required; null passes where it is allowed.
 */
export function fieldRule(name: string, presence: Presence, describe: DescribeProblems): PropertyDecorator {
  const full: DescribeProblems = (value) =>
    value === undefined ? [{ type: 'missing', msg: 'This member is required.' }] : describe(value);
  const skip = ValidateIf(
    (_object: object, value: unknown) =>
      !(value === undefined && presence.required !== true) && !(value === null && presence.nullable === true),
  );
  const check = ValidateBy(
    {
      name,
      validator: { validate: (value: unknown) => full(value).length === 0, defaultMessage: () => name },
    },
    { context: { describe: full } satisfies FieldRuleContext },
  );
  return (target, property) => {
    skip(target, property);
    check(target, property);
  };
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
        required: options.required ?? false,
        ...(options.nullable === true && { nullable: true }),
        ...(options.example !== undefined && { example: options.example }),
        ...(options.default !== undefined && { default: options.default }),
      }),
    ),
  );
}

/** Whether a parsed JSON value is an object (not null, not an array). */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const EXTRA_MEMBERS = Symbol('extra members');

/**
 * Builds a DTO from a parsed JSON object: listed members only, absent ones stay absent.
 *
 * Done by hand, not with class-transformer: that one walks the whole input before the members' own coercions run,
 * takes each value's `constructor` member for its class (so `{"constructor":5}` throws), and drops keys of that name
 * from maps.
 */
export function toDto<T extends object>(type: DtoClass<T>, plain: Record<string, unknown>): T {
  const dto = new type();
  for (const [property, coerce] of membersOf(type)) {
    const value = Object.hasOwn(plain, property) ? coerce(plain[property]) : undefined;
    if (value !== undefined) {
      Object.assign(dto, { [property]: value });
    }
  }
  return dto;
}

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

/** More elements than this serve no request of ours, and each one costs time and perhaps a line in the answer. */
const MOST_ELEMENTS = 1_000;

/** Stands in for a list or map with too many elements, so that nothing walks through them. */
export class TooMany {
  readonly problem: FieldProblem = {
    type: 'too_long',
    msg: `Expected at most ${MOST_ELEMENTS} elements.`,
  };
}

/** What `convert` makes of `count` elements, or the stand-in when there are too many of them. */
export function unlessTooMany<T>(count: number, convert: () => T): T | TooMany {
  return count > MOST_ELEMENTS ? new TooMany() : convert();
}
