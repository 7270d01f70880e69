import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Readiness } from './readiness.js';

const CHECK_MS = 5_000;
const neverAnswers = async (): Promise<never> => await new Promise(() => undefined);

describe('a part whose check takes too long', () => {
  beforeEach(() => {
    jest.useFakeTimers();
    jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  });

  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it.each([
    ['its own advice', 'Look at the engine.', 'Look at the engine.'],
    ['a general one', undefined, 'It did not answer within 5 s: look for what keeps it busy.'],
  ])('has failed, with %s', async (_, adviceWhenLate, advice) => {
    const readiness = new Readiness();
    const name = 'engine';
    readiness.addPart({
      name,
      required: true,
      check: neverAnswers,
      ...(adviceWhenLate !== undefined && { adviceWhenLate }),
    });
    const report = readiness.report();
    await jest.advanceTimersByTimeAsync(CHECK_MS);
    expect(await report).toEqual([{ name, required: true, status: 'failed', advice, cause: null }]);
  });
});
