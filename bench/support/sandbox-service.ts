import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { Client } from 'pg';
import { SecretCipher } from '../../src/common/crypto/secret-cipher.js';
import {
  connectionUrl,
  startEmbeddedPostgres,
} from '../../src/database/embedded-postgres/embedded-postgres.js';
import { startServiceProcess } from '../../test/support/service-process.js';
import { createBenchUsers } from './bench-users.js';
import { HttpClient } from './http-client.js';
import { untilTrue } from './until-true.js';
import { withFolder } from './with-folder.js';

const KEY_ID = 'bench';
/** Looked after by a host that is not there, so that the service leaves such rows alone. */
export const ABSENT_HOST = 'a-host-of-nobody';

/** A service that can run sandboxes, and its database to put rows into. */
export interface SandboxService {
  pid: number;
  url: string;
  /** Of a user each; the first has no rows that were put in. */
  clients: [worker: HttpClient, reader: HttpClient];
  keys: [worker: string, reader: string];
  readerId: string;
  /** Sandboxes as processes have their folders in `sandboxes` below it. */
  dataDir: string;
  database: Client;
  cipher: SecretCipher;
}

/** Runs `work` with a service of its own; its sandboxes are removed afterwards. */
export async function withSandboxService<T>(
  environment: Record<string, string>,
  work: (service: SandboxService) => Promise<T>,
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

/** Programs of sandboxes outlive the service. */
export async function removeSandboxes(client: HttpClient, database: Client): Promise<void> {
  const left = async (): Promise<string[]> => {
    const { rows } = await database.query<{ id: string }>('SELECT id FROM sandboxes WHERE host_id <> $1', [
      ABSENT_HOST,
    ]);
    return rows.map(({ id }) => id);
  };
  for (const id of await left()) {
    // Unknown where it is being removed already.
    await client.send({ method: 'DELETE', path: `/api/v1/sandboxes/${id}` });
  }
  await untilTrue(async () => (await left()).length === 0, 'the removal of the sandboxes');
}
