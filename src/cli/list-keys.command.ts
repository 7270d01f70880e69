import { ApiKey } from '../auth/api-key.entity.js';
import type { CliOutput } from './cli-output.js';
import type { KeysSession } from './keys-session.js';
import { textTable } from './text-table.js';
import { UsageError } from './usage.error.js';

const HEADER = ['ID', 'USER', 'ADMIN', 'NAME', 'CREATED', 'EXPIRES', 'LAST USED', 'STATE'];

/**
 * Shows keys without their secrets, by user, newest first.
 *
 * @param email one user's keys; null: everybody's
 * @throws UsageError when there is no such user
 */
export async function listKeys(
  { dataSource, users }: KeysSession,
  email: string | null,
  output: CliOutput,
): Promise<void> {
  const owner = email === null ? null : await users.findByEmail(email);
  if (email !== null && owner === null) {
    throw new UsageError('--user: there is no user with this address');
  }
  const keys = await dataSource.getRepository(ApiKey).find({
    where: owner === null ? {} : { userId: owner.id },
    relations: { user: true },
    order: { user: { email: 'ASC' }, createdAt: 'DESC', id: 'ASC' },
  });
  const now = new Date();
  for (const line of textTable([HEADER, ...keys.map((key) => cells(key, now))])) {
    output.result(line);
  }
}

function cells(key: ApiKey, now: Date): string[] {
  return [
    key.id,
    key.user?.email ?? '',
    key.user?.isAdmin === true ? 'yes' : 'no',
    key.name,
    minute(key.createdAt),
    key.expiresAt === null ? 'never' : minute(key.expiresAt),
    key.lastUsedAt === null ? 'never' : minute(key.lastUsedAt),
    key.revokedAt !== null
      ? 'revoked'
      : key.expiresAt !== null && key.expiresAt <= now
        ? 'expired'
        : 'active',
  ];
}

function minute(date: Date): string {
  return `${date.toISOString().slice(0, 16)}Z`;
}
