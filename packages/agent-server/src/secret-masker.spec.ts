import { describe, expect, it } from '@jest/globals';
import { proxySecrets, SecretMasker } from './secret-masker.js';
import { clipText } from './clipped-text.js';

const SECRET = 'pa/ss"w?rd\n€';

describe('SecretMasker', () => {
  const masker = new SecretMasker([
    SECRET,
    'agent-7',
    'abc',
    'true',
    'production',
    '/workspace/project',
    'sk-long',
    'sk-longer',
    '  padded-value\n',
  ]);

  it.each([
    ['as it is', SECRET, '<secret-hidden>'],
    ['in base64', Buffer.from(SECRET).toString('base64'), '<secret-hidden>'],
    ['in base64url', Buffer.from(SECRET).toString('base64url'), '<secret-hidden>'],
    ['URL-encoded', `?key=${encodeURIComponent(SECRET)}&x`, '?key=<secret-hidden>&x'],
    ['inside JSON', JSON.stringify({ key: SECRET }), '{"key":"<secret-hidden>"}'],
    ['the longest first', 'sk-longer sk-long', '<secret-hidden> <secret-hidden>'],
    ['without the blanks around it', 'a padded-value b', 'a <secret-hidden> b'],
    ['not the short ones', 'abc true', 'abc true'],
    [
      'neither words nor paths',
      'production in /workspace/project/src',
      'production in /workspace/project/src',
    ],
    ['twice', 'agent-7 agent-7', '<secret-hidden> <secret-hidden>'],
  ])('masks %s', (_case, text, expected) => {
    expect(masker.text(text)).toBe(expected);
  });

  it('masks texts at every depth, but not the members that carry the protocol', () => {
    const event = {
      source: 'agent-7',
      content: [{ type: 'agent-7', text: 'an agent-7' }],
      deep: { on: true, n: 1, none: null },
    };
    expect(masker.value(event)).toEqual({
      source: 'agent-7',
      content: [{ type: 'agent-7', text: 'an <secret-hidden>' }],
      deep: { on: true, n: 1, none: null },
    });
  });

  it('masks every member of free JSON, whatever its name', () => {
    const action = { kind: 'agent-7', data: { id: 'sk-longer', deep: [{ source: 'sk-longer' }] } };
    expect(masker.value(action)).toEqual({
      kind: 'agent-7',
      data: { id: '<secret-hidden>', deep: [{ source: '<secret-hidden>' }] },
    });
  });

  it('masks single lines of a long secret', () => {
    const key = ['-----BEGIN KEY-----', 'MIIEpAIBAAKCAQEA7bq', 'short', 'Zm9vYmFyYmF6cXV4cXV1'].join('\n');
    const lines = new SecretMasker([`${key}\n`]);
    expect(lines.text('     2\tMIIEpAIBAAKCAQEA7bq\n     3\tshort')).toBe(
      '     2\t<secret-hidden>\n     3\tshort',
    );
    expect(lines.text(`<${key}>`)).toBe('<<secret-hidden>>');
  });

  it.each([30, 31, 33, 36, 40])('masks a secret that clipping cuts after %d characters', (limit) => {
    const long = new SecretMasker(['0123456789abcdef']);
    const torn = clipText(
      `${'x'.repeat(10)}0123456789abcdef${'y'.repeat(40)}0123456789abcdef${'z'.repeat(6)}`,
      limit,
    );
    expect(long.text(torn)).not.toMatch(/0123|cdef/);
    expect(long.text(torn)).toContain('characters left out');
  });

  it('changes nothing without secrets', () => {
    expect(new SecretMasker([]).text('anything')).toBe('anything');
  });
});

describe('proxySecrets', () => {
  it.each([
    ['the address', 'https_proxy=http://deploy:p%40ss%2Fw%3Ard@proxy.corp:3128'],
    ['the password', 'password: p@ss/w:rd'],
    ['a header', `Proxy-Authorization: Basic ${Buffer.from('deploy:p@ss/w:rd').toString('base64')}`],
  ])('finds what is secret in %s', (_, text) => {
    const masker = new SecretMasker(
      proxySecrets({ HTTPS_PROXY: 'http://deploy:p%40ss%2Fw%3Ard@proxy.corp:3128' }),
    );
    expect(masker.text(text)).not.toMatch(/w(:|%3A)rd|cEBzcy/);
  });

  it('finds nothing elsewhere', () => {
    const environment = {
      HTTP_PROXY: 'http://proxy',
      NO_PROXY: 'a,b',
      ALL_PROXY: 'proxy:1',
      X: 'http://a:secret@b',
    };
    expect(proxySecrets(environment)).toEqual([]);
  });
});
