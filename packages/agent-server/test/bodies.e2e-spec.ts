import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { SESSION_KEY } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const server = useAgentServer(startTestAgentServer);

async function post(body: string | Buffer, headers: Record<string, string> = {}): Promise<unknown> {
  const response = await fetch(`${server.client.url}/api/conversations`, {
    method: 'POST',
    headers: { 'X-Session-API-Key': SESSION_KEY, 'Content-Type': 'application/json', ...headers },
    body,
  });
  return { status: response.status, body: await response.json() };
}

describe('bodies of requests to the agent server', () => {
  it.each(['POST /api/conversations', 'POST /api/bash/execute_bash_command', 'POST /api/file/upload/tmp/x'])(
    'are not awaited without the key (%s)',
    async (operation) => {
      const [method = '', path = ''] = operation.split(' ');
      const outgoing = httpRequest(`${server.client.url}${path}`, {
        method,
        headers: { 'Content-Type': 'application/json', 'Content-Length': '1000000' },
      });
      outgoing.write('{');
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      outgoing.destroy();

      expect(response.statusCode).toBe(401);
    },
  );

  it('have a bounded number of values', async () => {
    const bomb = `${'['.repeat(62)}${'"",'.repeat(349_000)}""${']'.repeat(62)}`;
    const refusal = {
      status: 413,
      body: { detail: 'The request body may have at most 200000 values and keys.' },
    };

    expect(await post(bomb)).toEqual(refusal);
    expect(await post(gzipSync(bomb), { 'Content-Encoding': 'gzip' })).toEqual(refusal);
  });

  it('have a bounded size, unpacked', async () => {
    const large = gzipSync(`"${'x'.repeat(7_400_000)}"`);

    expect(await post(large, { 'Content-Encoding': 'gzip' })).toEqual({
      status: 413,
      body: { detail: 'The request body may have at most 7 MiB.' },
    });
  });

  it('are JSON', async () => {
    const detail = [{ type: 'json_invalid', loc: ['body'], msg: 'JSON decode error' }];
    expect(await post('{"secret":')).toEqual({ status: 422, body: { detail } });
  });
});
