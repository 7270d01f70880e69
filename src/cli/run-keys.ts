import type { AppConfig } from '../config/app-config.js';
import { localEncryptionKeys } from '../config/encryption-keys.js';
import { type CommandOutput, EXIT, newProgram, runProgram, TERMINAL } from './command-output.js';
import { createKey, listKeys, revokeKey } from './keys-commands.js';
import { type KeysCommand, defineKeys } from './keys-program.js';
import { type KeysSession, openKeysSession } from './keys-session.js';
import { reencrypt } from './reencrypt.js';

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
  const session = await openKeysSession(config, (line) => output.note(line));
  try {
    await execute(command, session, config, output);
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
      return revokeKey(session, command.keyId, output);
    case 'reencrypt':
      return reencrypt(
        session,
        config.trust.encryptionKeys ?? (await localEncryptionKeys(config.dataDir)),
        output,
      );
  }
}
