import { type ArgumentMetadata, Injectable, type PipeTransform } from '@nestjs/common';
import { getMetadataStorage, validate, type ValidationError } from 'class-validator';
import { type InputProblem, InvalidInputError } from '../errors/domain-error.js';
import { unsafeJsonProblems } from '../requests/json-body.middleware.js';
import { type DtoClass, type FieldRuleContext, isPlainObject, toDto } from './field.js';

const LOCATIONS = { body: 'body', query: 'query', param: 'path' } as const;

/** Turns input into its DTO and applies the DTO's rules; the rules live on the DTO classes alone. */
@Injectable()
export class InputValidationPipe implements PipeTransform {
  async transform(value: unknown, { type, metatype }: ArgumentMetadata): Promise<unknown> {
    if (type === 'custom') {
      return value;
    }
    const location = LOCATIONS[type];
    // Bodies were looked through when they were read.
    const unsafe = type === 'body' ? [] : unsafeJsonProblems(value, location);
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
    // class-validator also remarks on nested nulls that a rule of ours admits: only problems count.
    const problems = inputProblems(await validate(dto, { forbidUnknownValues: false }), [location]);
    if (problems.length > 0) {
      throw new InvalidInputError(problems);
    }
    return dto;
  }
}

const known = new WeakMap<object, boolean>();

/** A class with at least one rule; anything else (String, Object, an interface) is none of the pipe's business. */
function isDto(metatype: unknown): metatype is DtoClass {
  if (typeof metatype !== 'function') {
    return false;
  }
  let answer = known.get(metatype);
  if (answer === undefined) {
    answer = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false).length > 0;
    known.set(metatype, answer);
  }
  return answer;
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

/**
 * Flattens class-validator's error tree into problems with full locations, in field order.
 * Errors without one of our rules behind them (class-validator's own remarks on elements that a rule of ours
 * already names) are left out.
 */
function inputProblems(errors: readonly ValidationError[], loc: readonly string[]): InputProblem[] {
  return errors.flatMap((error) => {
    const here = [...loc, error.property];
    const own = Object.values((error.contexts ?? {}) as Record<string, FieldRuleContext>)
      .flatMap((context) => context.describe(error.value))
      .map(({ type, msg, path }) => ({ loc: [...here, ...(path ?? [])], msg, type }));
    const below = inputProblems(error.children ?? [], here);
    // A map's keys are judged before its values; members that should not be there come after those that may.
    const all = error.value instanceof Map ? [...own, ...below] : [...below, ...own];
    return inElementOrder(all, here.length, error.value);
  });
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
