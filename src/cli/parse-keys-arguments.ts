import { parseArgs } from 'node:util';

/** The message is one line and never repeats a value that was given. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** Texts are as typed; the commands check them. */
export type KeysCommand =
  | { name: 'help' }
  | {
      name: 'create';
      admin: boolean;
      email: string | null;
      keyName: string | null;
      expiresAt: string | null;
    }
  | { name: 'list'; email: string | null; json: boolean }
  | { name: 'revoke'; keyId: string }
  | { name: 'reencrypt' };

export function keysUsage(invocation: string): string {
  return `Usage: ${invocation} COMMAND

  create [--admin] [--user EMAIL] [--name NAME] [--expires-at TIME]
      Makes an API key and prints nothing but the key on standard output. The user is made when unknown; --admin
      makes them an administrator, and alone it means admin@localhost. TIME is like 2030-01-31T12:00:00Z.
  list [--user EMAIL] [--json]
      Shows keys, without their secrets.
  revoke ID
      Ends the key with this 8-character id; running services follow within 5 seconds.
  reencrypt
      Encrypts every stored secret with the first key of ENCRYPTION_KEYS, while services keep running. First give
      all of them "new,old" (with several replicas "old,new" before that); when it has ended, remove the old key.
      Without DATABASE_URL and ENCRYPTION_KEYS the keys are in DATA_DIR/encryption-keys.

The same environment variables and .env file as the service's say which database this is about.
`;
}

/** @throws UsageError for an unknown command or flag, a missing value, or too many arguments */
export function parseKeysArguments(args: readonly string[]): KeysCommand {
  const [name, ...rest] = args;
  switch (name) {
    case undefined:
      throw new UsageError('a command is missing');
    case 'help':
    case '--help':
    case '-h':
      return { name: 'help' };
    case 'create':
      return parseCreate(rest);
    case 'list':
      return parseList(rest);
    case 'revoke':
      return { name, keyId: parseRevoke(rest) };
    case 'reencrypt':
      parseFlags(rest, {});
      return { name };
    default:
      throw new UsageError('this command is not known');
  }
}

function parseCreate(args: string[]): KeysCommand {
  const flags = parseFlags(args, {
    admin: { type: 'boolean' },
    user: { type: 'string' },
    name: { type: 'string' },
    'expires-at': { type: 'string' },
  });
  if (flags.user === undefined && flags.admin !== true) {
    throw new UsageError('create needs --user EMAIL or --admin');
  }
  return {
    name: 'create',
    admin: flags.admin ?? false,
    email: flags.user ?? null,
    keyName: flags.name ?? null,
    expiresAt: flags['expires-at'] ?? null,
  };
}

function parseList(args: string[]): KeysCommand {
  const { user, json } = parseFlags(args, { user: { type: 'string' }, json: { type: 'boolean' } });
  return { name: 'list', email: user ?? null, json: json ?? false };
}

function parseRevoke(args: string[]): string {
  const [keyId, ...more] = withUsageErrors(() => parseArgs({ args, allowPositionals: true }).positionals);
  if (keyId === undefined || more.length > 0) {
    throw new UsageError('revoke needs one key id');
  }
  return keyId;
}

type Flags = Record<string, { type: 'string' | 'boolean' }>;
type FlagValues<T extends Flags> = {
  [K in keyof T]?: T[K]['type'] extends 'string' ? string : boolean;
};

function parseFlags<const T extends Flags>(args: string[], options: T): FlagValues<T> {
  return withUsageErrors(() => parseArgs({ args, options, strict: true }).values);
}

function withUsageErrors<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    const reason = REASONS[code];
    if (reason === undefined) {
      throw error;
    }
    throw new UsageError(reason);
  }
}

/** Node's own messages repeat what was typed, which may be a key. */
const REASONS: Record<string, string> = {
  ERR_PARSE_ARGS_UNKNOWN_OPTION: 'there is a flag that this command does not know',
  ERR_PARSE_ARGS_INVALID_OPTION_VALUE: 'a flag lacks its value, or has one where it takes none',
  ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL: 'there is an argument that this command does not take',
};
