import { describe, expect, it } from '@jest/globals';
import { SPANS_HEADER } from '@slipway/agent-protocol/server.js';
import { agentServerSpans } from '../../agent-client/src/agent-server.spans.js';
import { SESSION_KEY, startRequest } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
const WITH_KEY = { 'X-Session-API-Key': SESSION_KEY };

const server = useAgentServer(startTestAgentServer);

async function start(headers: Record<string, string>, body = startRequest()): Promise<Response> {
  return await fetch(`${server.client.url}/api/conversations`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', traceparent: TRACEPARENT, ...headers },
    body: JSON.stringify(body),
  });
}

/** What the service makes of it. */
function namesIn(response: Response): string[] {
  const call = { earliest: 0, startedAt: Date.now() - 60_000, endedAt: Date.now(), name: 'the call' };
  return agentServerSpans(response.headers.get(SPANS_HEADER), call).map(({ name }) => name);
}

describe('a request with a traceparent', () => {
  it('is told what was done for it', async () => {
    const response = await start(WITH_KEY);

    expect(response.status).toBe(201);
    expect(namesIn(response)).toEqual(expect.arrayContaining(['the call', 'create conversation']));
  });

  it('is told that it failed', async () => {
    const response = await start(WITH_KEY, startRequest({ workspace: { working_dir: '/dev/null/folder' } }));

    expect(response.status).toBe(400);
    const entries: unknown = JSON.parse(response.headers.get(SPANS_HEADER) ?? 'null');
    expect(entries).toContainEqual(['create conversation', 0, expect.any(Number), expect.any(Number), 1]);
  });

  it('is told no more than the time without a key', async () => {
    const response = await start({});

    expect(response.status).toBe(401);
    expect(namesIn(response).filter((name) => name !== 'agent server start')).toEqual(['the call']);
  });
});

it.each([
  ['no traceparent', {}],
  ['an invalid one', { traceparent: 'x' }],
])('tells nothing where there is %s', async (_what, headers) => {
  const response = await server.client.fetch('/alive', { headers });

  expect(response.status).toBe(200);
  expect(response.headers.has(SPANS_HEADER)).toBe(false);
});
