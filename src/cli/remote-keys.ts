import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { type CommandOutput, textTable } from './command-output.js';
import { type KeysCommand, UsageError } from './parse-keys-arguments.js';
import type { ServiceClient } from './service-client.js';

const KEYS = '/api/v1/api-keys';
const COLUMNS = ['id', 'name', 'created_at', 'expires_at', 'last_used_at', 'revoked_at'] as const;

/** The key commands over the public API, where the database is out of reach. @throws UsageError, CommandError */
export async function runRemoteKeys(
  client: ServiceClient,
  command: Exclude<KeysCommand, { name: 'help' }>,
  output: CommandOutput,
): Promise<void> {
  switch (command.name) {
    case 'list': {
      const { body } = await client.request(KEYS, {
        query: { user_id: await userId(client, command.email) },
      });
      const rows = jsonList(body).map((key) => COLUMNS.map((column) => jsonText(key, column) ?? ''));
      const header = COLUMNS.map((column) => column.replaceAll('_', ' ').toUpperCase());
      const lines = command.json ? [JSON.stringify(body)] : textTable([header, ...rows]);
      lines.forEach((line) => output.result(line));
      return;
    }
    case 'create': {
      if (command.admin) {
        throw new UsageError('--admin needs the database: run it where the service is configured');
      }
      const { body } = await client.request(KEYS, {
        method: 'POST',
        body: {
          name: command.keyName ?? 'command line',
          ...(command.expiresAt !== null && { expires_at: command.expiresAt }),
          ...(command.email !== null && { user_id: await userId(client, command.email) }),
        },
      });
      output.note(`key ${jsonText(body, 'id')}; it is not shown again:`);
      output.result(jsonText(body, 'key') ?? '');
      return;
    }
    case 'revoke':
      await client.request(`${KEYS}/${encodeURIComponent(command.keyId)}`, { method: 'DELETE' });
      output.note(`key ${command.keyId} is revoked`);
      return;
    case 'reencrypt':
      throw new UsageError('reencrypt needs the database: run it where the service is configured');
  }
}

async function userId(client: ServiceClient, email: string | null): Promise<string | null> {
  if (email === null) {
    return null;
  }
  const { body } = await client.request('/api/v1/users', { query: { email__eq: email } });
  const id = jsonText(jsonList(body, 'items')[0], 'id');
  if (id === null) {
    throw new UsageError('--user: there is no user with this address');
  }
  return id;
}
