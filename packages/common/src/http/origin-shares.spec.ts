import { beforeEach, describe, expect, it } from '@jest/globals';
import { OriginShares } from './origin-shares.js';
import { UpstreamError } from './upstream-error.js';

const SHARE = 32;
const SHARE_OF_WORK = 24;
const HERE = 'https://git.example.com';

/** A request that ends when the test says so. */
interface Held {
  end: () => void;
  result: Promise<string>;
}

describe('OriginShares', () => {
  let shares: OriginShares;
  /** Of the requests that were sent, in their order. */
  let sent: string[];

  beforeEach(() => {
    shares = new OriginShares();
    sent = [];
  });

  function request(holder: string, work: object = {}, origin = HERE, signal = NEVER): Held {
    const { promise, resolve } = Promise.withResolvers<string>();
    const result = shares.run(origin, { holder, work }, signal, async () => {
      sent.push(holder);
      return promise;
    });
    // Whether it is refused is asked for later.
    result.catch(() => undefined);
    return { end: () => resolve(holder), result };
  }

  function requests(count: number, holder: string, work?: object): Held[] {
    return Array.from({ length: count }, () => request(holder, work));
  }

  async function refused({ result }: Held): Promise<void> {
    const error = await result.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UpstreamError);
    expect(error).toMatchObject({ reason: 'share', origin: HERE });
  }

  it('refuses what is beyond the share of one user, and nothing of another', async () => {
    requests(SHARE, 'bob');
    await refused(request('bob'));
    request('alice').end();
    request('bob', {}, 'https://other.example.com').end();

    await settled();
    expect(sent).toEqual([...Array<string>(SHARE).fill('bob'), 'alice', 'bob']);
  });

  it('has a place for each request that ended, however it did', async () => {
    const held = requests(SHARE, 'bob');
    held[0]?.end();
    await held[0]?.result;
    const failing = shares.run(HERE, { holder: 'bob', work: {} }, NEVER, () =>
      Promise.reject(new Error('it broke')),
    );
    await expect(failing).rejects.toThrow('it broke');

    request('bob');
    await refused(request('bob'));
  });

  it('lets the requests of one piece of work wait for each other, and leaves room for other work', async () => {
    const work = {};
    const held = requests(SHARE_OF_WORK + 20, 'bob', work);
    const others = requests(SHARE - SHARE_OF_WORK, 'bob');
    await refused(request('bob'));
    await settled();
    expect(sent).toHaveLength(SHARE);

    held.forEach(({ end }) => end());
    await Promise.all(held.map(({ result }) => result));
    others.forEach(({ end }) => end());
    await settled();
    expect(sent).toHaveLength(SHARE + 20);
  });

  it('gives the places that other work leaves to what waits', async () => {
    const [first, second] = [{}, {}];
    const held = requests(SHARE_OF_WORK, 'bob', first);
    requests(SHARE_OF_WORK, 'bob', second);
    await settled();
    expect(sent).toHaveLength(SHARE);

    held.forEach(({ end }) => end());
    await settled();
    expect(sent).toHaveLength(2 * SHARE_OF_WORK);
  });

  it('sends nothing of what is given up while it waits', async () => {
    const work = {};
    const held = requests(SHARE_OF_WORK, 'bob', work);
    const stopped = new AbortController();
    const waiting = request('bob', work, HERE, stopped.signal);
    const next = request('bob', work);
    stopped.abort(new Error('the deadline'));
    held[0]?.end();
    next.end();

    await expect(waiting.result).rejects.toThrow('the deadline');
    await expect(next.result).resolves.toBe('bob');
  });
});

const NEVER = new AbortController().signal;

async function settled(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}
