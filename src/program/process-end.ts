import { isatty } from 'node:tty';
import type { LoggerService } from '@nestjs/common';
import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';
import { exitProcess } from '@slipway/common/processes/end-processes.js';
import { isDatabaseAway } from '@slipway/database/database-failure.js';
import type { HttpConfig } from '../config/app-config.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { EmbeddedPostgresError } from '@slipway/embedded-postgres/programs.js';
import type { RunningService } from './start-service.js';

/** A stop that hangs is cut short after this time, which begins when the listener closes. */
const STOP_GRACE_MS = 25_000;
/** npm repeats the Ctrl-C that the terminal has sent to the service as well, faster than a user could. */
const REPEATED_MS = 500;

/** A second signal, or the end of the grace time, ends the process at once. */
export function stopOnSignals(
  service: RunningService,
  { shutdownDelaySeconds }: Pick<HttpConfig, 'shutdownDelaySeconds'>,
  logger: LoggerService,
): void {
  const graceMs = shutdownDelaySeconds * 1000 + STOP_GRACE_MS;
  let stoppingSince: number | null = null;
  const stop = (signal: NodeJS.Signals): void => {
    if (stoppingSince !== null) {
      if (performance.now() > stoppingSince + REPEATED_MS) {
        endAtOnce();
      }
      return;
    }
    stoppingSince = performance.now();
    logger.log('stopping', { signal, delay_seconds: shutdownDelaySeconds }, 'Service');
    setTimeout(() => {
      logger.error('stop timed out', { grace_ms: graceMs }, 'Service');
      endAtOnce();
    }, graceMs).unref();
    void service
      .stop()
      .then(
        () => {
          logger.log('stopped', 'Service');
          return 0;
        },
        (error: unknown) => {
          logger.error('failed to stop', errorStack(error), 'Service');
          return 1;
        },
      )
      .then(exitProcess);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  // Node.js undoes what nohup(1) asks for, except that no stream is a terminal.
  process.on('SIGHUP', [0, 1, 2].some((descriptor) => isatty(descriptor)) ? stop : () => undefined);
}

/** Whatever the process is at: process.exit() waits for threads. The first process of a container, as in ours, cannot kill itself. */
function endAtOnce(): void {
  process.kill(process.pid, 'SIGKILL');
  // oxlint-disable-next-line no-restricted-properties
  process.exit(1);
}

/** Prints one line for each problem that an operator can fix, and the stack for everything else. */
export function reportStartFailure(error: unknown): void {
  process.stderr.write(`slipway cannot start: ${startFailureText(error)}\n`);
  exitProcess(1);
}

export function startFailureText(error: unknown): string {
  if (error instanceof ConfigError || error instanceof EmbeddedPostgresError) {
    const lines = errorMessage(error).split('\n');
    return lines.length === 1 ? lines.join('') : lines.map((line) => `\n  ${line}`).join('');
  }
  if (isDatabaseAway(error)) {
    return `the database failed: ${errorMessage(error)} (what was begun there is undone: start again once that is mended)`;
  }
  const { code, syscall } = error as { code?: string; syscall?: string };
  if (syscall === 'getaddrinfo') {
    return `HOST: ${errorMessage(error)} (set it to an address or a name of this machine)`;
  }
  if (syscall !== 'listen') {
    // The message names what cannot be written; without an embedded database that is the host id.
    return UNWRITABLE.has(code ?? '')
      ? `${errorMessage(error)} (is DATA_DIR a folder that this user can write?)`
      : errorStack(error);
  }
  const advice = ADVICE.get(code ?? '');
  return advice === undefined ? errorMessage(error) : `${errorMessage(error)} (${advice})`;
}

const UNWRITABLE = new Set(['EACCES', 'EDQUOT', 'ENOSPC', 'ENOTDIR', 'EROFS']);
/** Advice by the code of a failed listen(2). */
const ADVICE = new Map([
  ['EADDRINUSE', 'something listens there already: end it, or set PORT to another port'],
  ['EACCES', 'this user may not: set PORT to a port above 1023'],
  ['EADDRNOTAVAIL', 'this machine has no such address: set HOST to one that it has'],
]);
