import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';
import { DomainError } from '../common/errors/domain-error.js';
import type { AppConfig } from '../config/app-config.js';
import { ConfigError } from '../config/config.error.js';
import { localEncryptionKeys } from '../config/encryption-keys.js';
import { EmbeddedPostgresError } from '../database/embedded-postgres/embedded-postgres.error.js';
import type { CommandOutput } from './command-output.js';
import { createKey, listKeys, revokeKey } from './keys-commands.js';
import { type KeysSession, openKeysSession } from './keys-session.js';
import { keysUsage, type KeysCommand, parseKeysArguments, UsageError } from './parse-keys-arguments.js';
import { reencrypt } from './reencrypt.js';

/** One line for what an operator can fix, the stack for everything else. */
export function failureText(error: unknown): string {
  if (
    error instanceof UsageError ||
    error instanceof DomainError ||
    error instanceof ConfigError ||
    error instanceof EmbeddedPostgresError
  ) {
    return error.message;
  }
  const syscall = (error as NodeJS.ErrnoException | null)?.syscall;
  if (syscall === 'connect' || syscall === 'getaddrinfo') {
    return `the database cannot be reached: ${errorMessage(error)}`;
  }
  return errorStack(error);
}

/** Runs one key command, and returns the exit status: 1 for a failure, 2 for a misunderstood command line. */
export async function runKeys(
  args: readonly string[],
  readConfig: () => AppConfig,
  output: CommandOutput,
  invocation = 'npm run keys --',
): Promise<number> {
  try {
    const command = parseKeysArguments(args);
    if (command.name === 'help') {
      output.result(keysUsage(invocation));
      return 0;
    }
    await executeKeys(command, readConfig(), output);
    return 0;
  } catch (error) {
    output.note(`slipway keys: ${failureText(error)}`);
    if (error instanceof UsageError) {
      output.note(`\n${keysUsage(invocation)}`);
      return 2;
    }
    return 1;
  }
}

/** @throws UsageError, DomainError, ConfigError, EmbeddedPostgresError or what the database says */
export async function executeKeys(
  command: Exclude<KeysCommand, { name: 'help' }>,
  config: AppConfig,
  output: CommandOutput,
): Promise<void> {
  const session = await openKeysSession(config, (line) => output.note(line));
  try {
    await execute(command, session, config, output);
  } finally {
    await session.close();
  }
}

async function execute(
  command: Exclude<KeysCommand, { name: 'help' }>,
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
      return revokeKey(session, command.keyId, output);
    case 'reencrypt':
      return reencrypt(
        session,
        config.trust.encryptionKeys ?? (await localEncryptionKeys(config.dataDir)),
        output,
      );
  }
}
