import type { AppConfig } from '../config/app-config.js';
import { localEncryptionKeys } from '../config/local-encryption-keys.js';
import type { CliOutput } from './cli-output.js';
import { createKey } from './create-key.command.js';
import { failureText } from './failure-text.js';
import { openKeysSession, type KeysSession } from './keys-session.js';
import { listKeys } from './list-keys.command.js';
import { KEYS_USAGE, parseKeysArguments, type KeysCommand } from './parse-keys-arguments.js';
import { reencrypt } from './reencrypt.command.js';
import { revokeKey } from './revoke-key.command.js';
import { UsageError } from './usage.error.js';

/**
 * Runs one key command.
 *
 * @param args what follows `npm run keys --`
 * @param readConfig called only when the arguments make sense
 * @returns the exit status: 0, 1 for a failure, 2 for a command line that cannot be understood
 */
export async function runKeys(
  args: readonly string[],
  readConfig: () => AppConfig,
  output: CliOutput,
): Promise<number> {
  try {
    const command = parseKeysArguments(args);
    if (command.name === 'help') {
      output.result(KEYS_USAGE);
      return 0;
    }
    const config = readConfig();
    const session = await openKeysSession(config, (line) => output.note(line));
    try {
      await execute(command, session, config, output);
    } finally {
      await session.close();
    }
    return 0;
  } catch (error) {
    output.note(`slipway keys: ${failureText(error)}`);
    if (error instanceof UsageError) {
      output.note(`\n${KEYS_USAGE}`);
      return 2;
    }
    return 1;
  }
}

async function execute(
  command: Exclude<KeysCommand, { name: 'help' }>,
  session: KeysSession,
  config: AppConfig,
  output: CliOutput,
): Promise<void> {
  switch (command.name) {
    case 'create':
      return createKey(session, command, output);
    case 'list':
      return listKeys(session, command.email, output);
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
