import {
  type ArgumentMetadata,
  type ValidationError,
  ValidationPipe,
  type ValidationPipeOptions,
} from '@nestjs/common';
import { isJsonObject } from '@slipway/common/json-merge.js';
import { type InputProblem, InvalidInputError } from '../errors/domain-error.js';
import { unsafeTextProblems } from '../requests/unsafe-text.js';
import { type DtoClass, type FieldProblem, type RuleContext, TO_DTO } from './field.js';

const NOTHING = { msg: 'A JSON object is required here.', type: 'missing' };
const NO_OBJECT = { msg: 'Expected an object.', type: 'model_attributes_type' };
const LOCATIONS = { body: 'body', query: 'query', param: 'path' } as const;

/** Says what is wrong with the input in the form of FastAPI. */
export class InputValidationPipe extends ValidationPipe {
  /** By default, the class is that of the parameter. */
  constructor(expectedType?: DtoClass) {
    super({
      ...(expectedType && { expectedType }),
      transform: true,
      transformOptions: TO_DTO,
      validationError: { value: true },
      exceptionFactory: (errors) => new InvalidInputError(inputProblems(errors, [])),
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const { type } = metadata;
    if (type === 'custom') {
      return value;
    }
    const location = LOCATIONS[type];
    // Bodies were checked when they were read.
    const unsafe = type === 'body' ? [] : unsafeTextProblems(value, location);
    if (unsafe.length > 0) {
      throw new InvalidInputError(unsafe);
    }
    const isDto = this.toValidate({ ...metadata, metatype: this.expectedType ?? metadata.metatype });
    if (isDto && !isJsonObject(value)) {
      throw new InvalidInputError([{ loc: [location], ...((value ?? null) === null ? NOTHING : NO_OBJECT) }]);
    }
    try {
      return await super.transform(value, metadata);
    } catch (error) {
      throw error instanceof InvalidInputError
        ? new InvalidInputError(error.problems.map((each) => ({ ...each, loc: [location, ...each.loc] })))
        : error;
    }
  }

  /** class-validator also remarks on a null in a map, where the map's own rules allow it. */
  protected override async validate(
    object: object,
    options?: ValidationPipeOptions,
  ): Promise<ValidationError[]> {
    const errors = await super.validate(object, options);
    return errors.filter((error) => inputProblems([error], []).length > 0);
  }

  /** Variables and secrets may have any name; no DTO takes its prototype from one. */
  protected override stripProtoKeys(): void {}
}

/** Accepts a missing body. The parameter must not have the DTO's own type, or the global pipe asks for a body. */
export class OptionalBodyPipe extends InputValidationPipe {
  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    return super.transform(value ?? {}, metadata);
  }
}

/** Flattens class-validator's error tree, in field order. */
function inputProblems(errors: readonly ValidationError[], loc: readonly string[]): InputProblem[] {
  return errors.flatMap((error) => {
    const here = [...loc, error.property];
    const problems = fieldProblems(error);
    const own = problems.map(({ type, msg, path = [] }) => ({ loc: [...here, ...path], msg, type }));
    // Parts of a value that is wrong as a whole are not reported.
    const isWrong = problems.some(({ path }) => path === undefined);
    const below = isWrong ? [] : inputProblems(error.children ?? [], here);
    // A map's keys are judged before its values; members that should not be there come after those that may.
    const all = error.value instanceof Map ? [...own, ...below] : [...below, ...own];
    return inElementOrder(all, here.length, error.value);
  });
}

/** class-validator's remark on an element that is no object; the rules of the list or map name those already. */
const NESTED_REMARK = 'nestedValidation';

/** Only the first: rules are registered from the type of a value to its details. */
function fieldProblems({ constraints = {}, contexts = {}, value }: ValidationError): FieldProblem[] {
  const [broken] = Object.keys(constraints).filter((name) => name !== NESTED_REMARK);
  if (broken === undefined) {
    return [];
  }
  const context = (contexts as Record<string, RuleContext | undefined>)[broken];
  return context?.describe(value) ?? [{ type: 'value_error', msg: constraints[broken] ?? '' }];
}

/** Problems of elements follow the order of the elements; other problems stay as they are. */
function inElementOrder(problems: InputProblem[], depth: number, value: unknown): InputProblem[] {
  if (!Array.isArray(value) && !(value instanceof Map)) {
    return problems;
  }
  const ranks = new Map([...value.keys()].map((key, index) => [String(key), index]));
  const rank = (problem: InputProblem): number => ranks.get(problem.loc[depth] ?? '') ?? -1;
  return problems.toSorted((a, b) => rank(a) - rank(b));
}
