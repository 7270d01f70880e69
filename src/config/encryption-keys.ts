import { randomBytes } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import type { CipherKey } from '@slipway/common/secret-cipher.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { makeDataDir } from './data-dir.js';

const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/;

/** Parses `id:base64-32-bytes,…`; the first key encrypts. @throws ConfigError that never holds a value */
export function parseEncryptionKeys(text: string): CipherKey[] {
  const keys = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry, index) => {
      const separator = entry.indexOf(':');
      const id = entry.slice(0, Math.max(separator, 0));
      const bytes = Buffer.from(entry.slice(separator + 1), 'base64');
      if (!KEY_ID.test(id) || bytes.length !== 32) {
        throw new ConfigError(
          `ENCRYPTION_KEYS: entry ${index + 1} must be id:base64-of-32-bytes; make one with: echo "k1:$(openssl rand -base64 32)"`,
        );
      }
      return { id, bytes };
    });
  if (keys.length === 0) {
    throw new ConfigError('ENCRYPTION_KEYS: must hold at least one id:base64-of-32-bytes');
  }
  if (new Set(keys.map((key) => key.id)).size !== keys.length) {
    throw new ConfigError('ENCRYPTION_KEYS: every key needs an id of its own');
  }
  return keys;
}

/** Keys for the embedded database in `DATA_DIR/encryption-keys` (mode 0600), generated at the first start. */
export async function localEncryptionKeys(dataDir: string): Promise<CipherKey[]> {
  const file = path.join(dataDir, 'encryption-keys');
  const known = await unlessCode('ENOENT', readFile(file, 'utf8'));
  if (known !== null) {
    return parseEncryptionKeys(known);
  }
  await makeDataDir(dataDir);
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `local:${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  try {
    // When two services start for the first time at once, one link succeeds and both read its key.
    await unlessCode('EEXIST', link(draft, file));
  } finally {
    await rm(draft, { force: true });
  }
  return parseEncryptionKeys(await readFile(file, 'utf8'));
}
