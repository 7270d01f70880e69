import 'reflect-metadata';
import { jsonText } from '@slipway/common/json-access.js';
import { loadConfig } from './config/load-config.js';
import { openDatabase } from './database/open-database.js';
import { operatorHosts } from './git-providers/operator-hosts.js';
import { reportStartFailure, stopOnSignals } from './program/process-end.js';

// A full disk under the log, or a reader of it that has ended, costs lines and not the service.
[process.stdout, process.stderr].forEach((stream) => stream.on('error', () => undefined));

try {
  const config = loadConfig();
  // First, so that a bad allowlist is one line and not a failing module.
  operatorHosts(config.git);
  // The embedded server starts while the framework loads, which takes longer and blocks everything else.
  const launched = Promise.withResolvers<void>();
  const opening = openDatabase(config, launched.resolve);
  await Promise.race([launched.promise, opening]);
  const [{ AppLogger }, { startService }] = await Promise.all([
    import('@slipway/api/logging/app-logger.js'),
    import('./program/start-service.js'),
    opening,
  ]);
  const logger = new AppLogger(config.log);
  const service = await startService(config, logger, opening);
  stopOnSignals(service, config.http, logger);
  // What has started the service with a channel, as the demo does, knows keys, and prints links of its own.
  process.on('message', (asked: unknown) => {
    const key = jsonText(asked, 'sign_in_key');
    if (key !== null) {
      process.send?.({ sign_in_code: service.signInCode(key) });
    }
  });
  process.channel?.unref();
} catch (error) {
  reportStartFailure(error);
}
