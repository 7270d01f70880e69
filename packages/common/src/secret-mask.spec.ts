import { expect, it } from '@jest/globals';
import { type UnmaskableReason, unmaskableReason } from './secret-mask.js';

const VALUES: [value: string, reason: UnmaskableReason | null][] = [
  ['', 'short'],
  ['1', 'short'],
  ['true', 'short'],
  ['  yes\n', 'short'],
  ['x9!K', 'short'],
  ['3000', 'short'],
  ['123456', 'short'],
  ['10.0.12', 'short'],
  ['production', 'word'],
  ['Production', 'word'],
  ['DEBUG', 'short'],
  ['ENABLED', 'word'],
  ['authentication', 'word'],
  ['feature/login', 'path'],
  ['src/app.module', 'path'],
  ['/home/user/.ssh/id_rsa', 'path'],
  ['/usr/local/bin/python3.11', 'path'],
  ['./src/components', 'path'],
  ['../data/', 'path'],
  ['~/projects/slipway', 'path'],
  ['C:\\Users\\Public', 'path'],
  ['https://api.example.com/v1', 'path'],
  ['http://localhost:5432/', 'path'],
  // What has to be hidden.
  ['hunter2', null],
  ['first-secret', null],
  ['a_secret_token', null],
  ['PassWord', null],
  ['s3cret', null],
  ['12345678', null],
  ['correct horse battery staple', null],
  ['abcd efgh ijkl mnop', null],
  ['abcdefghijklmnop', null],
  ['sk-long-5519', null],
  ['ghp_16C7e42F292c6912E7710c838347Ae178B4a', null],
  ['wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', null],
  ['/9j/4AAQSkZJRgABAQEAYABgAAD', null],
  ['/+abcDEF0123456789xyz==', null],
  ['AKIAIOSFODNN7EXAMPLE', null],
  ['https://user:p4ssw0rd@example.com/', null],
  ['https://hooks.example.com/services/T024BE7LD/B024BE7LD/nSgHPNuHy2cmAuXhk1CbF3Vw', null],
  ['postgres://app:Xq81mZ@db.example.com/app', null],
  ['-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7bq\n-----END KEY-----', null],
  ['9f86d081884c7d659a2feaa0c55ad015', null],
  ['a'.repeat(100_000), null],
  [`${'/v1/111'.repeat(20_000)}!`, null],
];

it.each(VALUES.map(([value, reason]) => [value.slice(0, 50), reason, value] as const))(
  'says of %j: %s',
  (_, reason, value) => {
    expect(unmaskableReason(value)).toBe(reason);
  },
);
