import { beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { CREDENTIAL, samplePolicy } from '../test/support/sample-policy.js';
import { OUTAGE_MS, PolicySource } from './policy-source.js';
import type { EgressPolicy } from './protocol.js';

let now: number;
let asked: string[];
let answer: (credential: string) => Promise<EgressPolicy | null>;
let source: PolicySource;

beforeEach(() => {
  now = 1_000;
  asked = [];
  answer = () => Promise.resolve(samplePolicy({ maxAgeSeconds: 5 }));
  const policy = (credential: string) => {
    asked.push(credential);
    return answer(credential);
  };
  source = new PolicySource({ policy }, () => now);
});

const away = () => Promise.reject(new Error('connect ECONNREFUSED'));

describe('PolicySource', () => {
  it('asks once for parallel requests, and again when the answer is old', async () => {
    await Promise.all([source.policy(CREDENTIAL), source.policy(CREDENTIAL)]);
    now += 4_999;
    await source.policy(CREDENTIAL);
    expect(asked).toHaveLength(1);
    now += 1;
    await source.policy(CREDENTIAL);
    await source.policy('other');
    expect(asked).toEqual([CREDENTIAL, CREDENTIAL, 'other']);
  });

  it('counts how old an answer is from the question on', async () => {
    answer = async () => {
      now += 3_000;
      return samplePolicy({ maxAgeSeconds: 5 });
    };
    await source.policy(CREDENTIAL);
    now += 1_999;
    await source.policy(CREDENTIAL);
    expect(asked).toHaveLength(1);
    now += 1;
    await source.policy(CREDENTIAL);
    expect(asked).toHaveLength(2);
  });

  it('asks each time where the answer may not be kept', async () => {
    answer = () => Promise.resolve(samplePolicy({ maxAgeSeconds: 0 }));
    await source.policy(CREDENTIAL);
    await source.policy(CREDENTIAL);
    expect(asked).toHaveLength(2);
  });

  it('goes on by the last answer while the service is away, for some minutes', async () => {
    await source.policy(CREDENTIAL);
    answer = away;
    now += 5_000;
    expect(await source.policy(CREDENTIAL)).not.toBeNull();
    await source.policy(CREDENTIAL);
    expect(asked).toHaveLength(2);
    now += OUTAGE_MS - 5_001;
    expect(await source.policy(CREDENTIAL)).not.toBeNull();
    now += 1_001;
    await expect(source.policy(CREDENTIAL)).rejects.toMatchObject({ status: 503, denial: null });
    await expect(source.policy('other')).rejects.toMatchObject({
      status: 503,
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it('does not go on by the rules of a setup, which may be over', async () => {
    answer = () => Promise.resolve(samplePolicy({ phase: 'setup', maxAgeSeconds: 1 }));
    await source.policy(CREDENTIAL);
    answer = away;
    now += 1_000;
    await expect(source.policy(CREDENTIAL)).rejects.toMatchObject({ status: 503 });
  });

  it('forgets a sandbox that the service no longer knows', async () => {
    await source.policy(CREDENTIAL);
    now += 5_000;
    answer = () => Promise.resolve(null);
    expect([await source.policy(CREDENTIAL), await source.policy(CREDENTIAL)]).toEqual([null, null]);
    expect(asked).toHaveLength(2);
    now += 2_001;
    answer = away;
    await expect(source.policy(CREDENTIAL)).rejects.toMatchObject({ status: 503 });
    answer = () => Promise.resolve(samplePolicy());
    expect(await source.policy(CREDENTIAL)).not.toBeNull();
  });

  it('bounds how many guesses are asked for at once, and what it keeps of them', async () => {
    await source.policy(CREDENTIAL);
    now += 5_000;
    const held = Promise.withResolvers<null>();
    answer = () => held.promise;
    const guesses = Array.from({ length: 64 + 4_096 + 36 }, (_, index) => source.policy(`guess-${index}`));
    const settled = Promise.allSettled(guesses);
    const known = source.policy(CREDENTIAL);
    await until(() => asked.length === 1 + 64 + 1);
    expect(source.sizes).toEqual({ known: 1, asking: 64 + 4_096 + 1 });
    held.resolve(null);
    expect(await known).toBeNull();
    expect((await settled).filter(({ status }) => status === 'rejected')).toHaveLength(36);
    expect(source.sizes).toEqual({ known: 0, asking: 0 });
  });

  it('lets a new sandbox wait for its turn behind guesses of another one', async () => {
    const held = Promise.withResolvers<null>();
    answer = (credential) => (credential === CREDENTIAL ? Promise.resolve(samplePolicy()) : held.promise);
    const guesses = Array.from({ length: 100 }, (_, index) => source.policy(`guess-${index}`));
    const newcomer = source.policy(CREDENTIAL);
    held.resolve(null);
    expect(await newcomer).not.toBeNull();
    expect(new Set(await Promise.all(guesses))).toEqual(new Set([null]));
  });
});
