import { describe, expect, it } from '@jest/globals';
import { Wakeup } from './start-stream.js';

const FOR_EVER = 2 ** 30;

describe('Wakeup', () => {
  it('ends a wait that has begun', async () => {
    const wakeup = new Wakeup();
    const waiting = wakeup.wait(FOR_EVER);
    wakeup.wake();

    expect(await waiting).toBe(true);
  });

  it('remembers that it was woken between two waits, once', async () => {
    const wakeup = new Wakeup();
    wakeup.wake();
    wakeup.wake();

    expect(await wakeup.wait(FOR_EVER)).toBe(true);
    const next = wakeup.wait(FOR_EVER);
    expect(await Promise.race([next, Promise.resolve('still waiting')])).toBe('still waiting');
    wakeup.end();
    expect(await next).toBe(false);
  });

  it('wakes by itself after the timeout', async () => {
    expect(await new Wakeup().wait(1)).toBe(true);
  });

  it('never waits again once it has ended', async () => {
    const wakeup = new Wakeup();
    wakeup.end();

    expect(await wakeup.wait(FOR_EVER)).toBe(false);
    expect(await wakeup.wait(FOR_EVER)).toBe(false);
  });
});
