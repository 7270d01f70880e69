import type { EncryptedColumn } from '../../../common/crypto/encrypted-column.js';
import type { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import type { StartTask } from '../start-task.entity.js';
import type { StartRequest } from './start-request.js';

/** As answers show a secret. */
const MASK = '**********';

/** Where start tasks keep encrypted records. */
export const START_TASK_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'app_conversation_start_tasks',
    column: 'request_secrets',
    keyColumns: ['id'],
    binding: ({ id = '' }) => requestSecretsBinding(id),
  },
];

/** A request as its row keeps it, and what the row keeps encrypted beside it. */
export function splitSecrets(
  request: StartRequest,
  taskId: string,
  cipher: SecretCipher,
): { request: StartRequest; requestSecrets: string | null } {
  const { secrets } = request;
  if (secrets === null || Object.keys(secrets).length === 0) {
    return { request, requestSecrets: null };
  }
  return {
    request: { ...request, secrets: Object.fromEntries(Object.keys(secrets).map((name) => [name, MASK])) },
    requestSecrets: cipher.encrypt(JSON.stringify(secrets), requestSecretsBinding(taskId)),
  };
}

/**
 * The secrets that came with the request of a start, by name.
 *
 * @throws SecretDecryptionError when they are not readable with the configured keys
 */
export function requestSecrets(
  { id, requestSecrets: stored }: Pick<StartTask, 'id' | 'requestSecrets'>,
  cipher: SecretCipher,
): Map<string, string> {
  if (stored === null) {
    return new Map();
  }
  const secrets: Record<string, string> = JSON.parse(cipher.decrypt(stored, requestSecretsBinding(id)));
  return new Map(Object.entries(secrets));
}

function requestSecretsBinding(taskId: string): string {
  return `app_conversation_start_tasks.request_secrets:${taskId}`;
}
