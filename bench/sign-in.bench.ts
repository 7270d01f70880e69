import { FakeOidcIssuer } from '../test/fakes/fake-oidc-issuer.js';
import { createBenchUsers } from './support/bench-users.js';
import { HttpClient } from './support/http-client.js';
import { atMost, median, type Outcome, print, spread } from './support/report.js';
import { withSandboxService } from './support/sandbox-service.js';

const PATH = '/api/v1/users/me';
const WARM_UPS = 200;
const ROUNDS = 5;
const REQUESTS = 200;
const MAX_MORE_MS = 0.3;

/** What a request waits for when a token of the issuer is judged, after its first one, beside a key: in turns. */
export async function benchSignIn(): Promise<Outcome[]> {
  const issuer = await FakeOidcIssuer.start();
  try {
    return await withSandboxService(issuer.environment, async ({ url, databaseUrl }) => {
      const [key = ''] = await createBenchUsers(databaseUrl, 1, 'sign-in');
      const token = await issuer.accessToken({
        sub: 'bench',
        email: 'bench@example.org',
        email_verified: true,
      });
      const client = new HttpClient(url, '');
      try {
        await timesOf(client, [key, token], WARM_UPS);
        const more: number[] = [];
        for (let round = 0; round < ROUNDS; round += 1) {
          const [byKey = [], byToken = []] = await timesOf(client, [key, token], REQUESTS);
          more.push(median(byToken) - median(byKey));
        }
        print(`  a token of the issuer takes ${spread(more, 2)} ms more than a key`);
        return [atMost('a token of the issuer, more than a key', more, MAX_MORE_MS, { digits: 2 })];
      } finally {
        client.close();
      }
    });
  } finally {
    await issuer.server.close();
  }
}

async function timesOf(client: HttpClient, keys: string[], count: number): Promise<number[][]> {
  const times = keys.map((): number[] => []);
  for (let request = 0; request < count; request += 1) {
    for (const [index, key] of keys.entries()) {
      times[index]?.push((await client.expectOk({ method: 'GET', path: PATH, key })).ms);
    }
  }
  return times;
}
