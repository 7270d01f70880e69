import { STATUS_CODES } from 'node:http';
import type { OpenAPIObject } from '@nestjs/swagger';
import { type Operation, operationsOf, type Parameter, type Response } from './operations.js';

const MAX_WORDS = 4;
/** Shorter names of what nearly every operation refers to. */
const TITLES: Readonly<Record<string, string | undefined>> = {
  ...STATUS_CODES,
  413: 'TooLarge',
  415: 'NotJson',
  422: 'Invalid',
  429: 'RateLimited',
  431: 'HeadersTooLarge',
  500: 'Internal',
  503: 'Unavailable',
};
/** Names do without them. */
const SMALL_WORDS = /^(an?|the|this|that|there|its|is|are|may|of|to|at|as|on|in|for|or|and|with|by)$/i;

interface Reference {
  $ref: string;
}

/** A part of the document that other places may repeat, and the way to replace it by a reference. */
interface Place {
  name: string;
  part: object;
  refer: (reference: Reference) => void;
}

/** Whether this is the text of a status that no operation has said anything about; names do without it. */
type IsUsual = (status: number, detail: string) => boolean;

/** Writes what several operations say in the same words once, in the components, and refers to it. */
export function withSharedParts(document: OpenAPIObject, isUsual: IsUsual): OpenAPIObject {
  const copy = structuredClone(document);
  const operations = [...operationsOf(copy), ...operationsOf({ ...copy, paths: copy.webhooks ?? {} })]
    // An order that does not depend on that of imports, as names may.
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ operation }) => operation);
  const answers = operations.flatMap(answersOf);
  const errors = answers.filter(({ status }) => Number(status) >= 400);
  // Named while examples still stand in them.
  const responses = errors.map(({ status, response, responses: all }) => ({
    name: nameOf(status, response, isUsual),
    part: response,
    refer: (reference: Reference) => void (all[status] = reference),
  }));
  const examples = shared(
    'examples',
    errors.flatMap((answer) => examplesOf(answer, isUsual)),
  );
  copy.components = {
    ...copy.components,
    examples,
    headers: { ...copy.components?.headers, ...shared('headers', answers.flatMap(headersOf)) },
    parameters: shared('parameters', operations.flatMap(parametersOf)),
    requestBodies: shared('requestBodies', operations.flatMap(bodyOf)),
    responses: shared('responses', responses),
  };
  return copy;
}

function shared(
  kind: 'examples' | 'headers' | 'parameters' | 'requestBodies' | 'responses',
  places: Place[],
): Record<string, never> {
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

interface Answer {
  status: string;
  response: Response;
  responses: Operation['responses'];
}

function answersOf({ responses }: Operation): Answer[] {
  return Object.entries(responses).flatMap(([status, response]) =>
    response && !('$ref' in response) ? [{ status, response, responses }] : [],
  );
}

function headersOf({ response: { headers = {} } }: Answer): Place[] {
  return Object.entries(headers).flatMap(([name, header]) =>
    '$ref' in header ? [] : [{ name, part: header, refer: (reference) => void (headers[name] = reference) }],
  );
}

/** Named after what it holds. */
function bodyOf(operation: Operation): Place[] {
  const { requestBody } = operation;
  const [media] = requestBody && 'content' in requestBody ? Object.values(requestBody.content) : [];
  const name = media?.schema && '$ref' in media.schema ? media.schema.$ref.split('/').at(-1) : undefined;
  return requestBody && name !== undefined
    ? [{ name, part: requestBody, refer: (reference) => void (operation.requestBody = reference) }]
    : [];
}

function examplesOf({ status, response: { content = {} } }: Answer, isUsual: IsUsual): Place[] {
  return Object.values(content).flatMap(({ examples = {} }) =>
    Object.entries(examples).flatMap(([key, example]) =>
      '$ref' in example
        ? []
        : [
            {
              name: wordsOf(status, isUsual, aboutExample(example.value)) || titleOf(status),
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
            name: joined(firstWords(firstClause(parameter))),
            part: parameter,
            refer: (reference) => void (parameters[index] = reference),
          },
        ],
  );
}

/** Names a response, such as `NotFoundNoSandboxId`. */
function nameOf(status: string, { description, content = {} }: Response, isUsual: IsUsual): string {
  const { example, examples = {} } = content['application/json'] ?? {};
  const several = Object.values(examples).flatMap((each) => ('$ref' in each ? [] : [each.value as unknown]));
  const only: unknown = several.length > 1 ? undefined : (example ?? several[0]);
  return `${titleOf(status)}${wordsOf(status, isUsual, aboutExample(only) ?? description)}`;
}

function aboutExample(example: unknown): string | undefined {
  const { detail } = Object(example) as { detail?: string | { loc: string[] }[] };
  return Array.isArray(detail) ? detail.flatMap(({ loc }) => loc).join(' ') : detail;
}

function titleOf(status: string): string {
  return joined(TITLES[status] ?? status);
}

/** The first that count; none for the usual problem of a status. */
function wordsOf(status: string, isUsual: IsUsual, about = ''): string {
  const words = about.split(/\s+/).filter((word) => !SMALL_WORDS.test(word));
  return isUsual(Number(status), about) ? '' : joined(firstWords(words.join(' ')));
}

function firstClause({ description, name }: Parameter): string {
  return (description ?? name).replace(/[.:,;(][^]*/, '').replaceAll('_', ' ');
}

function firstWords(text: string): string {
  return text.split(/\s+/).slice(0, MAX_WORDS).join(' ');
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
