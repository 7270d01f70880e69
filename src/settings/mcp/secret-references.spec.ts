import { expect, it } from '@jest/globals';
import type { ClearMcpConfig } from './mcp-secrets.js';
import { referencedSecrets, withSecrets } from './secret-references.js';

const SECRETS = new Map([
  ['TOKEN', { value: 'a $& b' }],
  ['EMPTY', { value: '' }],
]);

const CONFIG: ClearMcpConfig = {
  sseServers: [
    {
      url: 'https://mcp.example.com/${secret:TOKEN}',
      apiKey: '${secret:TOKEN}',
      details: { name: '${secret:TOKEN}', headers: { 'X-Team': 'x${secret:EMPTY}y', 'X-Retries': 3 } },
    },
  ],
  shttpServers: [{ url: 'https://mcp.example.com', apiKey: null }],
  stdioServers: [
    {
      name: 'files',
      command: '${secret:TOKEN}',
      args: ['--key', '${secret:TOKEN}${secret:OTHER}'],
      env: new Map([['KEY', '${secret:OTHER}, ${secret:TOKEN}, ${HOME}']]),
    },
  ],
};

it('puts secrets where keys, headers, variables and arguments name them, and nowhere else', () => {
  expect(withSecrets(CONFIG, SECRETS)).toEqual({
    sseServers: [
      {
        url: 'https://mcp.example.com/${secret:TOKEN}',
        apiKey: 'a $& b',
        details: { name: '${secret:TOKEN}', headers: { 'X-Team': 'xy', 'X-Retries': 3 } },
      },
    ],
    shttpServers: [{ url: 'https://mcp.example.com', apiKey: null }],
    stdioServers: [
      {
        name: 'files',
        command: '${secret:TOKEN}',
        args: ['--key', 'a $& b${secret:OTHER}'],
        env: new Map([['KEY', '${secret:OTHER}, a $& b, ${HOME}']]),
      },
    ],
  });
});

it('knows which secrets are named, once each', () => {
  expect(referencedSecrets(CONFIG)).toEqual(['TOKEN', 'EMPTY', 'OTHER']);
  expect(referencedSecrets(withSecrets(CONFIG, SECRETS))).toEqual(['OTHER']);
  expect(referencedSecrets(null)).toEqual([]);
});
