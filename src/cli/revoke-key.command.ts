import type { CliOutput } from './cli-output.js';
import type { KeysSession } from './keys-session.js';

/**
 * Ends a key; running services follow when their belief in it runs out.
 *
 * @throws DomainError not_found
 */
export async function revokeKey({ keys }: KeysSession, keyId: string, output: CliOutput): Promise<void> {
  await keys.revoke(keyId);
  output.note(`key ${keyId} is revoked`);
}
