import type { LoggerService } from '@nestjs/common';
import { errorStack } from '../common/errors/error-message.js';
import type { HttpConfig } from '../config/app-config.js';
import type { RunningService } from './start-service.js';

/** A stop that hangs is cut short after this time, which begins when the listener closes. */
const STOP_GRACE_MS = 25_000;
/** npm passes on the Ctrl-C that the terminal has sent to the service as well. Nobody presses it twice that fast. */
const REPEATED_MS = 500;

/** Stops the service gracefully on SIGTERM and SIGINT. A second signal, or the end of the grace time, ends it at once. */
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
        process.exit(1);
      }
      return;
    }
    stoppingSince = performance.now();
    logger.log('stopping', { signal, delay_seconds: shutdownDelaySeconds }, 'Service');
    setTimeout(() => {
      logger.error('stop timed out', { grace_ms: graceMs }, 'Service');
      process.exit(1);
    }, graceMs).unref();
    service.stop().then(
      () => {
        logger.log('stopped', 'Service');
        process.exit(0);
      },
      (error: unknown) => {
        logger.error('failed to stop', errorStack(error), 'Service');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}
