import { expect, it } from '@jest/globals';
import { databasePaths } from './sandbox-backend.factory.js';

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
