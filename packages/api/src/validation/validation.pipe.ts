import { type ArgumentMetadata, ValidationPipe } from '@nestjs/common';
import { isJsonObject } from '@slipway/common/json-access.js';
import { InvalidInputError, requireNone } from '../errors/problem-error.js';
import { unsafeTextProblems } from '../requests/unsafe-text.js';
import { type DtoClass, fieldProblems, TO_DTO } from './field.js';
import { judgeUnknownMembers } from './unknown-members.js';

const NOTHING = { msg: 'A JSON object is required here.', type: 'missing' };
const NO_OBJECT = { msg: 'Expected an object.', type: 'model_attributes_type' };
const LOCATIONS = { body: 'body', query: 'query', param: 'path' } as const;

/** Says what is wrong with the input in the form of FastAPI. */
export class InputValidationPipe extends ValidationPipe {
  constructor(expectedType?: DtoClass) {
    super({
      ...(expectedType && { expectedType }),
      transform: true,
      transformOptions: TO_DTO,
      validationError: { value: true },
      exceptionFactory: (errors) =>
        new InvalidInputError(
          fieldProblems(errors).map(({ path = [], msg, type }) => ({ loc: path, msg, type })),
        ),
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const { type } = metadata;
    if (type === 'custom') {
      return value;
    }
    const location = LOCATIONS[type];
    const metatype = this.expectedType ?? metadata.metatype;
    const isDto = this.toValidate({ ...metadata, metatype });
    const wrong = { loc: [location], ...((value ?? null) === null ? NOTHING : NO_OBJECT) };
    // The texts of a body were checked when it was read.
    const unsafe = type === 'body' ? [] : unsafeTextProblems(value, location);
    const problems = isDto && !isJsonObject(value) ? [wrong] : unsafe;
    requireNone(problems);
    const input: unknown = await super.transform(value, metadata).catch((error: unknown) => {
      throw error instanceof InvalidInputError
        ? new InvalidInputError(error.problems.map((each) => ({ ...each, loc: [location, ...each.loc] })))
        : error;
    });
    if (isDto && type === 'body' && metatype !== undefined) {
      judgeUnknownMembers(metatype, input, value);
    }
    return input;
  }

  /** Variables and secrets may have any name; no DTO takes its prototype from one. */
  protected override stripProtoKeys(): void {}
}
