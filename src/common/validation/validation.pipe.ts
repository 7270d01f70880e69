import { type ArgumentMetadata, Injectable, type PipeTransform } from '@nestjs/common';
import { getMetadataStorage, type ValidationError, validateSync } from 'class-validator';
import { type InputProblem, InvalidInputError } from '../errors/domain-error.js';
import { unsafeTextProblems } from '../requests/unsafe-text.js';
import { type DtoClass, type FieldProblem, isPlainObject, type RuleContext, toDto } from './field.js';
import { keepsRules } from './rule-check.js';

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
    if (!isPlainObject(value)) {
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
