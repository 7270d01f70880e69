import { type ArgumentMetadata, Injectable, type PipeTransform } from '@nestjs/common';
import {
  getMetadataStorage,
  validateSync,
  type ValidationError,
  ValidationTypes,
  type ValidatorConstraintInterface,
} from 'class-validator';
import { isJsonObject } from '@slipway/common/json-merge.js';
import { type InputProblem, InvalidInputError } from '../errors/domain-error.js';
import { unsafeTextProblems } from '../requests/unsafe-text.js';
import { type DtoClass, type FieldProblem, type RuleContext, toDto } from './field.js';

type Metadata = ReturnType<ReturnType<typeof getMetadataStorage>['getTargetValidationMetadatas']>[number];

/** What `ValidateIf` says of a member: whether its rules count. */
type Condition = (object: object, value: unknown) => boolean;

/** One rule of a member. */
interface Check {
  constraint: ValidatorConstraintInterface;
  constraints: unknown[];
  /** Whether the rule applies to each element of a collection. */
  each: boolean;
}

interface MemberRules {
  property: string;
  conditions: Condition[];
  checks: Check[];
  /** Whether the value has rules of its own, or its elements have. */
  isNested: boolean;
}

/** Null: it has rules that this check does not know. */
const rulesByClass = new WeakMap<object, MemberRules[] | null>();

/**
 * Whether an object keeps all rules of its class. Most input does, and `class-validator` takes twenty times as long to find that
 * out: it groups its rules anew for each object, and prepares an error for each member. False: `validateSync` has to judge,
 * also what of the library's is not known here.
 */
export function keepsRules(object: object): boolean {
  const rules = rulesOf(object.constructor);
  return rules !== null && rules.every((member) => keepsMemberRules(object, member));
}

function keepsMemberRules(object: object, { property, conditions, checks, isNested }: MemberRules): boolean {
  const value: unknown = Reflect.get(object, property);
  if (!conditions.every((applies) => applies(object, value))) {
    return true;
  }
  return (
    checks.every((check) => passes(check, object, property, value)) && (!isNested || keepsNestedRules(value))
  );
}

function passes(
  { constraint, constraints, each }: Check,
  object: object,
  property: string,
  value: unknown,
): boolean {
  const about = { targetName: object.constructor.name, property, object, value, constraints };
  // Only true counts: a promise is for `validateSync`.
  return each && isCollection(value)
    ? [...value.values()].every((element) => constraint.validate(element, about) === true)
    : constraint.validate(value, about) === true;
}

function keepsNestedRules(value: unknown): boolean {
  if (isCollection(value)) {
    return [...value.values()].every(keepsNestedRules);
  }
  return value === undefined || (typeof value === 'object' && value !== null && keepsRules(value));
}

function isCollection(value: unknown): value is readonly unknown[] | Set<unknown> | Map<unknown, unknown> {
  return Array.isArray(value) || value instanceof Set || value instanceof Map;
}

function rulesOf(type: object): MemberRules[] | null {
  let rules = rulesByClass.get(type);
  if (rules === undefined) {
    rules = typeof type === 'function' ? compile(type) : null;
    rulesByClass.set(type, rules);
  }
  return rules;
}

function compile(type: NewableFunction | CallableFunction): MemberRules[] | null {
  const storage = getMetadataStorage();
  const all = storage.getTargetValidationMetadatas(type, '', false, false);
  const members = Object.entries(storage.groupByPropertyName(all)).map(([property, metadata]) =>
    memberRules(property, metadata),
  );
  return members.every((member) => member !== null) ? members : null;
}

function memberRules(property: string, metadata: readonly Metadata[]): MemberRules | null {
  const rules: MemberRules = { property, conditions: [], checks: [], isNested: false };
  for (const one of metadata) {
    switch (one.type) {
      case ValidationTypes.CONDITIONAL_VALIDATION:
        rules.conditions.push(one.constraints[0]);
        break;
      case ValidationTypes.NESTED_VALIDATION:
        rules.isNested = true;
        break;
      case ValidationTypes.CUSTOM_VALIDATION:
      case ValidationTypes.IS_DEFINED:
        if (one.validateIf !== undefined) {
          return null;
        }
        for (const { instance } of getMetadataStorage().getTargetValidatorConstraints(one.constraintCls)) {
          rules.checks.push({ constraint: instance, constraints: one.constraints, each: one.each });
        }
        break;
      default:
        return null;
    }
  }
  return rules;
}

const LOCATIONS = { body: 'body', query: 'query', param: 'path' } as const;

/** Turns input into its DTO and applies the rules of the DTO class. */
@Injectable()
export class InputValidationPipe implements PipeTransform {
  async transform(value: unknown, { type, metatype }: ArgumentMetadata): Promise<unknown> {
    if (type === 'custom') {
      return value;
    }
    const location = LOCATIONS[type];
    // Bodies were checked when they were read.
    const unsafe = type === 'body' ? [] : unsafeTextProblems(value, location);
    if (unsafe.length > 0) {
      throw new InvalidInputError(unsafe);
    }
    if (!isDto(metatype)) {
      return value;
    }
    if (value === undefined || value === null) {
      throw new InvalidInputError([
        { loc: [location], msg: 'A JSON object is required here.', type: 'missing' },
      ]);
    }
    if (!isJsonObject(value)) {
      throw new InvalidInputError([
        { loc: [location], msg: 'Expected an object.', type: 'model_attributes_type' },
      ]);
    }
    const dto = toDto(metatype, value);
    if (keepsRules(dto)) {
      return dto;
    }
    // Synchronous, since no rule waits for anything and promises cost a tenth of the whole validation.
    const problems = inputProblems(validateSync(dto, { forbidUnknownValues: false }), [location]);
    if (problems.length > 0) {
      throw new InvalidInputError(problems);
    }
    return dto;
  }
}

const dtoClasses = new WeakMap<object, boolean>();

/** A class with at least one rule; the pipe passes everything else on (String, Object, an interface). */
function isDto(metatype: unknown): metatype is DtoClass {
  if (typeof metatype !== 'function') {
    return false;
  }
  let isOne = dtoClasses.get(metatype);
  if (isOne === undefined) {
    isOne = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false).length > 0;
    dtoClasses.set(metatype, isOne);
  }
  return isOne;
}

/**
 * For a route whose body may be left out: no body is an object without members. The parameter's declared type must not be
 * the DTO itself (`Partial<Dto>` is fine), or the global pipe asks for a body first.
 */
export class OptionalBodyPipe implements PipeTransform<unknown, Promise<unknown>> {
  private readonly pipe = new InputValidationPipe();

  constructor(private readonly dto: DtoClass) {}

  async transform(value: unknown): Promise<unknown> {
    return this.pipe.transform(value ?? {}, { type: 'body', metatype: this.dto });
  }
}

/** Flattens class-validator's error tree into problems with full locations, in field order. */
function inputProblems(errors: readonly ValidationError[], loc: readonly string[]): InputProblem[] {
  return errors.flatMap((error) => {
    const here = [...loc, error.property];
    const own = fieldProblems(error).map(({ type, msg, path = [] }) => ({
      loc: [...here, ...path],
      msg,
      type,
    }));
    const below = inputProblems(error.children ?? [], here);
    // A map's keys are judged before its values; members that should not be there come after those that may.
    const all = error.value instanceof Map ? [...own, ...below] : [...below, ...own];
    return inElementOrder(all, here.length, error.value);
  });
}

/** class-validator's remark on an element that is no object; the rules of the list or map name those already. */
const NESTED_REMARK = 'nestedValidation';

/** What the first broken rule of a member says: rules are registered from the type of a value to its details. */
function fieldProblems({ constraints = {}, contexts = {}, value }: ValidationError): FieldProblem[] {
  const [broken] = Object.keys(constraints).filter((name) => name !== NESTED_REMARK);
  if (broken === undefined) {
    return [];
  }
  const context = (contexts as Record<string, RuleContext | undefined>)[broken];
  return context?.describe(value) ?? [{ type: 'value_error', msg: constraints[broken] ?? '' }];
}

/** Problems of a list's or map's elements follow the order of the elements; everything else stays as it is. */
function inElementOrder(problems: InputProblem[], depth: number, value: unknown): InputProblem[] {
  if (!Array.isArray(value) && !(value instanceof Map)) {
    return problems;
  }
  const ranks = new Map([...value.keys()].map((key, index) => [String(key), index]));
  const rank = (problem: InputProblem): number => ranks.get(problem.loc[depth] ?? '') ?? -1;
  return problems.toSorted((a, b) => rank(a) - rank(b));
}
