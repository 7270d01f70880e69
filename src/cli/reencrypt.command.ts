import { SecretCipher, type CipherKey } from '../common/crypto/secret-cipher.js';
import { ConfigError } from '../config/config.error.js';
import { EncryptionKeyCheck } from '../database/encryption-key-check.js';
import { ServiceState } from '../database/service-state.entity.js';
import type { CliOutput } from './cli-output.js';
import { ENCRYPTED_COLUMNS } from './encrypted-columns.js';
import type { KeysSession } from './keys-session.js';
import { reencryptColumn } from './reencrypt-column.js';

/** A service that keeps writing under another key must not keep this going for ever. */
const MOST_ROUNDS = 10;
const MOST_SHOWN = 20;

/**
 * Encrypts every stored secret with the first of `keys`, while services keep reading and writing: goes over all
 * columns until a whole round finds nothing under another key, then renews the key check, so that the service starts
 * without the other keys from then on.
 *
 * @throws ConfigError when the keys do not fit the data, records cannot be read, or a service still writes under
 * another key; what was done until then stays, and the old keys are still needed
 */
export async function reencrypt(
  { dataSource }: KeysSession,
  keys: readonly CipherKey[],
  output: CliOutput,
): Promise<void> {
  const cipher = new SecretCipher(keys);
  const check = new EncryptionKeyCheck(dataSource.getRepository(ServiceState), cipher);
  await check.onModuleInit();
  const rewritten = new Map<string, number>();
  for (let round = 1; ; round += 1) {
    const { outdated, unreadable } = await goOverAllColumns();
    if (unreadable.length > 0) {
      unreadable.slice(0, MOST_SHOWN).forEach((line) => output.note(line));
      throw new ConfigError(
        `ENCRYPTION_KEYS: ${unreadable.length} records cannot be read; keep all keys, and give the missing one too`,
      );
    }
    if (outdated === 0) {
      break;
    }
    if (round === MOST_ROUNDS) {
      throw new ConfigError(
        'ENCRYPTION_KEYS: a service still encrypts with another key; give every replica the new key first, then run this again',
      );
    }
  }
  await check.renew();
  for (const [place, count] of rewritten) {
    output.result(`${place}: ${count}`);
  }
  output.note(`everything is encrypted with the key "${cipher.currentKeyId}"; the other keys can be removed`);

  async function goOverAllColumns(): Promise<{ outdated: number; unreadable: string[] }> {
    let outdated = 0;
    const unreadable: string[] = [];
    for (const column of ENCRYPTED_COLUMNS) {
      const outcome = await reencryptColumn(dataSource, cipher, column);
      const place = `${column.table}.${column.column}`;
      rewritten.set(place, (rewritten.get(place) ?? 0) + outcome.rewritten);
      outdated += outcome.outdated;
      unreadable.push(...outcome.unreadable);
    }
    return { outdated, unreadable };
  }
}
