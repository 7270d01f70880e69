import { describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Parameter, Response } from './operations.js';
import { invalidInputResponse, problemResponses } from './problem-responses.js';
import { withSharedParts } from './shared-parts.js';

type PathItem = OpenAPIObject['paths'][string];

const GONE: Response = problemResponses([{ status: 410, detail: 'It was deleted.' }])[410] ?? {
  description: '',
};

function documentOf(...answers: Record<string, Response>[]): OpenAPIObject {
  return {
    openapi: '3.1.0',
    info: { title: 'Slipway', version: '1' },
    paths: Object.fromEntries(answers.map((responses, index) => [`/${index}`, { get: { responses } }])),
  };
}

describe('withSharedParts', () => {
  it('writes an error that several operations have once, and refers to it', () => {
    const { paths, components } = withSharedParts(documentOf({ 410: GONE }, { 410: GONE }));

    expect(components?.responses).toEqual({ GoneItWasDeleted: withReference(GONE) });
    expect(components?.examples).toEqual({ ItWasDeleted: EXAMPLE });
    expect(paths['/1']?.get?.responses[410]).toEqual({ $ref: '#/components/responses/GoneItWasDeleted' });
  });

  it('names the usual error of a status after the status alone', () => {
    const usual = problemResponses([503]);

    const { responses = {}, examples = {} } = withSharedParts(documentOf(usual, usual)).components ?? {};

    expect([Object.keys(responses), Object.keys(examples)]).toEqual([['Unavailable'], ['Unavailable']]);
  });

  it('leaves answers, and errors of one operation, where they are', () => {
    const other = invalidInputResponse({ loc: ['body'], type: 'missing', msg: 'This member is required.' });
    const document = documentOf({ 200: GONE, 422: other }, { 200: GONE });

    expect(withSharedParts(document).paths).toEqual(document.paths);
  });

  it('gives errors that say the same of themselves different names, whatever the order of paths', () => {
    const other = { ...GONE, description: 'Another' };
    const document = documentOf({ 410: other }, { 410: GONE }, { 410: GONE }, { 410: other });
    const turned = { ...document, paths: Object.fromEntries(Object.entries(document.paths).toReversed()) };
    const { components } = withSharedParts(document);

    expect(components?.responses).toEqual({
      GoneItWasDeleted: withReference(other),
      GoneItWasDeleted2: withReference(GONE),
    });
    expect(withSharedParts(turned).components).toEqual(components);
  });

  it('writes a parameter of several operations once, under a name made of its description', () => {
    const parameter: Parameter = { name: 'id', in: 'path', description: 'Id of the car: any.', schema: {} };
    const other: Parameter = { name: 'q', in: 'query', schema: {} };
    const get = (parameters: Parameter[]): PathItem => ({ get: { parameters, responses: {} } });
    const { paths, components } = withSharedParts({
      ...documentOf(),
      paths: { '/a': get([parameter]), '/b': get([other, parameter]) },
    });

    expect(components?.parameters).toEqual({ IdOfTheCar: parameter });
    expect(paths['/b']?.get?.parameters).toEqual([other, { $ref: '#/components/parameters/IdOfTheCar' }]);
  });

  it('writes a header of several answers, and a body of several operations, once', () => {
    const tag = { description: 'Strong.', schema: { type: 'string' } };
    const requestBody = { content: { 'application/json': { schema: { $ref: '#/components/schemas/Car' } } } };
    const post = (): PathItem => ({
      post: { requestBody, responses: { 200: { description: 'Done', headers: { ETag: tag } } } },
    });
    const { paths, components } = withSharedParts({ ...documentOf(), paths: { '/a': post(), '/b': post() } });

    expect(components).toMatchObject({ headers: { ETag: tag }, requestBodies: { Car: requestBody } });
    expect(paths['/b']?.post).toEqual({
      requestBody: { $ref: '#/components/requestBodies/Car' },
      responses: { 200: { description: 'Done', headers: { ETag: { $ref: '#/components/headers/ETag' } } } },
    });
  });
});

const EXAMPLE = Object.values(GONE.content?.['application/json']?.examples ?? {})[0];

/** The response as it stands in the components, its example being there too. */
function withReference(response: Response): Response {
  const [code = ''] = Object.keys(GONE.content?.['application/json']?.examples ?? {});
  const examples = { [code]: { $ref: '#/components/examples/ItWasDeleted' } };
  return {
    ...response,
    content: Object.fromEntries(
      Object.entries(response.content ?? {}).map(([type, media]) => [
        type,
        media.examples ? { ...media, examples } : media,
      ]),
    ),
  };
}
