import type { CommandLineConfig } from '../config/command-line-config.js';
import { loadConfig } from '../config/load-config.js';
import { CommandError, EXIT } from './command-output.js';
import { ServiceClient } from './service-client.js';

/**
 * Runs an action on the service, or where none runs on this machine, on one with the configuration of this process,
 * which listens on a port of its own, keeps no warm sandboxes, and is stopped afterwards.
 *
 * @throws ConfigError, EmbeddedPostgresError or what the action throws
 */
export async function onAnyService(
  { url, key, isLocal }: CommandLineConfig,
  action: (client: ServiceClient) => Promise<void>,
): Promise<void> {
  try {
    await action(new ServiceClient({ url, key }));
    return;
  } catch (error) {
    if (!(error instanceof CommandError && error.status === EXIT.unreachable && isLocal)) {
      throw error;
    }
  }
  const config = loadConfig();
  Object.assign(config.http, { host: '127.0.0.1', port: 0, shutdownDelaySeconds: 0 });
  config.log.welcome = false;
  config.sandboxes.warm = 0;
  const { AppLogger } = await import('../common/logging/app-logger.js');
  const { startService } = await import('../program/start-service.js');
  const service = await startService(config, new AppLogger({ level: 'error', format: config.log.format }));
  try {
    await action(new ServiceClient({ url: `http://127.0.0.1:${service.port}`, key }));
  } finally {
    await service.stop();
  }
}
