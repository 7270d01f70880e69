import { describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Response } from './operations.js';
import { problemResponses } from './problem-responses.js';
import { withSharedResponses } from './shared-responses.js';

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

describe('withSharedResponses', () => {
  it('writes an error that several operations have once, and refers to it', () => {
    const { paths, components } = withSharedResponses(documentOf({ 410: GONE }, { 410: GONE }));

    expect(components?.responses).toEqual({ GoneItWasDeleted: GONE });
    expect(paths['/1']?.get?.responses[410]).toEqual({ $ref: '#/components/responses/GoneItWasDeleted' });
  });

  it('names the usual error of a status after the status alone', () => {
    const usual = problemResponses([503]);

    expect(withSharedResponses(documentOf(usual, usual)).components?.responses).toEqual({
      ServiceUnavailable: usual[503],
    });
  });

  it('leaves answers, and errors of one operation, where they are', () => {
    const document = documentOf({ 200: GONE, 410: GONE }, { 200: GONE });

    expect(withSharedResponses(document).paths).toEqual(document.paths);
  });

  it('gives errors that say the same of themselves different names, whatever the order of paths', () => {
    const other = { ...GONE, description: 'Another' };
    const document = documentOf({ 410: other }, { 410: GONE }, { 410: GONE }, { 410: other });
    const turned = { ...document, paths: Object.fromEntries(Object.entries(document.paths).toReversed()) };
    const { components } = withSharedResponses(document);

    expect(components?.responses).toEqual({ GoneItWasDeleted: other, GoneItWasDeleted2: GONE });
    expect(withSharedResponses(turned).components).toEqual(components);
  });
});
