import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Test } from '@nestjs/testing';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { AppModule } from '../../src/app.module.js';
import { configureApp } from '../../src/app.setup.js';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import { UserRepository } from '../../src/auth/user.repository.js';
import { UsersService } from '../../src/auth/users.service.js';
import { Clock } from '@slipway/common/clock.js';
import { parseConfig } from '../../src/config/load-config.js';
import { DatabaseAddresses, findDatabase } from '@slipway/database/database-addresses.js';
import { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { EmptySandboxBackend } from '../fakes/empty-sandbox-backend.js';
import { Caller } from './caller.js';
import { ManualClock } from './manual-clock.js';
import { createTestDatabase } from './test-database.js';

/** A user with a key, ready to send requests. */
export interface TestUser {
  id: string;
  key: string;
  headers: { 'X-Session-API-Key': string };
}

/** The whole application on a database of its own, listening on a free loopback port. */
export interface TestApp {
  app: NestExpressApplication;
  /** `http://127.0.0.1:PORT`, for supertest or fetch. */
  url: string;
  dataSource: DataSource;
  databaseUrl: string;
  clock: ManualClock;
  /** The administrator, through BOOTSTRAP_API_KEY. */
  admin: TestUser;
  /** One ordinary user. */
  user: TestUser;
  createUser(): Promise<TestUser>;
  /** Requests of a user or with a key; of a stranger by default. */
  as(who?: { headers: Record<string, string> } | string): Caller;
  close(): Promise<void>;
}

const ADMIN_KEY = 'test-administrator-key';
/** The service's own 5 s end before the last of a crowd of requests gets its turn, where the machine is busy. */
const MAX_POOL_WAIT_MS = 60_000;
const NO_FOLDER = path.join(tmpdir(), 'slipway-test-unused', 'console');
/** Fixed, so that two replicas of a test share it. */
const TEST_ENCRYPTION_KEYS = `test:${Buffer.alloc(32, 7).toString('base64')}`;

/** What a test puts in the place of the real thing. */
export interface TestParts {
  /** Runs sandboxes; by default there are none. */
  sandboxBackend?: SandboxBackend;
  /** The service's own clock instead of one that the test moves, and that waits for no program. */
  ownClock?: boolean;
  /** Has the files of a built console; by default there are none. */
  consoleFolder?: string;
}

/**
 * Starts the application; `environment` adds or replaces environment variables.
 *
 * @param databaseUrl an existing database to share (a second replica); a new one by default
 */
export async function createTestApp(
  environment: Record<string, string> = {},
  databaseUrl?: string,
  { sandboxBackend = new EmptySandboxBackend(), ownClock = false, consoleFolder = NO_FOLDER }: TestParts = {},
): Promise<TestApp> {
  const database =
    databaseUrl === undefined
      ? await createTestDatabase()
      : { url: databaseUrl, drop: () => Promise.resolve() };
  const config = parseConfig(
    {
      PORT: '0',
      DATABASE_URL: database.url,
      DATABASE_POOL_SIZE: '5',
      DATA_DIR: path.join(tmpdir(), 'slipway-test-unused'),
      ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS,
      BOOTSTRAP_API_KEY: ADMIN_KEY,
      RATE_LIMIT_PER_MINUTE: '0',
      LOG_REQUESTS: 'false',
      HOST_ID: 'test-host',
      // Nothing listens there: no test reaches a public host.
      HTTPS_PROXY: 'http://127.0.0.1:9',
      ...environment,
    },
    false,
  );
  const clock = new ManualClock();
  const builder = Test.createTestingModule({
    imports: [
      AppModule.register(config, {
        addresses: await addressesOf(database.url, config.database.directUrl),
        encryptionKeys: config.trust.encryptionKeys ?? [],
      }),
    ],
  })
    .overrideProvider(SandboxBackend)
    .useValue(sandboxBackend);
  const testing = await (ownClock ? builder : builder.overrideProvider(Clock).useValue(clock)).compile();
  const app = testing.createNestApplication<NestExpressApplication>(new ExpressAdapter(), {
    bodyParser: false,
    logger: false,
  });
  configureApp(app, consoleFolder);
  try {
    await app.listen(0, '127.0.0.1');
  } catch (error) {
    // What was opened so far would keep the test's process alive.
    await app.close();
    throw error;
  }
  const dataSource = app.get(DataSource);
  waitLonger(dataSource);
  const createUser = async (): Promise<TestUser> => {
    const user = await app.get(UsersService).create(`${randomBytes(6).toString('hex')}@example.com`, null);
    const { key } = await app.get(ApiKeysService).issue({ userId: user.id, name: 'test', expiresAt: null });
    return { id: user.id, key, headers: { 'X-Session-API-Key': key } };
  };
  const url = await app.getUrl();
  const administrator = await app.get(UserRepository).findByEmail('admin@localhost');
  return {
    app,
    url,
    dataSource,
    databaseUrl: database.url,
    clock,
    admin: { id: administrator?.id ?? '', key: ADMIN_KEY, headers: { 'X-Session-API-Key': ADMIN_KEY } },
    user: await createUser(),
    createUser,
    as: (who = { headers: {} }) =>
      new Caller(url, typeof who === 'string' ? { 'X-Session-API-Key': who } : who.headers),
    close: async () => {
      await app.close();
      await database.drop();
    },
  };
}

function waitLonger({ driver }: DataSource): void {
  const pool: unknown = Reflect.get(driver, 'master');
  if (!(pool instanceof Pool)) {
    throw new Error('TypeORM keeps its pool elsewhere');
  }
  pool.options.connectionTimeoutMillis = MAX_POOL_WAIT_MS;
}

/** Most tests need no look at what is in between: nothing is. */
async function addressesOf(url: string, directUrl: string | null): Promise<DatabaseAddresses> {
  return directUrl === null ? DatabaseAddresses.of(url) : (await findDatabase(url, directUrl)).addresses;
}
