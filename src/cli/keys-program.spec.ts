import { describe, expect, it } from '@jest/globals';
import { CommanderError } from '@commander-js/extra-typings';
import { newProgram, UsageError } from './command-output.js';
import { defineKeys, type KeysCommand } from './keys-program.js';

interface Understood {
  commands: KeysCommand[];
  stdout: string;
}

async function understand(args: string[]): Promise<Understood> {
  const commands: KeysCommand[] = [];
  const stdout: string[] = [];
  const ignore = (): void => undefined;
  const program = newProgram('keys', { result: (line) => stdout.push(line), note: ignore });
  defineKeys(program, async (command) => void commands.push(command));
  await program.parseAsync(args, { from: 'user' }).catch((error: unknown) => {
    if (!(error instanceof CommanderError && error.exitCode === 0)) {
      throw error;
    }
  });
  return { commands, stdout: stdout.join('\n') };
}

const UNKNOWN_FLAG =
  'there is a flag that this command does not know, or one with a value where it takes none';
const NO_VALUE = 'a flag lacks its value';

describe('keys', () => {
  it.each([
    [
      ['create', '--admin'],
      { name: 'create', admin: true, email: null, keyName: null, expiresAt: null, scopes: null },
    ],
    [
      [
        'create',
        '--user',
        'ada@example.com',
        '--name=ci',
        '--expires-at',
        '2030-01-31T12:00:00Z',
        '--scopes',
        'read,run',
      ],
      {
        name: 'create',
        admin: false,
        email: 'ada@example.com',
        keyName: 'ci',
        expiresAt: '2030-01-31T12:00:00Z',
        scopes: ['read', 'run'],
      },
    ],
    [['list'], { name: 'list', email: null, json: false }],
    [['list', '--user', 'ada@example.com', '--json'], { name: 'list', email: 'ada@example.com', json: true }],
    [['revoke', 'a1B2c3D4'], { name: 'revoke', keyId: 'a1B2c3D4', made: false }],
    [['revoke', 'a1B2c3D4', '--what-it-made'], { name: 'revoke', keyId: 'a1B2c3D4', made: true }],
    [['reencrypt'], { name: 'reencrypt' }],
  ])('understands %j', async (args, command) => {
    expect((await understand(args)).commands).toEqual([command]);
  });

  it.each([
    [['--help'], /^Usage: keys COMMAND[^]*create[^]*list[^]*revoke[^]*reencrypt[^]*\.env file/],
    [['-h'], /^Usage: keys COMMAND/],
    [['help'], /^Usage: keys COMMAND/],
    [['create', '--help'], /--admin[^]*--user[^]*--name[^]*--expires-at[^]*--scopes/],
    [['reencrypt', '--help'], /"new,old"/],
  ])('explains %j, and does nothing', async (args, text) => {
    expect(await understand(args)).toEqual({ commands: [], stdout: expect.stringMatching(text) });
  });

  it.each([
    [[], 'a command is missing: there are create, list, revoke and reencrypt'],
    [['destroy-7f3a'], 'this command is not known: there are create, list, revoke and reencrypt'],
    [['create', '--admin', '--key-7f3a'], UNKNOWN_FLAG],
    [['create', '--user'], NO_VALUE],
    [['create', '--user', '--admin'], NO_VALUE],
    [['create', '--admin=7f3a'], UNKNOWN_FLAG],
    [['create', '--admin', '7f3a'], 'there is an argument that this command does not take'],
    [['list', '7f3a'], 'there is an argument that this command does not take'],
    [['revoke'], 'revoke needs one key id'],
    [['revoke', 'a1B2c3D4', '7f3a'], 'there is an argument that this command does not take'],
    [['revoke', '--all'], UNKNOWN_FLAG],
    [['reencrypt', '7f3a'], 'there is an argument that this command does not take'],
  ])('refuses %j without repeating what was typed', async (args, message) => {
    await expect(understand(args)).rejects.toThrow(new UsageError(message));
  });
});
