import { describe, expect, it } from '@jest/globals';
import { BitbucketMemory } from './bitbucket.client.js';

const MINUTE_MS = 60 * 1000;
const identity = { uuid: '{u}', workspaces: ['team'], truncated: false };

function start(): { memory: BitbucketMemory; pass: (ms: number) => void } {
  let now = 1_795_000_000_000;
  const memory = new BitbucketMemory(() => now);
  return {
    memory,
    pass: (ms) => {
      now += ms;
    },
  };
}

describe('BitbucketMemory', () => {
  it('keeps identities for an hour and signals for ten minutes', () => {
    const { memory, pass } = start();
    memory.rememberIdentity('owner', identity);
    memory.rememberSignal('owner', 'conflicts', 'yes');
    pass(10 * MINUTE_MS - 1);
    expect(memory.signal('owner', 'conflicts')).toBe('yes');
    pass(2);
    expect(memory.signal('owner', 'conflicts')).toBeUndefined();
    expect(memory.identity('owner')).toEqual(identity);
    pass(50 * MINUTE_MS);
    expect(memory.identity('owner')).toBeUndefined();
  });

  it('names owners by token and address without containing them', () => {
    const { memory } = start();
    const owners = [
      memory.ownerOf('https://a.example.com', 'token'),
      memory.ownerOf('https://a.example.com', 'other'),
      memory.ownerOf('https://b.example.com', 'token'),
      start().memory.ownerOf('https://a.example.com', 'token'),
    ];
    expect(new Set(owners).size).toBe(4);
    expect(memory.ownerOf('https://a.example.com', 'token')).toBe(owners[0]);
    expect(owners.join()).not.toContain('token');
  });

  it('keeps owners and subjects apart, and forgets on demand', () => {
    const { memory } = start();
    memory.rememberIdentity('one', identity);
    memory.rememberSignal('one', 'conflicts', 'yes');
    expect(memory.identity('two')).toBeUndefined();
    expect(memory.signal('two', 'conflicts')).toBeUndefined();
    expect(memory.signal('one', 'comments')).toBeUndefined();
    memory.forgetIdentity('one');
    expect(memory.identity('one')).toBeUndefined();
  });
});
