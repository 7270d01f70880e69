import { describe, expect, it } from '@jest/globals';
import { endedByItself, failedWhileStarting, startTimedOut } from './exit-diagnosis.js';

const KEY = 'k'.repeat(43);
const stopped = (code: number | null, signal: string | null = null, outOfMemory = false) => ({
  facts: { state: 'stopped' as const, exit: { code, signal, outOfMemory } },
  log: '',
  sessionKey: KEY,
});

const ended = (cause: string) => ({
  ...stopped(null),
  facts: { state: 'stopped' as const, exit: { code: null, signal: 'SIGKILL', outOfMemory: false, cause } },
});

describe('failure texts', () => {
  it.each([
    [failedWhileStarting(stopped(127), null), 'before it listened (exit code 127)'],
    [
      failedWhileStarting(stopped(1), 'http://127.0.0.1:4000'),
      'while http://127.0.0.1:4000/alive was asked (exit code 1)',
    ],
    [failedWhileStarting(stopped(137, null, true), null), 'out of memory, exit code 137'],
    [
      failedWhileStarting({ facts: { state: 'missing', exit: null }, log: '', sessionKey: KEY }, null),
      'vanished',
    ],
    [
      startTimedOut({ log: '', sessionKey: KEY }, 'http://127.0.0.1:4000', 60),
      'http://127.0.0.1:4000/alive within 60 s',
    ],
    [startTimedOut({ log: '', sessionKey: KEY }, null, 5), 'did not say where it listens within 5 s'],
    [endedByItself(stopped(null, 'SIGKILL')), 'signal SIGKILL'],
    [endedByItself(stopped(null)), 'exit code unknown'],
    [endedByItself(ended('It was too big.')), 'It was too big.'],
    [failedWhileStarting(ended('It has no network.'), null), 'It has no network.'],
    [
      endedByItself({ facts: { state: 'stopped', exit: null }, log: '', sessionKey: KEY }),
      'exit code unknown',
    ],
    [
      endedByItself({ facts: { state: 'missing', exit: null }, log: '', sessionKey: KEY }),
      'It vanished while it ran: something else removed it.',
    ],
  ])('%s', (text, part) => {
    expect(text).toContain(part);
  });

  it('show the last lines without the key and without NUL', () => {
    const text = endedByItself({ ...stopped(1), log: `first\nkey ${KEY}\0 end\n` });

    expect(text).toMatch(/Last lines:\nfirst\nkey \*{10} end$/);
  });
});
