import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { CipherKey } from '../common/crypto/secret-cipher.js';
import { parseEncryptionKeys } from './encryption-keys.js';

/**
 * Encryption keys of an installation on the embedded database: read from `DATA_DIR/encryption-keys` (mode 0600), made
 * there at the first start. The file holds the same text as `ENCRYPTION_KEYS`.
 */
export async function localEncryptionKeys(dataDir: string): Promise<CipherKey[]> {
  const file = path.join(dataDir, 'encryption-keys');
  try {
    return parseEncryptionKeys(await readFile(file, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw error;
    }
  }
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `local:${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  try {
    // Of two first starts at the same time one wins, and both read the winner's key.
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw error;
    }
  } finally {
    await rm(draft, { force: true });
  }
  return parseEncryptionKeys(await readFile(file, 'utf8'));
}
