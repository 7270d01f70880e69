import { describe, expect, it } from '@jest/globals';
import { parseSandboxAddress, requestOrigin, requireSandboxAddress } from './sandbox-address.js';

describe('parseSandboxAddress', () => {
  it.each([
    ['http://127.0.0.1:41234', { kind: 'tcp', origin: 'http://127.0.0.1:41234' }],
    ['http://sandbox-host.internal:8000', { kind: 'tcp', origin: 'http://sandbox-host.internal:8000' }],
    ['http://[::1]:8000', { kind: 'tcp', origin: 'http://[::1]:8000' }],
    ['http://host:80', { kind: 'tcp', origin: 'http://host' }],
    ['kube:agents/sbx-61:8000', { kind: 'pod', namespace: 'agents', pod: 'sbx-61', port: 8000 }],
    ['unix:/data/box/agent.sock', { kind: 'unix', socketPath: '/data/box/agent.sock' }],
    ['unix:/a b/ü.sock', { kind: 'unix', socketPath: '/a b/ü.sock' }],
  ])('%s', (text, expected) => {
    expect(parseSandboxAddress(text)).toEqual(expected);
  });

  it.each([
    '',
    'http://host',
    'http://host:0',
    'http://host:65536',
    'http://host:80/',
    'http://host:80/path',
    'http://host:80?x',
    'http://user@host:80',
    'http://user:secret@host:80',
    'https://host:443',
    'file:///etc/passwd',
    'ws://host:80',
    'kube:agents/sbx-61',
    'kube:agents/sbx-61:0',
    'kube:agents/sbx-61:65536',
    'kube:agents/../secrets/x:8000',
    'kube:Agents/sbx:8000',
    'kube:agents/sbx-61:8000/path',
    'unix:',
    'unix:/',
    'unix:relative.sock',
    'unix:/data/../etc/x.sock',
    'unix:/data//x.sock',
    'unix:/data/./x.sock',
    'unix:/data/box/',
    'unix:/data/x\0.sock',
    'unix:///data/x.sock',
    'UNIX:/data/x.sock',
    ' http://host:80',
    'http://host:80\n',
  ])('none: %j', (text) => {
    expect(parseSandboxAddress(text)).toBeNull();
    expect(() => requireSandboxAddress(text)).toThrow('the address of the sandbox is invalid');
  });

  it('names an origin that programs recognise as their own', () => {
    expect(requestOrigin({ kind: 'unix', socketPath: '/x.sock' })).toBe('http://localhost');
    expect(requestOrigin({ kind: 'pod', namespace: 'a', pod: 'b', port: 8011 })).toBe(
      'http://localhost:8011',
    );
    expect(requestOrigin({ kind: 'tcp', origin: 'http://10.0.0.1:8000' })).toBe('http://10.0.0.1:8000');
  });
});
