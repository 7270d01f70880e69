import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Client } from 'pg';
import { jsonNumber } from '@slipway/common/json-access.js';
import { endProcesses } from '@slipway/common/processes/end-processes.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { connectionUrl, startEmbeddedPostgres } from '@slipway/embedded-postgres/embedded-postgres.js';
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
const STATUS = 'SELECT status, status_detail FROM sandboxes WHERE id = $1';

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

/** Runs `work` with a service of its own, and removes its sandboxes afterwards. BENCH_PROFILE names a folder for CPU profiles. */
export async function withSandboxService<T>(
  environment: Record<string, string>,
  work: (service: SandboxService) => Promise<T>,
): Promise<T> {
  const profiles = process.env['BENCH_PROFILE'];
  const nodeArgs = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  return await withFolder(async (folder) => {
    const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'data') });
    const databaseUrl = connectionUrl(postgres.connection);
    const encryptionKey = randomBytes(32);
    const instanceId = `bench-${randomBytes(6).toString('hex')}`;
    const dataDir = path.join(folder, 'service');
    const database = new Client({ connectionString: databaseUrl });
    try {
      await database.connect();
      const service = await startServiceProcess({
        cwd: folder,
        environment: {
          DATABASE_URL: databaseUrl,
          DATA_DIR: dataDir,
          INSTANCE_ID: instanceId,
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
          const keys: SandboxService['keys'] = [worker, reader];
          return await work({ pid, url, clients, keys, readerId, dataDir, database, databaseUrl, cipher });
        } finally {
          await removeSandboxes(clients[0], database);
          clients.forEach((client) => client.close());
        }
      } finally {
        await service.stop();
        // The next service would adopt the ones that are kept warm.
        await endProcesses({ root: null, marker: `SLIPWAY_SANDBOX=${instanceId}/`, user: null });
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
  await database.query(
    `WITH made AS (
       INSERT INTO app_conversations (id, user_id, sandbox_id, selected_repository, selected_branch, git_provider, title,
         llm_model, working_dir, sandbox_generation, created_at)
       SELECT gen_random_uuid(), $1, ($2::text[])[1 + n % cardinality($2::text[])], 'bench/app', 'main', 'github',
         'Conversation number ' || n, 'openai/large-model', '/workspace/app', 1, now() - n * interval '1 minute'
       FROM generate_series(0, $3::int - 1) AS n
       RETURNING id, user_id, sandbox_id)
     INSERT INTO followed_conversations (id, user_id, sandbox_id, execution_status, follower, follower_until)
     SELECT id, user_id, sandbox_id, 'finished', gen_random_uuid(), now() + interval '1 day' FROM made`,
    [readerId, sandboxIds, count],
  );
  await database.query('ANALYZE app_conversations, followed_conversations, sandboxes');
}

/** The process of a sandbox that this machine runs. */
export async function programPid({ dataDir }: SandboxService, sandboxId: string): Promise<number> {
  const record = await readFile(path.join(dataDir, 'sandboxes', sandboxId, 'program.json'), 'utf8');
  return jsonNumber(JSON.parse(record), 'pid') ?? 0;
}

interface StatusRow {
  status: string;
  status_detail: string | null;
}

/**
 * Waits for a status of the row: the API shows a sandbox that is being paused as PAUSED.
 *
 * @throws Error when the sandbox fails instead
 */
export async function untilStatus(
  database: Client,
  id: string,
  wanted: string,
  pollMs?: number,
): Promise<void> {
  await untilTrue(
    async () => {
      const { rows } = await database.query<StatusRow>(STATUS, [id]);
      const { status, status_detail: detail } = rows[0] ?? { status: null, status_detail: null };
      if (status === 'ERROR' && wanted !== 'ERROR') {
        throw new Error(`the sandbox failed: ${detail ?? 'its row does not say why'}`);
      }
      return status === wanted;
    },
    `status ${wanted}`,
    pollMs,
  );
}
