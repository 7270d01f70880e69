import { expect, it } from '@jest/globals';
import { commandServer, remoteServer } from '../../../test/support/sample-tool-servers.js';
import { parsedServers, serialized } from './stored-servers.js';

it('keeps every member, whatever a variable is called', () => {
  const env = new Map([
    ['TOKEN', 'token-1'],
    ['__proto__', 'token-2'],
  ]);
  const servers = [
    commandServer('files', { env, details: { cwd: '/tmp' } }),
    remoteServer('https://a.example', { transport: 'sse', apiKey: 'key-a' }),
    remoteServer('https://b.example', { name: 'b', details: { headers: { 'X-Team': 'key-b' } } }),
  ];
  expect(parsedServers(serialized(servers))).toEqual(servers);
});

it('reads what version 0.2.0 wrote, and writes what it reads', () => {
  const remote = { url: 'https://b.example', apiKey: null, details: { name: 'b', timeout: 3 } };
  const written = {
    sseServers: [{ url: 'https://a.example', apiKey: 'key-a' }],
    stdioServers: [{ name: 'files', command: 'npx', args: ['-y'], env: [['TOKEN', 'token-1']] }],
    shttpServers: [remote],
  };
  const servers = parsedServers(JSON.stringify(written));

  expect(servers).toEqual([
    commandServer('files', { args: ['-y'], env: new Map([['TOKEN', 'token-1']]) }),
    remoteServer('https://a.example', { transport: 'sse', apiKey: 'key-a' }),
    remoteServer('https://b.example', { name: 'b', details: { timeout: 3 } }),
  ]);
  expect(JSON.parse(serialized(servers))).toMatchObject(written);
});
