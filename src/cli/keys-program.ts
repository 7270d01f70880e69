import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { SCOPES } from '../common/scopes.js';
import { UsageError } from './command-output.js';

/** Texts are as typed; the commands check them. */
export type KeysCommand =
  | {
      name: 'create';
      admin: boolean;
      email: string | null;
      keyName: string | null;
      expiresAt: string | null;
      scopes: string[] | null;
    }
  | { name: 'list'; email: string | null; json: boolean }
  | { name: 'revoke'; keyId: string; made: boolean }
  | { name: 'reencrypt' };

const NAMES = 'there are create, list, revoke and reencrypt';

const ENVIRONMENT = `
The same environment variables and .env file as the service's say which database this is about.`;

const REENCRYPT_HELP = `
Services keep running. First give all of them "new,old" (with several replicas "old,new" before that); when it has ended,
remove the old key. Without DATABASE_URL and ENCRYPTION_KEYS the keys are in DATA_DIR/encryption-keys.`;

/** Commander's own messages repeat what was typed, which may be a key. */
const REASONS: Readonly<Record<string, string>> = {
  'commander.unknownOption':
    'there is a flag that this command does not know, or one with a value where it takes none',
  'commander.optionMissingArgument': 'a flag lacks its value',
  'commander.invalidArgument': 'a flag lacks its value',
  'commander.missingArgument': 'revoke needs one key id',
  'commander.excessArguments': 'there is an argument that this command does not take',
};

/** Gives `keys` its commands. @throws UsageError for a command line that is wrong, before anything is done */
export function defineKeys(keys: Command, execute: (command: KeysCommand) => Promise<void>): void {
  keys
    .description('make, list and revoke API keys, and renew the key of stored secrets')
    .usage('COMMAND')
    .argument('[command]')
    .helpCommand(true)
    .addHelpText('after', ENVIRONMENT)
    .configureOutput({ outputError: () => undefined })
    .exitOverride((error) => {
      const reason = REASONS[error.code];
      throw reason === undefined ? error : new UsageError(reason);
    })
    .action((command) => {
      throw new UsageError(
        `${command === undefined ? 'a command is missing' : 'this command is not known'}: ${NAMES}`,
      );
    });
  keys
    .command('create')
    .description('make an API key, and print nothing but the key on standard output')
    .option('--admin', 'make its user an administrator; alone it means admin@localhost')
    .option(
      '--user <email>',
      'who it is for, made when unknown; over the API, the user of SLIPWAY_KEY without it',
      flagValue,
    )
    .option('--name <name>', 'what it is for', flagValue)
    .option('--expires-at <time>', 'when it ends, such as 2030-01-31T12:00:00Z', flagValue)
    .option('--scopes <list>', `what it may do, such as read,run: of ${SCOPES.join(', ')}`, flagValue)
    .action(async ({ admin = false, user: email = null, name: keyName = null, expiresAt = null, scopes }) => {
      await execute({ name: 'create', admin, email, keyName, expiresAt, scopes: scopes?.split(',') ?? null });
    });
  keys
    .command('list')
    .description('show keys, without their secrets')
    .option('--user <email>', 'only those of this user', flagValue)
    .option('--json', 'print JSON')
    .action(async ({ user: email = null, json = false }) => await execute({ name: 'list', email, json }));
  keys
    .command('revoke <id>')
    .description('end the key with this 8-character id; running services follow within a second')
    .option(
      '--what-it-made',
      'pause the automations, webhooks and endpoints, unlink the sign-ins, and revoke the keys, made with it',
    )
    .action(async (keyId, { whatItMade: made = false }) => await execute({ name: 'revoke', keyId, made }));
  keys
    .command('reencrypt')
    .description('encrypt every stored secret with the first key of ENCRYPTION_KEYS')
    .addHelpText('after', REENCRYPT_HELP)
    .action(async () => await execute({ name: 'reencrypt' }));
}

/** A flag in the place of a value was not meant as one. */
function flagValue(value: string): string {
  if (value.startsWith('-')) {
    throw new InvalidArgumentError('');
  }
  return value;
}
