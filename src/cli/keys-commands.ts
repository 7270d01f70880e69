import path from 'node:path';
import type { AppConfig } from '../config/app-config.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { localEncryptionKeys } from '../config/encryption-keys.js';
import { dataFolderPaths, findCluster } from '@slipway/embedded-postgres/cluster.js';
import { type CommandOutput, EXIT, newProgram, printRows, runProgram } from './command-output.js';
import { TERMINAL, UsageError } from './command-output.js';
import { type KeysCommand, defineKeys } from './keys-program.js';
import { type KeysSession, openKeysSession } from './keys-session.js';
import type { UsersCommand } from './users-program.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { reencrypt } from './reencrypt.js';
import { CreateApiKeyDto, toApiKeyDto } from '../auth/api-keys.dto.js';
import { ADMIN_EMAIL, type User } from '../auth/user.repository.js';
import { CreateUserDto } from '../auth/users.dto.js';
import { DomainError } from '../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import type { DtoClass } from '@slipway/api/validation/field.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
import { KEY_COLUMNS } from './remote-keys.js';

/** Runs one key command, and returns the exit status: 1 for a failure, 2 for a misunderstood command line. */
export async function runKeys(
  args: readonly string[],
  readConfig: () => AppConfig,
  output = TERMINAL,
): Promise<number> {
  const program = newProgram('npm run keys --', output);
  defineKeys(program, async (command) => await executeKeys(command, readConfig(), output));
  const status = await runProgram(program, args, 'slipway keys', output);
  if (status === EXIT.usage) {
    output.note(`\n${program.helpInformation()}`);
  }
  return status;
}

/** @throws UsageError, DomainError, ConfigError, EmbeddedPostgresError or what the database says */
export async function executeKeys(
  command: KeysCommand,
  config: AppConfig,
  output: CommandOutput,
): Promise<void> {
  if (command.name === 'create' && command.email === null && !command.admin) {
    throw new UsageError('create needs --user EMAIL or --admin');
  }
  const { cluster } = dataFolderPaths(path.resolve(config.dataDir));
  if (command.name !== 'create' && config.database.url === null && findCluster(cluster) === null) {
    throw new ConfigError(
      `DATA_DIR: there is no database in ${config.dataDir}: give DATA_DIR, or DATABASE_URL, as the service has it`,
    );
  }
  await withSession(config, output, async (session) => await execute(command, session, config, output));
}

/** @throws UsageError, ConfigError or what the database says */
export async function executeUsers(
  { name, user: given, issuer, subject }: UsersCommand,
  config: AppConfig,
  output: CommandOutput,
): Promise<void> {
  const from = issuer === '' ? (config.oidc?.issuer ?? '') : issuer;
  if (from === '') {
    throw new UsageError('--issuer is needed where OIDC_ISSUER is not set');
  }
  await withSession(config, output, async ({ users, identities }) => {
    const id = parseHexId(given);
    const user = id === null ? await users.findByEmail(given) : await users.findPresent(id);
    if (user === null) {
      throw new UsageError('there is no user with this id or address');
    }
    const person = { issuer: from, subject, emailVerified: true };
    const now = new Date();
    if (name === 'link') {
      if (!(await identities.link(user.id, person, now))) {
        throw new UsageError('this sign-in belongs to a user already');
      }
      return output.note(`${user.email} signs in as ${subject} now`);
    }
    const known = await identities.findOneBy({ issuer: from, subject });
    if (known?.userId !== user.id) {
      throw new UsageError('this sign-in does not belong to the user');
    }
    await identities.unlink(user.id, known.id, now, true);
    output.note(`${user.email} does not sign in as ${subject} any more`);
  });
}

async function withSession(
  config: AppConfig,
  output: CommandOutput,
  work: (session: KeysSession) => Promise<void>,
): Promise<void> {
  const session = await openKeysSession(config, (line) => output.note(line));
  try {
    await work(session);
  } finally {
    await session.close();
  }
}

async function execute(
  command: KeysCommand,
  session: KeysSession,
  config: AppConfig,
  output: CommandOutput,
): Promise<void> {
  switch (command.name) {
    case 'create':
      return createKey(session, command, output);
    case 'list':
      return listKeys(session, command, output);
    case 'revoke':
      await session.keysService.revoke(command.keyId, command.made);
      return output.note(`key ${command.keyId} is revoked`);
    case 'reencrypt': {
      const keys = config.trust.encryptionKeys ?? (await localEncryptionKeys(config.dataDir));
      return reencrypt(session, keys, output);
    }
  }
}

const DEFAULT_KEY_NAME = 'command line';

/**
 * Issues a key, and creates or promotes the user if necessary; the key is the only result.
 * @throws UsageError for an address, name or time that the HTTP interface would refuse too
 */
async function createKey(
  session: KeysSession,
  options: Extract<KeysCommand, { name: 'create' }>,
  output: CommandOutput,
): Promise<void> {
  const { email = ADMIN_EMAIL } = await checkedInput(CreateUserDto, { email: options.email ?? undefined });
  const { name, expires_at, scopes } = await checkedInput(CreateApiKeyDto, {
    name: options.keyName ?? DEFAULT_KEY_NAME,
    expires_at: options.expiresAt,
    scopes: options.scopes,
  });
  const owner = await findOrCreateUser(session, email, options.admin, output);
  if (options.admin && !owner.isAdmin) {
    await session.usersService.setAdministrator(owner.id, null, true);
    output.note(`${owner.email} is an administrator now`);
  }
  const issue = session.keysService
    .issue({ userId: owner.id, name, expiresAt: expires_at ?? null, scopes: scopes ?? null })
    .catch(throwUsageError);
  const { key, record } = await issue;
  output.note(`key ${record.id} of ${owner.email}; it is not shown again:`);
  output.result(key);
}

async function findOrCreateUser(
  { users, usersService }: KeysSession,
  email: string,
  isAdmin: boolean,
  output: CommandOutput,
): Promise<User> {
  const known = await users.findByEmail(email);
  if (known) {
    return known;
  }
  try {
    const created = await usersService.create(email, null, { isAdmin });
    output.note(`made the ${created.isAdmin ? 'administrator' : 'user'} ${created.email}`);
    return created;
  } catch (error) {
    // Another process created the user in the meantime.
    const rival =
      error instanceof DomainError && error.kind === 'conflict' && (await users.findByEmail(email));
    if (rival) {
      return rival;
    }
    throw error;
  }
}

/** The command-line flag for each member of a body. */
const FLAGS: Readonly<Record<string, string>> = {
  email: '--user',
  name: '--name',
  expires_at: '--expires-at',
  scopes: '--scopes',
};

/** @throws UsageError naming the first flag whose value breaks a rule */
async function checkedInput<T extends object>(type: DtoClass<T>, members: object): Promise<T> {
  const metadata = { type: 'body', metatype: type } as const;
  const dto = await new InputValidationPipe().transform(members, metadata).catch(throwUsageError);
  if (!(dto instanceof type)) {
    throw new Error(`${type.name} has no rules to check`);
  }
  return dto;
}

function throwUsageError(error: unknown): never {
  const [problem] = error instanceof InvalidInputError ? error.problems : [];
  if (problem) {
    throw new UsageError(`${FLAGS[problem.loc[1] ?? ''] ?? problem.loc.join('.')}: ${problem.msg}`);
  }
  throw error;
}

/** Shows one user's keys, or all, without their secrets. @throws UsageError when there is no such user */
async function listKeys(
  { keys, users }: KeysSession,
  { email, json }: { email: string | null; json: boolean },
  output: CommandOutput,
): Promise<void> {
  const owner = email === null ? null : await users.findByEmail(email);
  if (email !== null && owner === null) {
    throw new UsageError('--user: there is no user with this address');
  }
  const shown = (await keys.listWithOwners(owner?.id ?? null)).map((key) =>
    Object.assign(toApiKeyDto(key), { user: key.user?.email ?? null, admin: key.user?.isAdmin ?? false }),
  );
  printRows({ output, json }, shown, {
    ID: 'id',
    USER: 'user',
    ADMIN: ({ admin }) => (admin ? 'yes' : 'no'),
    ...KEY_COLUMNS,
  });
}
