import { randomBytes, randomUUID } from 'node:crypto';
import path from 'node:path';
import { Client, type Notification } from 'pg';
import { jsonText } from '@slipway/common/json-access.js';
import { SecretCipher } from '../../src/common/crypto/secret-cipher.js';
import {
  connectionUrl,
  startEmbeddedPostgres,
} from '../../src/database/embedded-postgres/embedded-postgres.js';
import {
  newSandboxId,
  newSessionKey,
  sessionKeyBinding,
  sessionKeyHash,
} from '../../src/v1/sandboxes/session-key.js';
import { startServiceProcess } from '../../test/support/service-process.js';
import { createBenchUsers } from './bench-users.js';
import { untilTrue, withFolder } from './fixtures.js';
import { HttpClient } from './http-client.js';

const KEY_ID = 'bench';
/** The host of inserted rows. It does not run, so the service leaves these rows alone. */
const ABSENT_HOST = 'absent-host';
const CHANNEL = 'bench_sandbox_status';
const STATUS_TIMEOUT_MS = 120_000;
/** Characters; a notification has at most 8,000 bytes. */
const MAX_DETAIL = 1_500;

/** A service that can run sandboxes, and its database for inserting rows. */
export interface SandboxService {
  pid: number;
  url: string;
  /** Clients of two users. Inserted rows belong to the reader. */
  clients: [worker: HttpClient, reader: HttpClient];
  keys: [worker: string, reader: string];
  readerId: string;
  /** Process sandboxes have their folders in `sandboxes` below it. */
  dataDir: string;
  database: Client;
  databaseUrl: string;
  cipher: SecretCipher;
}

/** Runs `work` with a service of its own, and removes its sandboxes afterwards. */
export async function withSandboxService<T>(
  environment: Record<string, string>,
  work: (service: SandboxService) => Promise<T>,
  nodeArgs: string[] = [],
): Promise<T> {
  return await withFolder(async (folder) => {
    const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'data') });
    const databaseUrl = connectionUrl(postgres.connection);
    const encryptionKey = randomBytes(32);
    const dataDir = path.join(folder, 'service');
    const database = new Client({ connectionString: databaseUrl });
    try {
      await database.connect();
      const service = await startServiceProcess({
        cwd: folder,
        environment: {
          DATABASE_URL: databaseUrl,
          DATA_DIR: dataDir,
          ENCRYPTION_KEYS: `${KEY_ID}:${encryptionKey.toString('base64')}`,
          LOG_REQUESTS: 'false',
          RATE_LIMIT_PER_MINUTE: '0',
          MAX_RUNNING_SANDBOXES: '20',
          ALLOW_UNSANDBOXED: 'true',
          ...environment,
        },
        nodeArgs,
      });
      try {
        const [worker = '', reader = ''] = await createBenchUsers(databaseUrl, 2);
        const clients: SandboxService['clients'] = [
          new HttpClient(service.url, worker),
          new HttpClient(service.url, reader),
        ];
        const { rows } = await database.query<{ id: string }>('SELECT id FROM users WHERE email = $1', [
          'bench-1@example.com',
        ]);
        const readerId = rows[0]?.id ?? '';
        const cipher = new SecretCipher([{ id: KEY_ID, bytes: encryptionKey }]);
        try {
          const { pid, url } = service;
          return await work({
            pid,
            url,
            clients,
            keys: [worker, reader],
            readerId,
            dataDir,
            database,
            databaseUrl,
            cipher,
          });
        } finally {
          await removeSandboxes(clients[0], database);
          clients.forEach((client) => client.close());
        }
      } finally {
        await service.stop();
      }
    } finally {
      await database.end();
      await postgres.stop();
    }
  });
}

/** Removes all sandboxes that run, since their programs outlive the service. */
export async function removeSandboxes(client: HttpClient, database: Client): Promise<void> {
  const remaining = async (): Promise<string[]> => {
    const { rows } = await database.query<{ id: string }>('SELECT id FROM sandboxes WHERE host_id <> $1', [
      ABSENT_HOST,
    ]);
    return rows.map(({ id }) => id);
  };
  for (const id of await remaining()) {
    // Not found when it is being removed already.
    await client.send({ method: 'DELETE', path: `/api/v1/sandboxes/${id}` });
  }
  await untilTrue(async () => (await remaining()).length === 0, 'the removal of the sandboxes');
}

/** Inserts RUNNING sandboxes of the reader, each with a key to decrypt, and returns their ids. */
export async function insertSandboxes(
  { database, cipher, readerId }: SandboxService,
  count: number,
): Promise<string[]> {
  const ids = Array.from({ length: count }, newSandboxId);
  for (const id of ids) {
    const key = newSessionKey();
    await database.query(
      `INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, address,
         port_addresses, generation, last_activity_at)
       VALUES ($1, $2, 'slipway', 'RUNNING', 'process', $3, $4, $5, 'http://127.0.0.1:1',
         '{"generation":1,"addresses":{"WORKER_1":"http://127.0.0.1:2","WORKER_2":"http://127.0.0.1:3"}}', 1, now())`,
      [id, readerId, ABSENT_HOST, cipher.encrypt(key, sessionKeyBinding(id)), sessionKeyHash(key)],
    );
  }
  return ids;
}

/**
 * Inserts conversations of the reader, spread over its sandboxes. They are marked as followed by another process, since
 * the service would otherwise keep trying to reach agent servers that do not exist.
 */
export async function insertConversations(
  { database, readerId }: SandboxService,
  sandboxIds: readonly string[],
  count: number,
): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    const sandboxId = sandboxIds[index % sandboxIds.length];
    await database.query(
      `INSERT INTO app_conversations (id, user_id, sandbox_id, selected_repository, selected_branch, git_provider, title,
         llm_model, working_dir, sandbox_generation, created_at)
       VALUES ($1, $2, $3, 'bench/app', 'main', 'github', $4, 'openai/large-model', '/workspace/app', 1,
         now() - $5 * interval '1 minute')`,
      [id, readerId, sandboxId, `Conversation number ${index}`, index],
    );
    await database.query(
      `INSERT INTO followed_conversations (id, user_id, sandbox_id, execution_status, follower, follower_until)
       VALUES ($1, $2, $3, 'finished', $4, now() + interval '1 day')`,
      [id, readerId, sandboxId, randomUUID()],
    );
  }
  await database.query('ANALYZE app_conversations, followed_conversations, sandboxes');
}

/** Gives one of the reader's conversations so many events, every tenth of them a pause, and answers its id. */
export async function insertEvents({ database, readerId }: SandboxService, count: number): Promise<string> {
  const { rows } = await database.query<{ id: string }>(
    'SELECT id FROM app_conversations WHERE user_id = $1 LIMIT 1',
    [readerId],
  );
  const id = rows[0]?.id ?? '';
  await database.query(
    `INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
     SELECT $1, n, 'event-' || n, CASE WHEN n % 10 = 0 THEN 'PauseEvent' ELSE 'MessageEvent' END, now(),
       json_build_object('id', 'event-' || n)
     FROM generate_series(1, $2::int) AS n`,
    [id, count],
  );
  await database.query('UPDATE followed_conversations SET event_count = $2 WHERE id = $1', [id, count]);
  await database.query('ANALYZE conversation_events');
  return id;
}

interface StatusRow {
  status: string;
  status_detail: string | null;
}

/**
 * Learns of a status when the row is committed: polling would be late, and would take processor time from what is
 * measured. The API shows the row's status, except that there a sandbox that is being paused is PAUSED.
 */
export class SandboxStatuses {
  private readonly database: Client;

  private constructor(database: Client) {
    this.database = database;
  }

  static async watch(database: Client): Promise<SandboxStatuses> {
    await database.query(
      `CREATE OR REPLACE FUNCTION bench_notify_status() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_notify('${CHANNEL}', json_build_object(
           'id', NEW.id, 'status', NEW.status, 'detail', left(NEW.status_detail, ${MAX_DETAIL}))::text); RETURN NULL; END $$;
       CREATE OR REPLACE TRIGGER bench_notify_status AFTER UPDATE OF status ON sandboxes
         FOR EACH ROW EXECUTE FUNCTION bench_notify_status();
       LISTEN ${CHANNEL}`,
    );
    return new SandboxStatuses(database);
  }

  /** @throws Error when the sandbox fails, or does not get there within two minutes */
  async until(id: string, wanted: string): Promise<void> {
    const reached = Promise.withResolvers<void>();
    const check = (status: string | null, detail: string | null): void => {
      if (status === wanted) {
        reached.resolve();
      } else if (status === 'ERROR') {
        reached.reject(new Error(`the sandbox failed: ${detail ?? 'its row does not say why'}`));
      }
    };
    const onNotification = ({ payload }: Notification): void => {
      const notified: unknown = JSON.parse(payload ?? 'null');
      if (jsonText(notified, 'id') === id) {
        check(jsonText(notified, 'status'), jsonText(notified, 'detail'));
      }
    };
    // The status may have been reached before we listened.
    const checkRow = async (): Promise<void> => {
      const { rows } = await this.database.query<StatusRow>(
        'SELECT status, status_detail FROM sandboxes WHERE id = $1',
        [id],
      );
      check(rows[0]?.status ?? null, rows[0]?.status_detail ?? null);
    };
    const timeout = setTimeout(
      () => reached.reject(new Error(`waiting for status ${wanted} timed out`)),
      STATUS_TIMEOUT_MS,
    );
    this.database.on('notification', onNotification);
    try {
      await Promise.all([checkRow(), reached.promise]);
    } finally {
      clearTimeout(timeout);
      this.database.off('notification', onNotification);
    }
  }
}
