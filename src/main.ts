import { AppLogger } from './common/logging/app-logger.js';
import { loadConfig } from './config/load-config.js';
import { reportStartFailure } from './start-failure.js';
import { startService } from './start-service.js';
import { stopOnSignals } from './stop-on-signals.js';

try {
  const config = loadConfig();
  const logger = new AppLogger(config.log);
  stopOnSignals(await startService(config, logger), logger);
} catch (error) {
  reportStartFailure(error);
}
