import { expect, it } from '@jest/globals';
import { parseConfig } from '../../config/load-config.js';
import { configuredDestinations, databasePaths } from './sandbox-backend.factory.js';

it.each<[string | null, string[]]>([
  [null, []],
  ['no address', []],
  ['postgres://me@db.example.com:5432/slipway', []],
  ['postgres://me@localhost/slipway?host=/srv/sockets', ['/srv/sockets']],
  ['postgres://me@%2Fsrv%2Fsockets/slipway', ['/srv/sockets']],
  ['postgres://me@100%/slipway', []],
  ['postgres://me@db/slipway?sslmode=verify-full&sslkey=/etc/client.key', ['/etc/client.key']],
])('%s: %j', (url, expected) => {
  expect(databasePaths(url)).toEqual(expected);
});

it('configuredDestinations are the hosts of the configuration that may not be public', () => {
  const config = parseConfig(
    {
      GITHUB_API_URL: 'http://127.0.0.1:9100',
      GITLAB_CLONE_URL: 'https://gitlab.corp.example.com/git',
      GIT_HOST_ALLOWLIST: 'git.example.com:8443,*.wild.example.com,http://10.0.0.7',
      OUTBOUND_ALLOWLIST: 'http://localhost:11434',
      HTTPS_PROXY: 'http://10.0.0.8:3128',
      NO_PROXY: 'vault.corp.example.com:8200',
    },
    false,
  );
  expect(configuredDestinations(config)).toEqual(
    expect.arrayContaining([
      '127.0.0.1:9100',
      'gitlab.corp.example.com:443',
      'git.example.com:8443',
      '10.0.0.7:80',
      'localhost:11434',
      '10.0.0.8:3128',
    ]),
  );
  expect(configuredDestinations(config).filter((host) => /wild|bitbucket\.org|vault/.test(host))).toEqual([]);
});
