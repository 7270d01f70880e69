import { setTimeout as wait } from 'node:timers/promises';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { FakeServer } from '../../fakes/fake-server.js';
import { until } from '../../support/until.js';
import { type ApiClient, text } from '../../system/journeys/support/api-client.js';
import { type Attack, held } from '../attack.js';
import { ResponseTimes } from '../support/response-times.js';

const PATH = '/api/v1/webhook-endpoints';
const TENANTS = 8;
const ENDPOINTS = 10;
/** Deliveries of the bystander, one after the other. */
const ROUNDS = 40;
const EVERY_MS = 500;
/** How often what has ended is sent again. */
const AGAIN_MS = 2_000;
const MAX_DELAY_MS = 2_000;
const TESTS = 400;
const TESTS_A_MINUTE = 60;
const KEPT = 100;
const MAX_GROWTH_MIB = 200;

export const webhooksOfOthersDelayed: Attack = {
  name: 'webhooks-of-others-delayed',
  finding: 8,
  timed: true,
  what: `${TENANTS} tenants have ${ENDPOINTS} webhook endpoints each whose servers take a delivery and never answer; one of them sends ${TESTS} test deliveries.`,
  expected: {
    process: held(
      "another tenant's delivery arrives within 2 s, tests beyond 60 a minute are refused, and 100 rows are kept",
    ),
  },
  run: async (world) => {
    let isHanging = false;
    const receiver = await FakeServer.start(async () => ({ status: 204 }));
    receiver.injectFault({ kind: 'hang' }, { match: ({ path }) => isHanging && path.startsWith('/hostile') });
    try {
      const environment = { WEBHOOK_HOST_ALLOWLIST: receiver.origin };
      return await world.apart({ environment }, async (apart) => {
        const bystander = await Endpoint.create(await apart.createUser(), `${receiver.origin}/bystander`);
        const hostile = await Promise.all(
          Array.from({ length: TENANTS }, async () => hostileTenant(await apart.createUser(), receiver)),
        );
        isHanging = true;
        await Promise.all(hostile.flat().map((endpoint) => endpoint.redeliver()));
        const hanging = () => receiver.requests.filter(({ path }) => path === '/hostile').length;
        const before = hanging();
        await until(() => hanging() > before);
        const times = ResponseTimes.watch(apart);
        const [delays] = await Promise.all([
          delaysOf(bystander, receiver).finally(() => {
            isHanging = false;
          }),
          hang(hostile.flat(), () => isHanging),
        ]);
        const [[flooded] = []] = hostile;
        const statuses = flooded === undefined ? [] : await flooded.flood();
        const kept = (await flooded?.deliveries()) ?? [];
        const sent = statuses.filter((status) => status === 200).length;
        const slowest = Math.round(Math.max(...delays));
        const others = await times.end(MAX_GROWTH_MIB);
        return {
          held:
            others.held &&
            slowest < MAX_DELAY_MS &&
            sent > 0 &&
            sent <= TESTS_A_MINUTE &&
            statuses.every((status) => status === 200 || status === 429) &&
            kept.length <= KEPT,
          seen: `${delays.length} deliveries of the bystander within ${slowest} ms; ${sent} of ${TESTS} tests sent, ${kept.length} rows kept; ${others.seen}`,
        };
      });
    } finally {
      await receiver.close();
    }
  },
};

/** A webhook endpoint with one delivery, which is sent again as often as it takes. */
class Endpoint {
  private constructor(
    private readonly client: ApiClient,
    private readonly id: string,
    private readonly delivery: string,
  ) {}

  static async create(client: ApiClient, url: string): Promise<Endpoint> {
    const id = text(await client.post(PATH, { url }), 'id');
    return new Endpoint(client, id, text(await client.post(`${PATH}/${id}/test`), 'id'));
  }

  async redeliver(): Promise<void> {
    await this.client.post(`${PATH}/${this.id}/deliveries/${this.delivery}/redeliver`);
  }

  async isDelivered(): Promise<boolean> {
    const [newest] = await this.deliveries();
    return jsonText(newest, 'status') === 'delivered';
  }

  /** Ten test deliveries at a time. @returns the statuses of the responses */
  async flood(): Promise<number[]> {
    const statuses: number[] = [];
    while (statuses.length < TESTS) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => this.client.send('POST', `${PATH}/${this.id}/test`)),
      );
      statuses.push(...answers.map(({ status }) => status));
    }
    return statuses;
  }

  /** All of its deliveries, page by page. */
  async deliveries(): Promise<unknown[]> {
    const found: unknown[] = [];
    for (let page: string | null = ''; page !== null;) {
      const answer = await this.client.get(`${PATH}/${this.id}/deliveries?limit=100&page_id=${page}`);
      found.push(...jsonList(answer, 'items'));
      page = jsonText(answer, 'next_page_id') ?? null;
    }
    return found;
  }
}

async function hostileTenant(client: ApiClient, { origin }: FakeServer): Promise<Endpoint[]> {
  const endpoints: Endpoint[] = [];
  for (let count = 0; count < ENDPOINTS; count += 1) {
    endpoints.push(await Endpoint.create(client, `${origin}/hostile`));
  }
  return endpoints;
}

/** Keeps the servers of all endpoints busy. */
async function hang(endpoints: readonly Endpoint[], isWanted: () => boolean): Promise<void> {
  while (isWanted()) {
    await Promise.all(endpoints.map((endpoint) => endpoint.redeliver()));
    await wait(AGAIN_MS);
  }
}

async function delaysOf(endpoint: Endpoint, receiver: FakeServer): Promise<number[]> {
  const delays: number[] = [];
  // A second one of 48 s says no more than the first.
  while (delays.length < ROUNDS && (delays.at(-1) ?? 0) < MAX_DELAY_MS) {
    delays.push(await delayOf(endpoint, receiver));
    await wait(EVERY_MS);
  }
  return delays;
}

/** Milliseconds from the request to send a delivery until it arrives. */
async function delayOf(endpoint: Endpoint, receiver: FakeServer): Promise<number> {
  const arrived = () => receiver.requests.filter(({ path }) => path === '/bystander');
  const before = arrived().length;
  const began = performance.now();
  await endpoint.redeliver();
  await until(() => arrived().length > before);
  await until(async () => endpoint.isDelivered());
  return (arrived().at(-1)?.at ?? Infinity) - began;
}
