import { expect, it } from '@jest/globals';
import { commandServer, remoteServer } from '../../../test/support/sample-tool-servers.js';
import type { ToolServer } from './tool-servers.js';
import { referencedSecrets, withSecrets } from './secret-references.js';

const SECRETS = new Map([
  ['TOKEN', { value: 'a $& b' }],
  ['EMPTY', { value: '' }],
]);

const SERVERS: ToolServer[] = [
  remoteServer('https://mcp.example.com/${secret:TOKEN}', {
    name: '${secret:TOKEN}',
    apiKey: '${secret:TOKEN}',
    details: { cwd: '${secret:TOKEN}', headers: { 'X-Team': 'x${secret:EMPTY}y', 'X-Retries': 3 } },
  }),
  remoteServer('https://mcp.example.com'),
  commandServer('files', {
    command: '${secret:TOKEN}',
    args: ['--key', '${secret:TOKEN}${secret:OTHER}'],
    env: new Map([['KEY', '${secret:OTHER}, ${secret:TOKEN}, ${HOME}']]),
  }),
];

it('puts secrets where keys, headers, variables and arguments name them, and nowhere else', () => {
  expect(withSecrets(SERVERS, SECRETS)).toEqual([
    remoteServer('https://mcp.example.com/${secret:TOKEN}', {
      name: '${secret:TOKEN}',
      apiKey: 'a $& b',
      details: { cwd: '${secret:TOKEN}', headers: { 'X-Team': 'xy', 'X-Retries': 3 } },
    }),
    remoteServer('https://mcp.example.com'),
    commandServer('files', {
      command: '${secret:TOKEN}',
      args: ['--key', 'a $& b${secret:OTHER}'],
      env: new Map([['KEY', '${secret:OTHER}, a $& b, ${HOME}']]),
    }),
  ]);
});

it('knows which secrets are named, once each', () => {
  expect(referencedSecrets(SERVERS)).toEqual(['TOKEN', 'EMPTY', 'OTHER']);
  expect(referencedSecrets(withSecrets(SERVERS, SECRETS))).toEqual(['OTHER']);
  expect(referencedSecrets(null)).toEqual([]);
});
