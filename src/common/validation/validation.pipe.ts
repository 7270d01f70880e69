import { type ArgumentMetadata, type ValidationError, ValidationPipe } from '@nestjs/common';
import { isJsonObject } from '@slipway/common/json-merge.js';
import { type InputProblem, InvalidInputError } from '../errors/domain-error.js';
import { unsafeTextProblems } from '../requests/unsafe-text.js';
import { type DtoClass, type Judge, TO_DTO } from './field.js';

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
    return await super.transform(value, metadata).catch((error: unknown) => {
      throw error instanceof InvalidInputError
        ? new InvalidInputError(error.problems.map((each) => ({ ...each, loc: [location, ...each.loc] })))
        : error;
    });
  }

  /** class-validator also remarks on a null in a map, where the map's own rules allow it. */
  protected override async validate(
    ...given: Parameters<ValidationPipe['validate']>
  ): Promise<ValidationError[]> {
    const errors = await super.validate(...given);
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

/** Flattens class-validator's error tree, in the order of fields and elements. */
function inputProblems(errors: readonly ValidationError[], loc: readonly string[]): InputProblem[] {
  return errors.flatMap(({ property, value, children = [], constraints = {}, contexts = {} }) => {
    const here = [...loc, property];
    const [broken] = Object.entries(constraints);
    const { judge }: { judge?: Judge } = Object(contexts[broken?.[0] ?? '']);
    const problems = broken ? (judge?.(value, property) ?? [{ type: 'value_error', msg: broken[1] }]) : [];
    const own = problems.map(({ type, msg, path = [] }) => ({ loc: [...here, ...path], msg, type }));
    // Parts of a value that is wrong as a whole are not reported.
    const isWrong = problems.some(({ path }) => path === undefined);
    const below = isWrong ? [] : inputProblems(children, here);
    // Members that should not be there come after those that may; a map's keys come before its values.
    const all = value instanceof Map ? [...own, ...below] : [...below, ...own];
    const keys = Array.isArray(value) || value instanceof Map ? [...value.keys()].map(String) : [];
    const ranks = new Map(keys.map((key, index) => [key, index]));
    const rank = (problem: InputProblem): number => ranks.get(problem.loc[here.length] ?? '') ?? -1;
    return all.toSorted((a, b) => rank(a) - rank(b));
  });
}
