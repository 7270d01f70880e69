import type { LoggerService } from '@nestjs/common';
import type { RunningService } from './start-service.js';
import { errorStack } from '../common/errors/error-message.js';

/** After this long a stop that hangs (a client that never ends its request) is cut short. */
const PATIENCE_MS = 25_000;

/** SIGTERM and SIGINT stop the service gracefully; a second one, or too long a wait, ends it at once. */
export function stopOnSignals(service: RunningService, logger: LoggerService): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) {
      process.exit(1);
    }
    stopping = true;
    logger.log('stopping', { signal }, 'Service');
    setTimeout(() => {
      logger.error('requests in flight did not end in time', { patience_ms: PATIENCE_MS }, 'Service');
      process.exit(1);
    }, PATIENCE_MS).unref();
    service.stop().then(
      () => {
        logger.log('stopped', 'Service');
        process.exit(0);
      },
      (error: unknown) => {
        logger.error('the stop failed', errorStack(error), 'Service');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}
