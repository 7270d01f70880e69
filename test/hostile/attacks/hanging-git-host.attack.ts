import type { ServerResponse } from 'node:http';
import { RawServer } from '../../support/raw-server.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { ResponseTimes } from '../support/response-times.js';
import type { Tenant } from '../support/tenant.js';

const REQUESTS = 130;
const SEARCHES = 40;
const MAX_GROWTH_MIB = 200;
/** Of a search of Alice at a host that answers her at once, and of a refusal: a fraction of the deadline. */
const MAX_MS = 1_000;
const DRIP_MS = 100;

/** What the host does to Bob: it does not answer, or a byte at a time. */
const WAYS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  silent: () => undefined,
  dripping: (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const timer = setInterval(() => response.write(' '), DRIP_MS);
    response.once('close', () => clearInterval(timer));
  },
};

export const hangingGitHost: Attack = {
  name: 'hanging-git-host',
  finding: 9,
  timed: true,
  what: 'Bob has 130 requests at a git host that never answers him, and that Alice uses too.',
  expected: {
    process: held('what is beyond his share is refused at once, and Alice finds her repositories'),
  },
  run: async (world) => {
    let toBob = WAYS['silent'];
    const host = await RawServer.start((request, response) => {
      const isBob = request.headers.authorization?.endsWith('of-Bob') ?? false;
      request.resume().once('end', () => (isBob ? toBob?.(response) : answer(request.url ?? '', response)));
    });
    try {
      return await world.apart({ environment: { GIT_HOST_ALLOWLIST: host.origin } }, async (apart) => {
        await Promise.all([giveToken(apart.alice, host.origin), giveToken(apart.bob, host.origin)]);
        let isHeld = true;
        const seen: string[] = [];
        for (const [name, way] of Object.entries(WAYS)) {
          toBob = way;
          const result = await attack(apart, name);
          isHeld &&= result.held;
          seen.push(`${name}: ${result.seen}`);
        }
        return { held: isHeld, seen: seen.join('. ') };
      });
    } finally {
      await host.close();
    }
  },
};

async function attack(world: HostileWorld, name: string): Promise<{ held: boolean; seen: string }> {
  const times = ResponseTimes.watch(world);
  const hanging = Array.from({ length: REQUESTS }, (_, index) =>
    search(world, world.bob, `bob/${name} ${index}`),
  );
  const found: Found[] = [];
  for (let index = 0; index < SEARCHES; index += 1) {
    found.push(await search(world, world.alice, `alice/${name} ${index}`));
  }
  const refused = (await Promise.all(hanging)).filter(({ status }) => status === 429);
  const others = await times.end(MAX_GROWTH_MIB);
  const slowest = Math.max(...found.map(({ ms }) => ms));
  const slowestRefusal = Math.max(...refused.map(({ ms }) => ms));
  return {
    held:
      others.held &&
      found.every(({ status }) => status === 200) &&
      slowest < MAX_MS &&
      refused.length > 0 &&
      slowestRefusal < MAX_MS &&
      refused.every(({ retryAfter }) => retryAfter !== null),
    seen:
      `${refused.length} of ${REQUESTS} refused within ${Math.round(slowestRefusal)} ms; Alice's searches: ` +
      `${[...new Set(found.map(({ status }) => status))].join(' and ')}, at most ${Math.round(slowest)} ms; ${others.seen}`,
  };
}

interface Found {
  status: number;
  retryAfter: string | null;
  ms: number;
}

async function search({ url }: HostileWorld, { client }: Tenant, text: string): Promise<Found> {
  const since = performance.now();
  const query = new URLSearchParams({ provider: 'github', query: text });
  const response = await fetch(`${url}/api/v1/git/repositories/search?${query.toString()}`, {
    headers: { 'X-Session-API-Key': client.key },
  });
  await response.arrayBuffer();
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    ms: performance.now() - since,
  };
}

async function giveToken({ client, name }: Tenant, host: string): Promise<void> {
  await client.post('/api/add-git-providers', {
    provider_tokens: { github: { token: `token-of-${name}`, host } },
  });
}

/** As a GitHub where nothing is found. */
function answer(path: string, response: ServerResponse): void {
  const body = path.includes('/search/')
    ? { total_count: 0, items: [] }
    : { data: { viewer: { login: 'x' } } };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
