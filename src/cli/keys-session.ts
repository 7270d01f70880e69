import { DataSource } from 'typeorm';
import { ApiKey } from '../auth/api-key.entity.js';
import { ApiKeyVerifier } from '../auth/api-key.verifier.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { User } from '../auth/user.entity.js';
import { UsersService } from '../auth/users.service.js';
import { SystemClock } from '../common/clock.js';
import type { AppConfig } from '../config/app-config.js';
import { dataSourceOptions, openDatabase } from '../database/open-database.js';
import { runMigrations } from '../database/run-migrations.js';
import { ServiceState } from '../database/service-state.entity.js';

/** The installation's database with the services that the key commands use. */
export interface KeysSession {
  dataSource: DataSource;
  users: UsersService;
  keys: ApiKeysService;
  close(): Promise<void>;
}

/**
 * Opens the database of the installation, next to a running service or alone, and brings it up to date.
 *
 * Put together by hand and not as a Nest application: that one would do at its start what only a service should, such
 * as making the first key or putting `BOOTSTRAP_API_KEY` in force.
 *
 * @param onNotice receives the few lines an operator should see of the embedded server
 */
export async function openKeysSession(
  config: AppConfig,
  onNotice: (line: string) => void,
): Promise<KeysSession> {
  const database = await openDatabase(config);
  database.notices.forEach(onNotice);
  try {
    await runMigrations(database.url);
    const dataSource = new DataSource({
      ...dataSourceOptions(database.url, 2),
      entities: [User, ApiKey, ServiceState],
    });
    await dataSource.initialize();
    const clock = new SystemClock();
    const verifier = new ApiKeyVerifier(dataSource, clock);
    const users = new UsersService(dataSource.getRepository(User), verifier);
    const keys = new ApiKeysService(dataSource.getRepository(ApiKey), users, verifier, clock);
    return {
      dataSource,
      users,
      keys,
      close: async () => {
        await dataSource.destroy();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}
