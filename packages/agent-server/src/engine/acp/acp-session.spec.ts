import { expect, it } from '@jest/globals';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { toMcpServers } from './acp-session.js';

it('passes a server on with all of its tools, and says so to a user who allows some', () => {
  const { servers, problems } = toMcpServers(
    { near: { command: 'npx', tools: ['search'] }, far: { command: 'uvx' } },
    { http: true, sse: true },
    new OutboundAddresses(null),
  );
  expect(servers.map(({ name }) => name)).toEqual(['near', 'far']);
  expect(problems).toEqual([expect.stringContaining('The tool server near offers all of its tools')]);
});
