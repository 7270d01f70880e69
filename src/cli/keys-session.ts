import { DataSource } from 'typeorm';
import { AuditRepository } from '../audit/audit.repository.js';
import { AccessChanges } from '../auth/access-changes.js';
import { ApiKey, ApiKeyRepository } from '../auth/api-key.repository.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { Identity, IdentityRepository } from '../auth/oidc/identity.repository.js';
import { SessionRepository } from '../auth/sessions/session.repository.js';
import { User, UserRepository } from '../auth/user.repository.js';
import { UsersService, UserWork } from '../auth/users.service.js';
import { AutomationWebhook } from '../automations/events/automation-webhook.repository.js';
import { Automation } from '../automations/definitions/automation.repository.js';
import { SystemClock } from '@slipway/common/clock.js';
import type { AppConfig } from '../config/app-config.js';
import { dataSourceOptions, runMigrations } from '../database/data-source-options.js';
import { openDatabase } from '../database/open-database.js';
import { PushSubscription } from '../outbound-webhooks/push/push-subscription.repository.js';
import { WebhookEndpoint } from '../outbound-webhooks/webhook-endpoint.repository.js';
import { ServiceState } from '../database/service-state.repository.js';

/** What a revocation of a stolen key ends. */
const MADE_WITH_KEYS = [Automation, AutomationWebhook, WebhookEndpoint, PushSubscription];

export interface KeysSession {
  dataSource: DataSource;
  users: UserRepository;
  keys: ApiKeyRepository;
  usersService: UsersService;
  keysService: ApiKeysService;
  identities: IdentityRepository;
  audit: AuditRepository;
  close(): Promise<void>;
}

/**
 * Opens the database, next to a running service or alone, and migrates it. A Nest application would run start-up work
 * of the service, such as making the first key.
 */
export async function openKeysSession(
  config: AppConfig,
  onNotice: (line: string) => void,
): Promise<KeysSession> {
  const database = await openDatabase(config);
  database.notices.forEach(onNotice);
  try {
    await runMigrations(database.addresses.direct);
    const dataSource = new DataSource({
      ...dataSourceOptions(database.addresses.direct, 2),
      entities: [User, ApiKey, Identity, ServiceState, ...MADE_WITH_KEYS],
    });
    await dataSource.initialize();
    const clock = new SystemClock();
    const audit = new AuditRepository('operator');
    const users = new UserRepository(dataSource, audit);
    const keys = new ApiKeyRepository(dataSource, audit, config);
    const changes = new AccessChanges();
    const sessions = new SessionRepository(dataSource, audit, keys);
    const identities = new IdentityRepository(dataSource, users);
    return {
      dataSource,
      users,
      keys,
      usersService: new UsersService(
        users,
        keys,
        sessions,
        identities,
        changes,
        new UserWork(),
        config,
        clock,
      ),
      keysService: new ApiKeysService(keys, users, changes, clock),
      identities,
      audit,
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
