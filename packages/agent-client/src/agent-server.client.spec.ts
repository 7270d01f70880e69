import { expect, it } from '@jest/globals';
import { AgentServerClient } from './agent-server.client.js';
import type { AgentServerHttp } from './agent-server.http.js';

it('takes few and short notices of a checkout', async () => {
  const notices = [1, 'a\0b', ...Array.from({ length: 5_000 }, (_, index) => `${index} `.padEnd(5_000, 'x'))];
  const http = { json: () => Promise.resolve({ ok: true, notices }) };
  const client = new AgentServerClient(http as unknown as AgentServerHttp);
  const target = { address: 'http://127.0.0.1:1', sessionKey: 'k' };
  const prepared = await client.prepareRepository(
    target,
    { timeout: 1 } as never,
    new AbortController().signal,
  );
  expect(prepared).toMatchObject({ ok: true, failure: null, output: '' });
  expect(prepared.notices.map(({ length }) => length)).toEqual([
    3,
    ...Array.from({ length: 19 }, () => 1_000),
  ]);
  expect(prepared.notices[0]).toBe('a\u{fffd}b');
});
