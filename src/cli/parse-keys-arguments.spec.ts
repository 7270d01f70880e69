import { describe, expect, it } from '@jest/globals';
import { parseKeysArguments, UsageError } from './parse-keys-arguments.js';

describe('parseKeysArguments', () => {
  it.each([
    [['--help'], { name: 'help' }],
    [['create', '--admin'], { name: 'create', admin: true, email: null, keyName: null, expiresAt: null }],
    [
      ['create', '--user', 'ada@example.com', '--name=ci', '--expires-at', '2030-01-31T12:00:00Z'],
      {
        name: 'create',
        admin: false,
        email: 'ada@example.com',
        keyName: 'ci',
        expiresAt: '2030-01-31T12:00:00Z',
      },
    ],
    [['list'], { name: 'list', email: null, json: false }],
    [['list', '--user', 'ada@example.com', '--json'], { name: 'list', email: 'ada@example.com', json: true }],
    [['revoke', 'a1B2c3D4'], { name: 'revoke', keyId: 'a1B2c3D4' }],
    [['reencrypt'], { name: 'reencrypt' }],
  ])('understands %j', (args, command) => {
    expect(parseKeysArguments(args)).toEqual(command);
  });

  it.each([
    [[], 'a command is missing'],
    [['destroy-7f3a'], 'this command is not known'],
    [['create'], 'create needs --user EMAIL or --admin'],
    [['create', '--admin', '--key-7f3a'], 'there is a flag that this command does not know'],
    [['create', '--user'], 'a flag lacks its value, or has one where it takes none'],
    [['create', '--user', '--admin'], 'a flag lacks its value, or has one where it takes none'],
    [['create', '--admin=7f3a'], 'a flag lacks its value, or has one where it takes none'],
    [['create', '--admin', '7f3a'], 'there is an argument that this command does not take'],
    [['list', '7f3a'], 'there is an argument that this command does not take'],
    [['revoke'], 'revoke needs one key id'],
    [['revoke', 'a1B2c3D4', '7f3a'], 'revoke needs one key id'],
    [['revoke', '--all'], 'there is a flag that this command does not know'],
    [['reencrypt', '7f3a'], 'there is an argument that this command does not take'],
  ])('refuses %j without repeating what was typed', (args, message) => {
    expect(() => parseKeysArguments(args)).toThrow(new UsageError(message));
  });
});
