import type { LoggerService } from '@nestjs/common';
import { errorStack } from '../common/errors/error-message.js';
import type { RunningService } from './start-service.js';

/** A stop that hangs, because a client never ends its request, is cut short after this time. */
const STOP_GRACE_MS = 25_000;

/** Stops the service gracefully on SIGTERM and SIGINT. A second signal, or the end of the grace time, ends it at once. */
export function stopOnSignals(service: RunningService, logger: LoggerService): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) {
      process.exit(1);
    }
    stopping = true;
    logger.log('stopping', { signal }, 'Service');
    setTimeout(() => {
      logger.error('stop timed out', { grace_ms: STOP_GRACE_MS }, 'Service');
      process.exit(1);
    }, STOP_GRACE_MS).unref();
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
