import { CreateApiKeyDto } from '../auth/dto/create-api-key.dto.js';
import { CreateUserDto } from '../auth/dto/create-user.dto.js';
import { User } from '../auth/user.entity.js';
import { DomainError } from '../common/errors/domain-error.js';
import { checkedInput } from './checked-input.js';
import type { CliOutput } from './cli-output.js';
import type { KeysSession } from './keys-session.js';

/** Whom `--admin` alone means: the administrator that the service's first start makes, too. */
const ADMIN_EMAIL = 'admin@localhost';
const DEFAULT_KEY_NAME = 'command line';

export interface CreateKeyOptions {
  admin: boolean;
  /** Null: `admin@localhost`. */
  email: string | null;
  /** Null: a name that tells where the key comes from. */
  keyName: string | null;
  /** ISO 8601 with a time zone; null: never. */
  expiresAt: string | null;
}

/**
 * Issues a key, after making the user and the administrator where that is asked for. The key is the only result.
 *
 * @throws UsageError for an address, name or time that the HTTP interface would refuse too
 */
export async function createKey(
  { users, keys, dataSource }: KeysSession,
  options: CreateKeyOptions,
  output: CliOutput,
): Promise<void> {
  const { email } = await checkedInput(CreateUserDto, { email: options.email ?? ADMIN_EMAIL }, FLAGS);
  const { name, expires_at } = await checkedInput(
    CreateApiKeyDto,
    { name: options.keyName ?? DEFAULT_KEY_NAME, expires_at: options.expiresAt },
    FLAGS,
  );
  const owner = await findOrCreate();
  if (options.admin && !owner.isAdmin) {
    await dataSource.getRepository(User).update({ id: owner.id }, { isAdmin: true });
    output.note(`${owner.email} is an administrator now`);
  }
  const { key, record } = await keys.issue(owner.id, name, expires_at ?? null);
  output.note(`key ${record.id} of ${owner.email}; it is not shown again:`);
  output.result(key);

  async function findOrCreate(): Promise<User> {
    const known = await users.findByEmail(email);
    if (known) {
      return known;
    }
    try {
      const created = await users.create(email, null, options.admin);
      output.note(`made the ${created.isAdmin ? 'administrator' : 'user'} ${created.email}`);
      return created;
    } catch (error) {
      // Somebody else made the user in between.
      const rival =
        error instanceof DomainError && error.kind === 'conflict' && (await users.findByEmail(email));
      if (rival) {
        return rival;
      }
      throw error;
    }
  }
}

const FLAGS = { email: '--user', name: '--name', expires_at: '--expires-at' };
