import { describe, expect, it } from '@jest/globals';
import { isPublicHostName } from './host-name.js';

describe('isPublicHostName', () => {
  it.each([
    'example.com',
    'git.example.com',
    'git.example.com.',
    'xn--bcher-kva.example',
    'mylocal.com',
    'a.svc.io',
  ])('takes %s', (host) => {
    expect(isPublicHostName(host)).toBe(true);
  });

  it.each([
    '',
    '.',
    'intranet',
    'intranet.',
    'localhost',
    'app.localhost',
    'LOCALHOST.',
    'printer.local',
    'host.localdomain',
    'metadata.google.internal',
    'metadata.google.internal.',
    'git.default.svc',
    'router.lan',
    'router.home.arpa',
    '127.0.0.1',
    '93.184.216.34',
    '[::1]',
    '[2606:4700:4700::1111]',
  ])('refuses %j', (host) => {
    expect(isPublicHostName(host)).toBe(false);
  });
});
