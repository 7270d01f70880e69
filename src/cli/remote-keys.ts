import type { ApiKeyDto, IssuedApiKeyDto } from '../auth/api-keys.dto.js';
import type { UserDto } from '../auth/users.dto.js';
import { type CommandOutput, printRows, UsageError } from './command-output.js';
import type { KeysCommand } from './keys-program.js';
import type { ServiceClient } from './service-client.js';

const KEYS = '/api/v1/api-keys';

/** What lists of keys show of each, after whose it is. */
export const KEY_COLUMNS = {
  NAME: 'name',
  CREATED: ({ created_at }: ApiKeyDto) => minute(created_at),
  EXPIRES: ({ expires_at }: ApiKeyDto) => minute(expires_at),
  'LAST USED': ({ last_used_at }: ApiKeyDto) => minute(last_used_at),
  STATE: stateOf,
} as const;

/** The key commands over the public API, where the database is out of reach. @throws UsageError, CommandError */
export async function runRemoteKeys(
  client: ServiceClient,
  command: KeysCommand,
  output: CommandOutput,
): Promise<void> {
  switch (command.name) {
    case 'list': {
      const searchParams = { user_id: await userId(client, command.email) };
      const keys = await client.http.get(KEYS, { searchParams }).json<ApiKeyDto[]>();
      printRows({ output, json: command.json }, keys, { ID: 'id', ...KEY_COLUMNS });
      return;
    }
    case 'create': {
      if (command.admin) {
        throw new UsageError('--admin needs the database: run it where the service is configured');
      }
      const { keyName, expiresAt: expires_at, scopes } = command;
      const user_id = await userId(client, command.email);
      const body = { name: keyName ?? 'command line', expires_at, scopes, user_id };
      const { id, key } = await client.http.post(KEYS, { json: body }).json<IssuedApiKeyDto>();
      output.note(`key ${id}; it is not shown again:`);
      output.result(key);
      return;
    }
    case 'revoke':
      await client.http.delete(`${KEYS}/${encodeURIComponent(command.keyId)}`, {
        searchParams: command.made ? { made: 'pause' } : {},
      });
      output.note(`key ${command.keyId} is revoked`);
      return;
    case 'reencrypt':
      throw new UsageError('reencrypt needs the database: run it where the service is configured');
  }
}

async function userId(client: ServiceClient, email: string | null): Promise<string | undefined> {
  if (email === null) {
    return undefined;
  }
  const [user] = await client.list<UserDto>('/api/v1/users', { email__eq: email });
  if (user === undefined) {
    throw new UsageError('--user: there is no user with this address');
  }
  return user.id;
}

function stateOf({ revoked_at, expires_at }: ApiKeyDto): string {
  if (revoked_at !== null) {
    return 'revoked';
  }
  return expires_at !== null && new Date(expires_at) <= new Date() ? 'expired' : 'active';
}

function minute(time: Date | null): string {
  return time === null ? 'never' : `${new Date(time).toISOString().slice(0, 16)}Z`;
}
