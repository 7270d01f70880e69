import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { parseConfig, withSecretFiles } from './load-config.js';

const SECRETS = ['DATABASE_URL', 'BOOTSTRAP_API_KEY'];
const folder = mkdtempSync(path.join(tmpdir(), 'slipway-secrets-'));

afterAll(() => rmSync(folder, { recursive: true, maxRetries: 10 }));

function file(content: string): string {
  const name = path.join(folder, `secret-${content.length}`);
  writeFileSync(name, content);
  return name;
}

describe('withSecretFiles', () => {
  it.each([
    ['postgres://a/b\n', 'postgres://a/b'],
    ['postgres://a/bc\r\n', 'postgres://a/bc'],
    ['postgres://a/bcd\n\n', 'postgres://a/bcd\n'],
    [' with spaces ', ' with spaces '],
  ])('reads %j as %j', (content, expected) => {
    expect(withSecretFiles({ DATABASE_URL_FILE: file(content) }, SECRETS)).toMatchObject({
      DATABASE_URL: expected,
    });
  });

  it('reaches the configuration of the service', () => {
    const key = `k:${Buffer.alloc(32, 1).toString('base64')}\n`;

    expect(parseConfig({ ENCRYPTION_KEYS_FILE: file(key) }, false).trust.encryptionKeys).toHaveLength(1);
  });

  it.each([
    [{ DATABASE_URL_FILE: '/no/such/file' }, 'DATABASE_URL_FILE: the file cannot be read: ENOENT'],
    [
      { BOOTSTRAP_API_KEY: 'a', BOOTSTRAP_API_KEY_FILE: '/x' },
      'BOOTSTRAP_API_KEY_FILE: BOOTSTRAP_API_KEY is set too; only one of them may be',
    ],
  ])('refuses %j', (variables, message) => {
    expect(() => withSecretFiles(variables as Record<string, string>, SECRETS)).toThrow(message);
  });
});
