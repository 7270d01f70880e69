import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { RawServer } from '../../support/raw-server.js';
import { type Attack, held } from '../attack.js';
import type { Tenant } from '../support/tenant.js';
import { Vitals } from '../support/vitals.js';

const PARALLEL = 10;
const MIN_ROUNDS_MS = 2_500;
const MAX_ROUNDS_MS = 10_000;
/** Of fewer than a hundred, the 99th percentile is the slowest one. */
const ENOUGH_SAMPLES = 200;
/** Just below what is read of one response. */
const BYTES = 2 * 1024 * 1024 - 1_000;
const MAX_GROWTH_MIB = 300;
const MAX_P99_MS = 250;
const KIBIBYTE = 1024;

/** Made once: making it for each answer would delay what this program measures. */
const TINY_CHUNKS = Buffer.from('1\r\n[\r\n'.concat('1\r\n \r\n'.repeat(1_000_000), '1\r\n]\r\n0\r\n\r\n'));

/** Answers of a git host: a few kilobytes on the wire, or many. */
const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'a list of empty objects': packed(listOf('{}')),
  'pull requests that are empty objects': packed(
    `{"data":{"viewer":{"login":"bob","pullRequests":{"nodes":${listOf('{}')}}}}}`,
  ),
  'errors without a message': packed(`{"errors":${listOf('{}')}}`),
  'one long message': packed(`{"errors":[{"message":"${'rate limi '.repeat(BYTES / 10)}"}]}`),
  'a text of escapes': packed(`[{"name":"${String.raw`\u0041`.repeat(BYTES / 6)}"}]`),
  'objects with a name of their own each': packed(
    `[${Array.from({ length: 300_000 }, (_, index) => `{"${index}":0}`).join()}]`,
  ),
  'lists in lists': packed('['.repeat(BYTES / 2) + ']'.repeat(BYTES / 2)),
  'a bomb of a gibibyte': packed(Buffer.alloc(KIBIBYTE * KIBIBYTE * KIBIBYTE)),
  'chunks of one byte': (response) => {
    response
      .writeHead(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' })
      .flushHeaders();
    // Below Node.js, which would write each chunk by itself.
    response.socket?.end(TINY_CHUNKS);
  },
};

export const answersOfGitHost: Attack = {
  name: 'answers-of-git-host',
  finding: 3,
  timed: true,
  what: "Bob's git host answers ten requests at a time with mebibytes that cost far more to parse than to send.",
  expected: {
    process: held('Bob gets 502, and nobody else notices'),
  },
  timeoutMs: 900_000,
  run: async (world) => {
    let answer = ANSWERS['a list of empty objects'];
    const host = await RawServer.start((request, response) => {
      request.resume().once('end', () => answer?.(response));
    });
    try {
      return await world.apart({ environment: { GIT_HOST_ALLOWLIST: host.origin } }, async (apart) => {
        await apart.bob.client.post('/api/add-git-providers', {
          provider_tokens: { github: { token: 'token-of-bob', host: host.origin } },
        });
        let isHeld = true;
        const seen: string[] = [];
        for (const [name, next] of Object.entries(ANSWERS)) {
          answer = next;
          const times = Vitals.watch(apart);
          const statuses = await askWhile(times, apart.bob, name);
          const result = await times.end(MAX_GROWTH_MIB, MAX_P99_MS);
          isHeld &&= result.held;
          seen.push(`${name}: ${statuses}; ${result.seen}`);
          process.stdout.write(`  ${seen.at(-1)}\n`);
        }
        return { held: isHeld, seen: seen.join('. ') };
      });
    } finally {
      await host.close();
    }
  },
};

/** Bob's requests, ten at a time, one round after the other, until others were measured often enough. What each is answered. */
async function askWhile(times: Vitals, bob: Tenant, name: string): Promise<string> {
  const statuses = new Set<number>();
  const began = performance.now();
  const isOver = (): boolean => {
    const ms = performance.now() - began;
    return ms > MAX_ROUNDS_MS || (ms > MIN_ROUNDS_MS && times.samples >= ENOUGH_SAMPLES);
  };
  for (let round = 0; !isOver(); round += 1) {
    const searches = Array.from({ length: PARALLEL - 1 }, (_, index) =>
      searchPath(`${name} ${round} ${index}`),
    );
    const answers = await Promise.all(
      ['/api/user/suggested-tasks', ...searches].map((path) => bob.send('GET', path)),
    );
    answers.forEach(({ status }) => statuses.add(status));
  }
  return [...statuses].join(' and ');
}

/** Answers are remembered by what was looked for. */
function searchPath(text: string): string {
  const query = new URLSearchParams({ provider: 'github', query: text });
  return `/api/v1/git/repositories/search?${query.toString()}`;
}

function packed(body: string | Buffer): (response: ServerResponse) => void {
  const bytes = gzipSync(body);
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bytes);
  };
}

function listOf(element: string): string {
  return `[${`${element},`.repeat(Math.floor(BYTES / (element.length + 1)) - 50)}${element}]`;
}
