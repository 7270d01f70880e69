import { describe, expect, it } from '@jest/globals';
import { ADMINISTRATORS_ONLY, OPEN_TO_EVERYONE, ROUTE_RULES, type RouteRules } from './api-route.js';
import { completeOperation } from './invalid-input-example.js';
import type { Operation } from './operations.js';

const BODY: Partial<Operation> = {
  requestBody: { content: { 'application/json': { schema: { type: 'object', required: ['name'] } } } },
};
const PARAMETER: Partial<Operation> = {
  parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
};
const HEADER: Partial<Operation> = { parameters: [{ name: 'If-Match', in: 'header', schema: {} }] };

function completed(operation: object, rules: RouteRules = {}): Operation {
  const result = { responses: { 200: { description: 'Done' } }, [ROUTE_RULES]: rules, ...operation };
  completeOperation(result, {});
  return result;
}

describe('completeOperation', () => {
  it.each<[string, object, number[]]>([
    ['any', {}, [200, 401, 429, 500, 503]],
    ['an open', { [OPEN_TO_EVERYONE]: true }, [200, 431, 500]],
    ['an administrative', { [ADMINISTRATORS_ONLY]: true }, [200, 401, 403, 429, 500, 503]],
    ['one with a body', BODY, [200, 401, 413, 415, 422, 429, 500, 503]],
    ['an open one with a body', { ...BODY, [OPEN_TO_EVERYONE]: true }, [200, 413, 415, 422, 431, 500]],
    ['one with parameters', PARAMETER, [200, 401, 422, 429, 500, 503]],
    ['one with headers', HEADER, [200, 401, 429, 500, 503]],
  ])('knows how %s operation ends', (_which, operation, statuses) => {
    expect(Object.keys(completed(operation).responses)).toEqual(statuses.map(String));
  });

  it.each([
    ['any', {}, [{ APIKeyHeader: [] }, { SessionCookie: [] }]],
    ['an open', { [OPEN_TO_EVERYONE]: true }, undefined],
  ])('asks for a key where %s operation does', (_which, operation, security) => {
    expect(completed(operation).security).toEqual(security);
  });

  it('shows the problems of a status together, in the words of the first that describes it', () => {
    const { responses } = completed(
      {},
      {
        problems: [{ status: 429, code: 'sandbox_limit', detail: 'Five run.', description: 'Too many' }],
      },
    );

    expect(responses[429]).toMatchObject({
      description: 'Too many',
      content: {
        'application/json': {
          examples: {
            rate_limited: { value: { code: 'rate_limited' } },
            sandbox_limit: { value: { code: 'sandbox_limit', detail: 'Five run.' } },
          },
        },
      },
    });
  });

  it('leaves the limit of a body to a route that says it', () => {
    const { responses } = completed(BODY, { problems: [{ status: 413, detail: 'At most 32 MiB.' }] });

    expect(responses[413]).toMatchObject({
      content: {
        'application/json': { examples: { payload_too_large: { value: { detail: 'At most 32 MiB.' } } } },
      },
    });
  });

  it('leaves nothing of the marks in the document', () => {
    const operation = completed({ [OPEN_TO_EVERYONE]: true, [ADMINISTRATORS_ONLY]: true });

    const left = Object.entries(operation).filter(([key]) => key.startsWith('x-'));

    expect(left).toEqual([['x-scope', 'none']]);
  });
});
