import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import type { ChatRequest } from '../../../../packages/agent-server/test/fakes/scripted-llm.js';
import type { PlantedSecrets, SecretKind } from './planted-secrets.js';

/** A response that a client of a journey got. */
export interface Exchange {
  method: string;
  path: string;
  text: string;
}

const SESSION_KEY = 'session_api_key';
const SESSION_KEY_MEMBER = new RegExp(`"${SESSION_KEY}":"([^"]+)"`, 'g');
/** Responses that are there to return a secret, each in one member. */
const MEANT: { what: string; method: RegExp; path: RegExp; member: string }[] = [
  { what: 'a key, to who creates it', method: /^POST$/, path: /^\/api\/v1\/api-keys$/, member: 'key' },
  {
    what: 'the key of a sandbox, to its owner',
    method: /^(GET|POST|PATCH)$/,
    path: /^\/api\/v1\/(sandboxes|app-conversations)\b(?!.*\/agent-server\/)/,
    member: SESSION_KEY,
  },
];
/** Files of `DATA_DIR` that are there to hold a secret. */
const KEY_FILES = new Set(['api-key', 'encryption-keys', 'postgres-password']);
/** Its tables are looked through instead. */
const DATABASE_FILES = ['postgres', 'postgres.log', 'postgres-binaries'];
/** Variables of tools, and of tool servers that are programs. */
const OF_TOOLS: readonly SecretKind[] = ['custom secret', 'git token', 'tool server key'];
/** Variables of the service that its operator sets. */
const OF_SERVICE: readonly SecretKind[] = ['administrator key', 'collector key'];
const SAMPLE_MS = 500;

/** Looks for the secrets of a world wherever they must not be. */
export class SecretWatch {
  private readonly exchanges: Exchange[] = [];
  private readonly streams: (Omit<Exchange, 'text'> & { text: () => string })[] = [];
  private readonly found = new Set<string>();
  private sampledAt = 0;

  constructor(private readonly secrets: PlantedSecrets) {}

  /** Keeps a response for the end, when all secrets are known, and looks at the processes now and then. */
  saw(exchange: Exchange): void {
    this.exchanges.push(exchange);
    if (meantMembers(exchange).includes(SESSION_KEY)) {
      for (const [, key = ''] of exchange.text.matchAll(SESSION_KEY_MEMBER)) {
        this.secrets.know('session key', key);
      }
    }
    if (performance.now() - this.sampledAt > SAMPLE_MS) {
      this.lookAtProcesses();
      this.sampledAt = performance.now();
    }
  }

  /** Reads a response that has no end at the end. */
  follows(stream: Omit<Exchange, 'text'> & { text: () => string }): void {
    this.streams.push(stream);
  }

  /** Looks at arguments and environments of all processes of the machine. */
  lookAtProcesses(): void {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const command = readProcess(pid, 'cmdline');
      this.note(`the arguments of ${programOf(command)}`, this.secrets.in(command));
      const kinds = this.secrets.in(readProcess(pid, 'environ'));
      const allowed = allowedIn(command);
      this.note(
        `the environment of ${programOf(command)}`,
        kinds.filter((kind) => !allowed.includes(kind)),
      );
    }
  }

  /** Looks through what the model was told. */
  lookAtModel(requests: readonly ChatRequest[]): void {
    this.note('what the model was told', this.secrets.in(requests.map((request) => request.text).join('\n')));
  }

  /** Looks through what processes of the service have printed. */
  lookAtLog(lines: readonly string[]): void {
    this.note('the log of the service', this.secrets.in(lines.join('\n')));
  }

  /** Looks through every row of every table, those of the job queue included. */
  async lookAtDatabase(url: string): Promise<void> {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      const { rows: tables } = await client.query<{ name: string }>(TABLES);
      const pattern = this.secrets.patterns.map(escapeRegExp).join('|');
      const selects = tables.map(
        ({ name }, index) => `SELECT ${index} AS table, t::text AS row FROM ${name} t WHERE t::text ~ $1`,
      );
      const { rows } = await client.query<{ table: number; row: string }>(selects.join(' UNION ALL '), [
        pattern,
      ]);
      rows.forEach(({ table, row }) =>
        this.note(`the table ${tables[table]?.name ?? ''}`, this.secrets.in(row)),
      );
    } finally {
      await client.end();
    }
  }

  /** Looks through all files of the service and its sandboxes: event logs, their records, what git leaves behind. */
  lookAtFiles(dataDir: string): void {
    const exclude = DATABASE_FILES.map((name) => `--exclude-dir=${name}`);
    const { stdout, status, stderr } = spawnSync('grep', ['-rlsaF', ...exclude, '-f', '-', dataDir], {
      input: this.secrets.patterns.join('\n'),
      encoding: 'utf8',
    });
    // 2: some file went away meanwhile.
    if (status === null) {
      throw new Error(`grep did not run: ${stderr}`);
    }
    for (const file of stdout.split('\n').filter((name) => name !== '')) {
      const name = path.relative(dataDir, file);
      if (!KEY_FILES.has(name) && !DATABASE_FILES.includes(name)) {
        this.note(`the file ${withoutIds(name)}`, this.secrets.in(readFileSync(file, 'latin1')));
      }
    }
  }

  /** Everything that was found so far, responses included; no secret is shown. */
  findings(): string[] {
    const streamed = this.streams.map((stream) => ({ ...stream, text: stream.text() }));
    for (const exchange of [...this.exchanges, ...streamed]) {
      if (this.secrets.in(exchange.text).length > 0) {
        const { method, path: address } = exchange;
        this.note(
          `the response of ${method} ${withoutIds(address)}`,
          this.secrets.in(withoutMeant(exchange)),
        );
      }
    }
    return [...this.found].toSorted();
  }

  private note(place: string, kinds: readonly SecretKind[]): void {
    kinds.forEach((kind) => this.found.add(`${kind} in ${place}`));
  }
}

const TABLES = `
  SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
  WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`;

function allowedIn(command: string): readonly SecretKind[] {
  if (/dist\/service\/main\.js/.test(command)) {
    return OF_SERVICE;
  }
  return /agent-server\/main\.js/.test(command) ? [] : OF_TOOLS;
}

function meantMembers({ method, path: address }: Omit<Exchange, 'text'>): string[] {
  const [route = ''] = address.split('?');
  return MEANT.filter((one) => one.method.test(method) && one.path.test(route)).map(({ member }) => member);
}

function withoutMeant(exchange: Exchange): string {
  const { text } = exchange;
  const members = meantMembers(exchange);
  if (members.length === 0) {
    return text;
  }
  const parsed: unknown = JSON.parse(text);
  return JSON.stringify(parsed, (name, value: unknown) => (members.includes(name) ? undefined : value));
}

/** Processes end while they are looked at, and those of other users may not be read. */
function readProcess(pid: string, file: 'cmdline' | 'environ'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1').replaceAll('\0', '\n');
  } catch {
    return '';
  }
}

function programOf(command: string): string {
  return (
    /agent-server\/main\.js|dist\/main\.js/.exec(command)?.[0] ?? path.basename(command.split('\n')[0] ?? '')
  );
}

function withoutIds(address: string): string {
  return address.split('?')[0]?.replaceAll(/[0-9a-f]{8}-?[0-9a-f-]{4,}|[0-9A-Za-z]{20,}/g, 'ID') ?? '';
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
