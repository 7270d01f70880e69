import { STATUS_CODES } from 'node:http';
import type { OpenAPIObject } from '@nestjs/swagger';
import { type Operation, operationsOf, type Parameter, type Response } from './operations.js';
import { isUsualDetail } from './problem-responses.js';

const MAX_WORDS = 8;
const MAX_WORDS_OF_PARAMETERS = 5;

interface Reference {
  $ref: string;
}

/** Where something stands that others may say too. */
interface Place {
  name: string;
  part: object;
  refer: (reference: Reference) => void;
}

/** Writes what several operations say in the same words once, in the components, and refers to it. */
export function withSharedParts(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  const operations = [...operationsOf(copy), ...operationsOf({ ...copy, paths: copy.webhooks ?? {} })]
    // An order that does not depend on that of imports, as names may.
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ operation }) => operation);
  const errors = operations.flatMap(errorsOf);
  // Named while examples still stand in them.
  const responses = errors.map(({ status, response, responses: all }) => ({
    name: nameOf(status, response),
    part: response,
    refer: (reference: Reference) => void (all[status] = reference),
  }));
  const examples = shared('examples', errors.flatMap(examplesOf));
  copy.components = {
    ...copy.components,
    examples,
    parameters: shared('parameters', operations.flatMap(parametersOf)),
    responses: shared('responses', responses),
  };
  return copy;
}

function shared(kind: 'examples' | 'parameters' | 'responses', places: Place[]): Record<string, never> {
  const parts: Record<string, object> = {};
  for (const same of Map.groupBy(places, ({ part, name }) => `${name} ${JSON.stringify(part)}`).values()) {
    const [first] = same;
    if (first && same.length > 1) {
      const name = freeName(first.name, parts);
      parts[name] = first.part;
      same.forEach(({ refer }) => refer({ $ref: `#/components/${kind}/${name}` }));
    }
  }
  return parts as Record<string, never>;
}

interface ErrorResponse {
  status: string;
  response: Response;
  responses: Operation['responses'];
}

function errorsOf({ responses }: Operation): ErrorResponse[] {
  return Object.entries(responses).flatMap(([status, response]) =>
    response && !('$ref' in response) && Number(status) >= 400 ? [{ status, response, responses }] : [],
  );
}

function examplesOf({ status, response: { content = {} } }: ErrorResponse): Place[] {
  return Object.values(content).flatMap(({ examples = {} }) =>
    Object.entries(examples).flatMap(([key, example]) =>
      '$ref' in example
        ? []
        : [
            {
              name: nameOfError(status, aboutExample(example.value)),
              part: example,
              refer: (reference) => void (examples[key] = reference),
            },
          ],
    ),
  );
}

function parametersOf({ parameters = [] }: Operation): Place[] {
  return parameters.flatMap((parameter, index) =>
    '$ref' in parameter
      ? []
      : [
          {
            name: joined(firstWords(firstClause(parameter), MAX_WORDS_OF_PARAMETERS)),
            part: parameter,
            refer: (reference) => void (parameters[index] = reference),
          },
        ],
  );
}

/** For example `NotFoundThereIsNoSandboxWithThisId`. */
function nameOf(status: string, { description, content = {} }: Response): string {
  const { example, examples = {} } = content['application/json'] ?? {};
  const several = Object.values(examples).flatMap((each) => ('$ref' in each ? [] : [each.value as unknown]));
  const only: unknown = several.length > 1 ? undefined : (example ?? several[0]);
  return nameOfError(status, aboutExample(only) ?? description);
}

function aboutExample(example: unknown): string | undefined {
  const { detail } = Object(example) as { detail?: string | { loc: string[] }[] };
  return Array.isArray(detail) ? detail.flatMap(({ loc }) => loc).join(' ') : detail;
}

function nameOfError(status: string, about = ''): string {
  const isUsual = isUsualDetail(Number(status), about);
  return joined(`${STATUS_CODES[status]} ${isUsual ? '' : firstWords(about, MAX_WORDS)}`);
}

function firstClause({ description, name }: Parameter): string {
  return (description ?? name).replace(/[.:,;(][^]*/, '').replaceAll('_', ' ');
}

function firstWords(text: string, most: number): string {
  return text.split(/\s+/).slice(0, most).join(' ');
}

function joined(text: string): string {
  return [...text.matchAll(/(\w)(\w*)/g)]
    .map(([, initial = '', rest = '']) => `${initial.toUpperCase()}${rest}`)
    .join('');
}

function freeName(name: string, taken: Record<string, unknown>): string {
  let free = name;
  for (let number = 2; free in taken; number += 1) {
    free = `${name}${number}`;
  }
  return free;
}
