import { describe, expect, it } from '@jest/globals';
import { agentServerPath } from './agent-server.targets.js';

describe('agentServerPath', () => {
  it.each([
    ['/api/v1/sandboxes/abc123/agent-server', 'abc123', '/'],
    ['/api/v1/sandboxes/abc123/agent-server/', 'abc123', '/'],
    ['/api/v1/sandboxes/abc123/agent-server?x=1', 'abc123', '/?x=1'],
    [
      '/api/v1/sandboxes/abc123/agent-server/api/file/download?path=%2Fa%2F..%2Fb',
      'abc123',
      '/api/file/download?path=%2Fa%2F..%2Fb',
    ],
    ['/api/v1/sandboxes/abc123/agent-server//evil.example/x', 'abc123', '//evil.example/x'],
  ])('parses %s', (address, sandboxId, rest) => {
    expect(agentServerPath(address)).toEqual({ sandboxId, rest, isOwn: false });
  });

  it.each([
    '/api/v1/sandboxes/abc123/agent-servers',
    '/api/v1/sandboxes/abc123',
    '/api/v1/sandboxes//agent-server',
    '/api/v1/sandboxes/a.b/agent-server',
    '/x/api/v1/sandboxes/abc123/agent-server',
    'http://other.example/api/v1/sandboxes/abc123/agent-server',
  ])('returns null for %s', (address) => {
    expect(agentServerPath(address)).toBeNull();
  });
});
