import { AppLogger } from '../common/logging/app-logger.js';
import { loadConfig } from '../config/load-config.js';
import { startService } from '../program/start-service.js';
import { ServiceClient } from './service-client.js';

/**
 * Runs an action on a service of this process's configuration, which listens on a port of
 * its own and keeps no warm sandboxes, and stops it again.
 *
 * @throws ConfigError, EmbeddedPostgresError or what the action throws
 */
export async function withLocalService<T>(
  key: string | null,
  action: (client: ServiceClient) => Promise<T>,
): Promise<T> {
  const config = loadConfig();
  Object.assign(config.http, { host: '127.0.0.1', port: 0, shutdownDelaySeconds: 0 });
  config.log.welcome = false;
  config.sandboxes.warm = 0;
  const service = await startService(config, new AppLogger({ level: 'error', format: config.log.format }));
  try {
    return await action(new ServiceClient({ url: `http://127.0.0.1:${service.port}`, key, isLocal: true }));
  } finally {
    await service.stop();
  }
}
