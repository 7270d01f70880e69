import { existsSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import path from 'node:path';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from '../app.module.js';
import { configureApp } from '../app.setup.js';
import { type CodePurpose, OneTimeCodes } from '../auth/one-time-codes.js';
import type { AppLogger } from '@slipway/api/logging/app-logger.js';
import { productFolder } from '../common/product.js';
import { AppConfig } from '../config/app-config.js';
import { localEncryptionKeys } from '../config/encryption-keys.js';
import { unreadVariables } from '../config/load-config.js';
import type { DatabaseAddresses } from '@slipway/database/database-addresses.js';
import { openDatabase, type OpenDatabase } from '../database/open-database.js';
import { runMigrations } from '../database/data-source-options.js';
import { Draining } from '../health/readiness.js';
import { BackendReadiness } from '../v1/sandboxes/lifecycle/backend-readiness.js';
import { SandboxQueries } from '../v1/sandboxes/sandbox.queries.js';
import { hasBuiltConsole } from '../web/console.pages.js';
import { farewellText, welcomeText } from './welcome-text.js';

/** Requests that have not ended by then are cut off, so that the rest of the stop can proceed. */
const REQUEST_GRACE_MS = 20_000;
/** How long the welcome waits for the report about sandboxes. */
const WELCOME_MS = 6_000;

export interface RunningService {
  port: number;
  /** Returns a code for a link that signs in the key's user. */
  signInCode(key: string): string;
  /** Reports not ready for `SHUTDOWN_DELAY_SECONDS`, ends requests in flight, then closes everything. */
  stop(): Promise<void>;
}

/** Opens the database, migrates it and listens. @throws ConfigError, EmbeddedPostgresError or a listen error */
export async function startService(
  config: AppConfig,
  logger: AppLogger,
  opening: Promise<OpenDatabase> = openDatabase(config),
): Promise<RunningService> {
  const database = await opening;
  for (const line of database.notices) {
    logger.log(line, 'Database');
  }
  for (const line of unreadVariables()) {
    logger.warn(line, 'Configuration');
  }
  database.supervise((level, message, fields) => logger[level](message, fields, 'Database'));
  try {
    const app = await createApp(config, database.addresses, logger);
    try {
      await app.listen(config.http.port, config.http.host);
    } catch (error) {
      await app.close();
      throw error;
    }
    const { port } = app.getHttpServer().address() as AddressInfo;
    logger.log('listening', { host: config.http.host, port }, 'Service');
    if (config.log.welcome) {
      void welcomeLast(app, config, port);
    }
    return {
      port,
      signInCode: (key) => app.get(OneTimeCodes).issue(key, 'session'),
      stop: async () => {
        app.get(Draining).begin();
        const farewell = config.log.welcome ? await farewellOf(app) : '';
        await delay(config.http.shutdownDelaySeconds * 1000);
        await closeApp(app, logger);
        await database.close();
        process.stdout.write(farewell);
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** After what sandboxes have to report, which takes a second or two, so that the lines to copy stay in sight. */
async function welcomeLast(app: NestExpressApplication, config: AppConfig, port: number): Promise<void> {
  const key = config.database.url === null ? generatedKey(config.dataDir) : null;
  // Logs must not hold a code that connects a browser; users of the terminal may have the key anyway.
  const issueCode =
    key !== null && process.stdout.isTTY
      ? (purpose: CodePurpose) => app.get(OneTimeCodes).issue(key, purpose)
      : null;
  const reported = app.get(BackendReadiness).isReady();
  await Promise.race([reported.catch(() => false), delay(WELCOME_MS, null, { ref: false })]);
  if (!app.get(Draining).hasBegun) {
    const [workingDirectory, hasKeyFile] = [process.cwd(), key !== null];
    process.stdout.write(
      welcomeText({ config, port, workingDirectory, hasKeyFile, hasConsole: hasBuiltConsole(), issueCode }),
    );
  }
}

/** Sandboxes outlive the service, so that conversations go on over a restart. */
async function farewellOf(app: NestExpressApplication): Promise<string> {
  try {
    const counts = await app.get(SandboxQueries).counts();
    const running = counts.filter(({ status }) => status === 'RUNNING' || status === 'STARTING');
    // The command is not on the PATH in a clone.
    const isClone = existsSync(path.join(productFolder(), 'package-lock.json'));
    return farewellText(
      running.reduce((sum, { count }) => sum + count, 0),
      isClone ? 'npm run slipway --' : 'slipway',
    );
  } catch {
    // The database may be what the service stops for.
    return '';
  }
}

async function closeApp(app: NestExpressApplication, logger: AppLogger): Promise<void> {
  const cut = setTimeout(() => {
    logger.warn('requests cut off', { grace_ms: REQUEST_GRACE_MS }, 'Service');
    app.getHttpServer().closeAllConnections();
  }, REQUEST_GRACE_MS);
  try {
    await app.close();
  } finally {
    clearTimeout(cut);
  }
}

async function createApp(
  config: AppConfig,
  addresses: DatabaseAddresses,
  logger: AppLogger,
): Promise<NestExpressApplication> {
  // After opening the database, which creates DATA_DIR with the mode it needs.
  const encryptionKeys = config.trust.encryptionKeys ?? (await localEncryptionKeys(config.dataDir));
  const onWait = (message: string, fields: object): void => logger.warn(message, fields, 'Database');
  const migrations = await runMigrations(addresses.direct, { onWait });
  if (migrations.length > 0) {
    logger.log('migrations applied', { migrations }, 'Database');
  }
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.register(config, { addresses, encryptionKeys }),
    new ExpressAdapter(),
    { bodyParser: false, logger, abortOnError: false },
  );
  configureApp(app);
  return app;
}

/** Only if the first start has generated one. */
function generatedKey(dataDir: string): string | null {
  const file = path.join(dataDir, 'api-key');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
}
