import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';

const MAX_ERRORS = 5;

/**
 * Compiles a JSON Schema (draft 2020-12); formats and unknown keywords are not checked, and nothing is fetched. The
 * function tells the model what is wrong with a value; null when nothing is.
 * @throws Error with the reason when the schema cannot be used
 */
export function jsonSchemaCheck(schema: Record<string, unknown>): (value: unknown) => string | null {
  const { $schema: _, ...rules } = schema;
  const validate = new Ajv2020({
    strict: false,
    validateFormats: false,
    logger: false,
    allErrors: true,
  }).compile(rules);
  return (value) =>
    validate(value) ? null : (validate.errors ?? []).slice(0, MAX_ERRORS).map(describe).join('; ');
}

function describe({ instancePath, message = 'is not valid' }: ErrorObject): string {
  return instancePath === '' ? message : `${instancePath} ${message}`;
}
