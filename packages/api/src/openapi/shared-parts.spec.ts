import { describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Response } from './operations.js';
import { withSharedParts } from './shared-parts.js';

const GONE: Response = {
  description: 'Error',
  content: {
    'application/json': { examples: { gone: { value: { status: 410, detail: 'It was deleted.' } } } },
  },
};
const nothingIsUsual = () => false;

function documentOf(...answers: Record<string, Response>[]): OpenAPIObject {
  return {
    openapi: '3.1.0',
    info: { title: 'Slipway', version: '1' },
    paths: Object.fromEntries(answers.map((responses, index) => [`/${index}`, { get: { responses } }])),
  };
}

describe('withSharedParts', () => {
  it('gives errors that say the same of themselves different names, whatever the order of paths', () => {
    const other = { ...GONE, description: 'Another' };
    const document = documentOf({ 410: other }, { 410: GONE }, { 410: GONE }, { 410: other });
    const turned = { ...document, paths: Object.fromEntries(Object.entries(document.paths).toReversed()) };
    const { components } = withSharedParts(document, nothingIsUsual);

    expect(components?.responses).toEqual({
      GoneItWasDeleted: withReference(other),
      GoneItWasDeleted2: withReference(GONE),
    });
    expect(withSharedParts(turned, nothingIsUsual).components).toEqual(components);
  });
});

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
