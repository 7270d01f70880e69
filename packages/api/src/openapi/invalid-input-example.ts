import type { InputProblem } from '../errors/problem-error.js';
import { dereferenced, type MediaType, type Operation, type Schema, type Schemas } from './operations.js';

interface Input {
  place: string;
  name: string;
  required: boolean;
  schema: Exclude<Schema, { $ref: string }>;
}

const FORMATS: Record<string, [type: string, msg: string]> = {
  uuid: ['uuid_parsing', 'Expected a UUID: 32 hexadecimal digits.'],
  'date-time': ['datetime_parsing', 'Expected a time such as 2030-01-31T12:00:00Z.'],
  email: ['value_error', 'Expected an email address such as ada@example.com.'],
};

/** A failed validation of the named input, or of the one that clients are most likely to get wrong. */
export function invalidInputExample(operation: Operation, schemas: Schemas, named?: string): InputProblem {
  const inputs = inputsOf(operation, schemas);
  const input = named === undefined ? likeliestOf(inputs) : inputs.find(({ name }) => name === named);
  if (input) {
    return problemOf(input);
  }
  if (named !== undefined) {
    throw new Error(`${operation.operationId} takes nothing that is named ${named}`);
  }
  return { loc: ['body'], type: 'json_invalid', msg: 'Expected one complete JSON value.' };
}

function likeliestOf(inputs: readonly Input[]): Input | undefined {
  const parameters = inputs.filter(({ place }) => place !== 'body');
  return (
    inputs.find(({ place, required }) => required && place !== 'path') ??
    parameters.find(({ name }) => name === 'limit') ??
    parameters.find(({ schema }) => schema.format !== undefined) ??
    parameters.find(({ place }) => place === 'path')
  );
}

/** Members of the body, then parameters; headers are not checked. */
export function inputsOf(operation: Operation, schemas: Schemas): Input[] {
  const { properties = {}, required = [] } = dereferenced(jsonBodyOf(operation)?.schema, schemas);
  const members = Object.entries(properties).map(([name, schema]) => ({
    place: 'body',
    name,
    required: required.includes(name),
    schema: dereferenced(schema, schemas),
  }));
  const parameters = (operation.parameters ?? []).flatMap((parameter) =>
    'in' in parameter && parameter.in !== 'header'
      ? [
          {
            place: parameter.in,
            name: parameter.name,
            required: parameter.required ?? false,
            schema: dereferenced(parameter.schema, schemas),
          },
        ]
      : [],
  );
  return [...members, ...parameters];
}

export function jsonBodyOf({ requestBody }: Operation): MediaType | undefined {
  return requestBody && 'content' in requestBody ? requestBody.content['application/json'] : undefined;
}

function problemOf({ place, name, required, schema }: Input): InputProblem {
  const { enum: values, format, maximum, maxLength, type } = schema;
  const problem = (kind: string, msg: string): InputProblem => ({ loc: [place, name], type: kind, msg });
  const byFormat = FORMATS[format ?? ''];
  if (values) {
    return problem('enum', `Expected one of: ${values.join(', ')}.`);
  }
  if (maximum !== undefined) {
    return problem('less_than_equal', `Expected a number of at most ${maximum}.`);
  }
  if (byFormat) {
    return problem(...byFormat);
  }
  if (place === 'path') {
    return problem('string_unicode', 'Expected text without NUL characters.');
  }
  if (required) {
    return problem('missing', 'This member is required.');
  }
  return type === 'boolean'
    ? problem('bool_parsing', 'Expected true or false.')
    : problem('value_error', `Expected at most ${maxLength} characters.`);
}
