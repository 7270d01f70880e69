import { tmpdir } from 'node:os';
import path from 'node:path';
import { runKeys } from '../../src/cli/keys-commands.js';
import { parseConfig } from '../../src/config/load-config.js';

/** What one run of `npm run keys` came to. */
export interface KeysRun {
  status: number;
  stdout: string[];
  stderr: string[];
}

/** Runs a key command in this process, on the database and with the variables given. */
export async function runKeysOn(
  databaseUrl: string,
  args: string[],
  environment: Record<string, string>,
): Promise<KeysRun> {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const variables = {
    DATABASE_URL: databaseUrl,
    DATA_DIR: path.join(tmpdir(), 'slipway-test-unused'),
    ...environment,
  };
  const status = await runKeys(args, () => parseConfig(variables, false), {
    result: (line) => stdout.push(line),
    note: (line) => stderr.push(line),
  });
  return { status, stdout, stderr };
}
