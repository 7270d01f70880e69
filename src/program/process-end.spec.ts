import { describe, expect, it, jest } from '@jest/globals';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { startFailureText, stopOnSignals } from './process-end.js';

const listenError = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code, syscall: 'listen' });

it('ends at once on a second signal, the first process of a container too, which no signal of its own kills', () => {
  const handlers = new Map<unknown, (signal: NodeJS.Signals) => void>();
  jest.spyOn(process, 'on').mockImplementation((name, handler) => {
    handlers.set(name, handler as (signal: NodeJS.Signals) => void);
    return process;
  });
  const kill = jest.spyOn(process, 'kill').mockReturnValue(true);
  const exit = jest.spyOn(process, 'exit').mockImplementation((() => undefined) as never);
  jest.useFakeTimers();
  try {
    const stop = (): Promise<void> => new Promise(() => undefined);
    const logger = { log: jest.fn(), warn: jest.fn(), error: jest.fn() };
    stopOnSignals({ stop } as never, { shutdownDelaySeconds: 0 }, logger);
    handlers.get('SIGTERM')?.('SIGTERM');
    expect(kill).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1_000);
    handlers.get('SIGINT')?.('SIGINT');
    expect(kill).toHaveBeenCalledWith(process.pid, 'SIGKILL');
    expect(exit).toHaveBeenCalledWith(1);
  } finally {
    jest.useRealTimers();
    jest.restoreAllMocks();
  }
});

describe('startFailureText', () => {
  it.each([
    [
      'EADDRINUSE',
      'address already in use 127.0.0.1:3000',
      /127\.0\.0\.1:3000 \(.* set PORT to another port\)$/,
    ],
    ['EACCES', 'permission denied 0.0.0.0:80', /0\.0\.0\.0:80 \(.* set PORT to a port above 1023\)$/],
    ['EADDRNOTAVAIL', 'address not available 10.9.9.9', /10\.9\.9\.9 \(.* set HOST to one that it has\)$/],
    ['EINVAL', 'invalid argument', /^invalid argument$/],
  ])('says what to do when listening fails with %s', (code, message, expected) => {
    expect(startFailureText(listenError(code, message))).toMatch(expected);
  });

  it('names HOST when it is the name of nothing', () => {
    const error = Object.assign(new Error('getaddrinfo ENOTFOUND nonsense'), { syscall: 'getaddrinfo' });
    expect(startFailureText(error)).toMatch(/^HOST: .*ENOTFOUND nonsense \(set it to .*\)$/);
  });

  it.each(['EACCES', 'EROFS', 'ENOSPC'])('asks for DATA_DIR when nothing can be written: %s', (code) => {
    const error = Object.assign(new Error(`${code}: open '/data/host-id'`), { code, syscall: 'open' });
    expect(startFailureText(error)).toMatch(/host-id' \(is DATA_DIR .*\)$/);
  });

  it('gives the words of the database that failed in a line', () => {
    const words = 'could not extend file "base/5/1": No space left on device';
    const error = Object.assign(new Error(words), { code: '53100', severity: 'ERROR' });
    expect(startFailureText(error)).toMatch(
      /^the database failed: could not extend .* device \(.*start again.*\)$/,
    );
  });

  it('gives what an operator can mend in a line each, and the stack of everything else', () => {
    expect(startFailureText(new ConfigError('PORT: is no port'))).not.toContain('\n');
    expect(startFailureText(new ConfigError('PORT: is no port\nHOST: is no host'))).toBe(
      '\n  PORT: is no port\n  HOST: is no host',
    );
    expect(startFailureText(new Error('a bug'))).toMatch(/a bug\n +at /);
  });
});
