import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../../test/support/manual-clock.js';
import { AccessChanges, VerifiedUsers } from './access-changes.js';

const ADA = { id: 'ada' };
const BO = { id: 'bo' };

function verified(changes = new AccessChanges()) {
  const clock = new ManualClock();
  clock.stop();
  const users = new VerifiedUsers<{ id: string }>(changes, clock);
  const reads: string[] = [];
  const find = (
    user: { id: string } | null,
    key = user?.id ?? 'nobody',
    endsAt = Infinity,
  ): Promise<unknown> =>
    users.find(key, async () => {
      reads.push(key);
      return user && { user, endsAt };
    });
  return { changes, clock, reads, find, users };
}

describe('what was verified a moment ago', () => {
  it('is not read again, and what was refused is', async () => {
    const { find, reads } = verified();
    await find(ADA);
    expect([await find(ADA), await find(null), await find(null)]).toEqual([ADA, null, null]);

    expect(reads).toEqual(['ada', 'nobody', 'nobody']);
  });

  it.each([
    ['the moment is over', 4_000, Infinity],
    ['the clock was set back', -1, Infinity],
    ['the key ends', 10, 5],
  ])('is read again when %s', async (_why, passed, lasts) => {
    const { find, reads, clock } = verified();
    const endsAt = clock.now() + lasts;
    await find(ADA, 'ada', endsAt);
    clock.advance(passed);
    await find(ADA, 'ada', endsAt);

    expect(reads).toEqual(['ada', 'ada']);
  });

  it('is forgotten when access of that user changes, and all of it when nobody knows whose', async () => {
    const { find, reads, changes } = verified();
    const both = async (): Promise<void> => {
      await find(ADA);
      await find(BO);
    };
    await both();
    changes.tell('ada');
    await both();
    changes.tell(null);
    await both();

    expect(reads).toEqual(['ada', 'bo', 'ada', 'ada', 'bo']);
  });

  it('is not what was being read when access ended', async () => {
    const { users, changes } = verified();
    const answers = [ADA, null];
    const read = async (): Promise<{ user: typeof ADA; endsAt: number } | null> => {
      const user = answers.shift() ?? null;
      if (user !== null) {
        // The row was read before the commit, and its answer comes after the notification.
        changes.tell('ada');
      }
      return user && { user, endsAt: Infinity };
    };

    expect(await users.find('ada', read)).toBeNull();
    expect(answers).toEqual([]);
  });
});
