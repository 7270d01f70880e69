import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { START_TASK_STATUSES } from '../../src/v1/app-conversations/start-task.entity.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startListening } from '../support/start-listening.js';
import { StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';

const TOKEN = 'ghp_reads4217';

interface Statement {
  text: string;
  values: string[];
}

/** A TCP relay in front of a database that records the statements which pass it. */
class StatementRecorder {
  readonly statements: Statement[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;

  constructor(databaseUrl: string) {
    const { hostname, port, searchParams } = new URL(databaseUrl);
    const folder = searchParams.get('host');
    const target: NetConnectOpts =
      folder === null ? { host: hostname, port: Number(port) } : { path: `${folder}/.s.PGSQL.${port}` };
    this.server = createServer((client) => {
      const upstream = connect(target);
      for (const socket of [client, upstream]) {
        this.sockets.add(socket);
        socket.on('error', () => undefined).on('close', () => [client, upstream].map((one) => one.destroy()));
      }
      const read = this.reader();
      client.on('data', read);
      client.pipe(upstream).pipe(client);
    });
  }

  /** @returns the address of the database through the relay */
  async listen(databaseUrl: string): Promise<string> {
    const url = new URL(databaseUrl);
    url.hostname = '127.0.0.1';
    url.port = String(await startListening(this.server, 0));
    url.searchParams.delete('host');
    return url.href;
  }

  async close(): Promise<void> {
    this.sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Reads one connection's messages (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
  private reader(): (data: Buffer) => void {
    const prepared = new Map<string, string>();
    let rest: Buffer = Buffer.alloc(0);
    let hasStarted = false;
    return (data) => {
      rest = Buffer.concat([rest, data]);
      for (;;) {
        // The first message has no type.
        const lengthAt = hasStarted ? 1 : 0;
        const end = rest.length < lengthAt + 4 ? Infinity : lengthAt + rest.readUInt32BE(lengthAt);
        if (end > rest.length) {
          return;
        }
        if (hasStarted) {
          this.record(rest.toString('latin1', 0, 1), rest.subarray(5, end), prepared);
        }
        rest = rest.subarray(end);
        hasStarted = true;
      }
    };
  }

  private record(type: string, body: Buffer, prepared: Map<string, string>): void {
    const [first = '', second = ''] = body.toString('utf8').split('\0', 2);
    if (type === 'Q') {
      this.statements.push({ text: first, values: [] });
    } else if (type === 'P') {
      prepared.set(first, second);
    } else if (type === 'B') {
      this.statements.push({ text: prepared.get(second) ?? '', values: boundValues(body, first, second) });
    }
  }
}

function boundValues(body: Buffer, portal: string, statement: string): string[] {
  let at = Buffer.byteLength(portal) + Buffer.byteLength(statement) + 2;
  at += 2 + 2 * body.readUInt16BE(at);
  const count = body.readUInt16BE(at);
  at += 2;
  return Array.from({ length: count }, () => {
    const length = body.readInt32BE(at);
    at += 4 + Math.max(length, 0);
    return body.toString('utf8', at - Math.max(length, 0), at);
  });
}

let database: TestDatabase;
let recorder: StatementRecorder;
let backend: InProcessSandboxBackend;
let git: GitHttpServer;
let app: TestApp;

beforeAll(async () => {
  git = await startGitHttpServer(`x-access-token:${TOKEN}`);
  await git.commit('octo/app', 'main', { 'README.md': 'hello' });
  database = await createTestDatabase();
  recorder = new StatementRecorder(database.url);
  backend = new InProcessSandboxBackend();
  app = await createTestApp({ GITHUB_CLONE_URL: git.origin }, await recorder.listen(database.url), {
    sandboxBackend: backend,
  });
});

afterAll(async () => {
  await app.close();
  await recorder.close();
  await backend.close();
  await database.drop();
  await git.close();
});

/** How often each step of a start read the user's settings, and the list of the user's tokens. */
function readsByStep(userId: string): Record<string, { settings: number; tokens: number }> {
  const steps: Record<string, { settings: number; tokens: number }> = {};
  let step = 'accepted';
  for (const { text, values } of recorder.statements) {
    if (text.includes('UPDATE app_conversation_start_tasks SET attempt')) {
      step = 'WORKING';
    } else if (text.includes('UPDATE app_conversation_start_tasks')) {
      // The new status, where there is one, comes after the old one of the condition.
      step = values.findLast((value) => START_TASK_STATUSES.some((status) => status === value)) ?? step;
    }
    const reads = (steps[step] ??= { settings: 0, tokens: 0 });
    if (/^\s*SELECT\b/.test(text) && values.includes(userId)) {
      const isSettings = /\b(FROM|JOIN) "?settings\b/.test(text);
      reads.settings += isSettings ? 1 : 0;
      // The statement of the settings shows only which tokens there are.
      reads.tokens += !isSettings && /\bFROM "?provider_tokens\b/.test(text) ? 1 : 0;
    }
  }
  return steps;
}

it('reads the settings of the user once when it is accepted and once for all steps, the tokens where it needs them', async () => {
  const { user } = app;
  const client = new StartsClient(app, user);
  await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });
  await storeProviderToken(app, user, 'github', TOKEN);
  await storeProviderToken(app, user, 'gitlab', 'glpat-reads4217');
  await storeProviderToken(app, user, 'bitbucket', 'bitbucket-reads4217');
  recorder.statements.length = 0;

  await client.reached(await client.start({ selected_repository: 'octo/app' }), 'READY');

  const none = { settings: 0, tokens: 0 };
  expect(readsByStep(user.id)).toMatchObject({
    accepted: { settings: 1, tokens: 0 },
    WORKING: { settings: 1, tokens: 0 },
    WAITING_FOR_SANDBOX: none,
    PREPARING_REPOSITORY: { settings: 0, tokens: 1 },
    RUNNING_SETUP_SCRIPT: none,
    SETTING_UP_GIT_HOOKS: none,
    STARTING_CONVERSATION: { settings: 0, tokens: 1 },
  });
});
