import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { startListening } from '../test/support/start-listening.js';
import { processorTimeMs, residentMemoryMb } from './support/process-usage.js';
import { type Outcome, median, print, spread } from './support/report.js';
import {
  insertConversations,
  insertSandboxes,
  type SandboxService,
  withSandboxService,
} from './support/sandbox-service.js';

const DOWNLOAD_PATH = '/api/file/download';
const ROUNDS = 7;
const FILE_BYTES = 200_000_000;
const PIECE = Buffer.from('  const text = "a line of a program";\n'.repeat(1_700));
const MIN_MB_PER_SECOND = 200;
const MAX_GROWTH_MB = 100;
const SAMPLE_MS = 100;

/** What one download came to. */
interface Download {
  seconds: number;
  /** Of the service; null where nobody counts it. */
  processorSeconds: number | null;
  growthMb: number;
}

/** A large file of a conversation, through the service and straight from what stands in for its agent server. */
export async function benchDownloads(): Promise<Outcome[]> {
  const source = createServer(({ url }, response) => {
    if (url?.startsWith(DOWNLOAD_PATH) !== true) {
      response.writeHead(404).end();
      return;
    }
    response.setHeader('content-length', FILE_BYTES);
    Readable.from(pieces()).pipe(response);
  });
  const address = `http://127.0.0.1:${await startListening(source)}`;
  try {
    return await withSandboxService({}, (service) => measure(service, address));
  } finally {
    stop(source);
  }
}

function* pieces(): Generator<Buffer> {
  for (let left = FILE_BYTES; left > 0; left -= PIECE.length) {
    yield left >= PIECE.length ? PIECE : PIECE.subarray(0, left);
  }
}

async function measure(service: SandboxService, address: string): Promise<Outcome[]> {
  const { database, url, keys } = service;
  const [sandboxId = ''] = await insertSandboxes(service, 1);
  await insertConversations(service, [sandboxId], 1);
  await database.query('UPDATE sandboxes SET address = $2 WHERE id = $1', [sandboxId, address]);
  const { rows } = await database.query<{ id: string }>('SELECT id FROM app_conversations');
  const file = `${url}/api/v1/app-conversations/${rows[0]?.id}/file?file_path=a.txt`;
  const through: Download[] = [];
  const direct: number[] = [];
  await download(service.pid, file, keys[1]);
  for (let round = 0; round < ROUNDS; round += 1) {
    through.push(await download(service.pid, file, keys[1]));
    direct.push((await download(service.pid, `${address}${DOWNLOAD_PATH}`, keys[1])).seconds);
  }
  const rates = through.map(
    ({ seconds, processorSeconds }) => FILE_BYTES / 1e6 / (processorSeconds ?? seconds),
  );
  const growth = Math.max(...through.map(({ growthMb }) => growthMb));
  const wall = through.map(({ seconds }) => FILE_BYTES / 1e6 / seconds);
  print(
    `through the service ${spread(wall, 0)} MB/s of wall time, ${spread(rates, 0)} MB/s of processor time`,
  );
  print(
    `straight from the source ${spread(
      direct.map((seconds) => FILE_BYTES / 1e6 / seconds),
      0,
    )} MB/s`,
  );
  return [
    {
      what: 'a file of 200 MB as a JSON string, per core',
      target: `>= ${MIN_MB_PER_SECOND} MB/s`,
      measured: `${spread(rates, 0)} MB/s`,
      reached: median(rates) >= MIN_MB_PER_SECOND,
    },
    {
      what: 'memory that a download of 200 MB adds',
      target: `<= ${MAX_GROWTH_MB} MB`,
      measured: `${growth.toFixed(0)} MB`,
      reached: growth <= MAX_GROWTH_MB,
    },
  ];
}

/** Reads a file to its end and drops it. */
async function download(pid: number, address: string, key: string): Promise<Download> {
  const memory = residentMemoryMb(pid);
  let highest = memory;
  const samples = setInterval(() => (highest = Math.max(highest, residentMemoryMb(pid))), SAMPLE_MS);
  const used = processorTimeMs(pid);
  const began = performance.now();
  const outgoing = get(address, { headers: { 'X-Session-API-Key': key } });
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += Buffer.byteLength(chunk);
  }
  const seconds = (performance.now() - began) / 1000;
  clearInterval(samples);
  if (response.statusCode !== 200 || bytes < FILE_BYTES) {
    throw new Error(`the download ended with ${response.statusCode} after ${bytes} bytes`);
  }
  const after = processorTimeMs(pid);
  return {
    seconds,
    processorSeconds: used === null || after === null ? null : (after - used) / 1000,
    growthMb: highest - memory,
  };
}

function stop(server: Server): void {
  server.closeAllConnections();
  server.close();
}
