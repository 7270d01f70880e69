import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { EGRESS_PATHS, type ReportedCall } from '@slipway/egress-proxy/protocol.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import {
  MAX_MODELS,
  ModelUsage,
  ModelUsageRepository,
  OTHER_MODELS,
} from '../../src/usage/model-usage.repository.js';
import { FollowedConversationRepository } from '../../src/v1/events/followed-conversation.repository.js';
import { PROXY_KEY } from '../../src/v1/egress/egress-proxy.keys.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import type { TestUser } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const app = useTestApp(
  { SANDBOX_CREDENTIALS: 'outside', SANDBOX_NETWORK: 'isolated' },
  { sandboxBackend: new InProcessSandboxBackend() },
);

const CALL: ReportedCall = {
  number: 1,
  at: '2026-11-30T10:00:00.000Z',
  host: 'api.openai.com',
  model: 'openai/gpt-4o',
  asked: 'gpt-4o',
  answeredBy: 'gpt-4o-2024-08-06',
  input: 1_000_000,
  output: 100_000,
  cacheRead: 0,
  cacheWrite: 0,
  cost: null,
};
const said = (text: string): object => ({
  initial_message: { role: 'user', content: [{ type: 'text', text }], run: true },
});

/** By the catalogue: 2.50 and 10 USD for a million. */
const COST = 2.5 + 1;

describe('calls of models that proxies report', () => {
  let user: TestUser;
  let starts: StartsClient;
  let sandbox: string;
  let id: string;
  let proxy: string;

  const report = async (calls: object[], from = proxy, of = sandbox): Promise<void> => {
    const key = app.app.get(SecretCipher, { strict: false }).derive(PROXY_KEY);
    await request(app.url)
      .post(EGRESS_PATHS.reports)
      .set({ authorization: `Bearer ${key}` })
      .send({ proxy: from, reports: [{ sandbox: of, requests: [], calls }] })
      .expect(204);
  };
  const rows = async (): Promise<ModelUsage[]> =>
    await app.dataSource
      .getRepository(ModelUsage)
      .find({ where: { userId: user.id }, order: { day: 'ASC', model: 'ASC' } });
  const start = async (
    message: string | null = null,
    by = starts,
  ): Promise<{ id: string; sandbox: string }> => {
    const task = await by.reached(await by.start(message === null ? {} : said(message)), 'READY');
    return { id: task.appConversationId ?? '', sandbox: task.sandboxId ?? '' };
  };
  const atWork = async (metrics: object): Promise<void> => {
    const followed = app.app.get(FollowedConversationRepository, { strict: false });
    const known = { model_name: 'm', accumulated_cost: 0, accumulated_token_usage: null };
    await followed.updateState(id, {
      executionStatus: 'running',
      metrics: { ...known, max_budget_per_task: null, ...metrics },
    });
  };
  const shown = async (): Promise<{
    metrics: { accumulated_cost: number; max_budget_per_task: number | null };
    execution_status: string;
  }> => {
    const { body } = await request(app.url)
      .get('/api/v1/app-conversations')
      .query({ ids: id })
      .set(user.headers)
      .expect(200);
    return body[0];
  };

  const withModel = async (): Promise<TestUser> => {
    const made = await app.createUser();
    const model = { llm_model: 'openai/gpt-4o', llm_api_key: 'sk-abcdefghijklmnop0123456789' };
    await new StartsClient(app, made).settings(model);
    return made;
  };

  beforeAll(async () => {
    user = await withModel();
    starts = new StartsClient(app, user);
  });
  beforeEach(async () => {
    await app.dataSource.query('DELETE FROM model_usage');
    ({ id, sandbox } = await start());
    proxy = randomUUID();
  });

  it('are counted once each, by day and model, whoever repeats the report', async () => {
    await report([CALL, { ...CALL, number: 2, at: '2026-11-30T23:59:59.999Z' }]);
    await Promise.all([
      report([CALL, { ...CALL, number: 2 }, { ...CALL, number: 3, at: '2026-12-01T00:00:00.000Z' }]),
      report([CALL, { ...CALL, number: 2 }, { ...CALL, number: 3, at: '2026-12-01T00:00:00.000Z' }]),
    ]);
    await report(
      [{ ...CALL, at: '2026-12-01T00:00:00.000Z', asked: 'gpt-4o-mini', answeredBy: null }],
      randomUUID(),
    );
    expect(await rows()).toMatchObject([
      {
        conversationId: id,
        day: '2026-11-30',
        model: 'openai/gpt-4o',
        source: 'proxy',
        calls: '2',
        inputTokens: '2000000',
        outputTokens: '200000',
        cost: 2 * COST,
      },
      { day: '2026-12-01', model: 'gpt-4o-mini', calls: '1', cost: 0.15 + 0.06 },
      { day: '2026-12-01', model: 'openai/gpt-4o', calls: '1', cost: COST },
    ]);
  });

  it('have the cost that their answer tells, or none where no price is known', async () => {
    const unknown = { model: 'openai/no-such-model', asked: 'no-such-model', answeredBy: null };
    await report([
      { ...CALL, cost: 0.25 },
      { ...CALL, ...unknown, number: 2 },
    ]);
    expect(await rows()).toMatchObject([
      { model: 'openai/gpt-4o', cost: 0.25, unpricedTokens: '0' },
      { model: 'openai/no-such-model', cost: 0, unpricedTokens: '1100000' },
    ]);
  });

  it('stay on the bill when their conversation is deleted, and go with their user', async () => {
    await report([CALL]);
    await request(app.url).delete(`/api/v1/app-conversations/${id}`).set(user.headers).expect(200);
    expect(await rows()).toHaveLength(1);
  });

  it('raise what the conversation has cost, of which its sandbox can tell more, and not less', async () => {
    await atWork({ accumulated_cost: 0.5 });
    await report([CALL]);
    expect((await shown()).metrics.accumulated_cost).toBe(COST);
    await atWork({ accumulated_cost: 0.75 });
    expect((await shown()).metrics.accumulated_cost).toBe(COST);
    await atWork({ accumulated_cost: 100 });
    expect((await shown()).metrics.accumulated_cost).toBe(100);
    expect((await rows()).map(({ source, cost }) => [source, cost])).toEqual(
      expect.arrayContaining([
        ['proxy', COST],
        ['sandbox', 0.5 + 100 - COST],
      ]),
    );
  });

  it('end the run of an agent that has spent its budget, whatever it counts itself', async () => {
    await starts.settings({ max_budget_per_task: 4 });
    // Works until it is told to pause, and counts nothing.
    ({ id, sandbox } = await start('step'));
    await until(async () => {
      const { execution_status: status, metrics } = await shown();
      return status === 'running' && metrics?.max_budget_per_task === 4;
    });
    await report([CALL]);
    expect((await shown()).execution_status).toBe('running');
    await report([{ ...CALL, number: 2 }]);
    await until(async () => (await shown()).execution_status === 'paused');
    const { body } = await request(app.url)
      .get(`/api/v1/conversation/${id}/events/search`)
      .query({ kind__eq: 'ConversationErrorEvent' })
      .set(user.headers)
      .expect(200);
    expect(body.items).toMatchObject([
      { code: 'MaxBudgetReached', detail: expect.stringContaining('7 USD') },
    ]);
  });

  it('go with their conversation to another user, where calls of a sandbox without one do not', async () => {
    const [leaver, heir] = [await withModel(), await app.createUser()];
    const { sandbox: of } = await start(null, new StartsClient(app, leaver));
    const { id: bare } = await new SandboxesClient(app.url, leaver).running();
    await report([CALL], proxy, of);
    await report([CALL], proxy, bare);
    await request(app.url)
      .delete(`/api/v1/users/${leaver.id}`)
      .query({ hand_over_to: heir.id })
      .set(app.admin.headers)
      .expect(204);
    await report([{ ...CALL, number: 2 }], proxy, of);
    const found = await app.dataSource.getRepository(ModelUsage).findBy({ userId: heir.id });
    expect(found).toMatchObject([{ calls: '2', cost: 2 * COST }]);
  });

  it('have so many models of a conversation and day', async () => {
    const invented = Array.from({ length: MAX_MODELS + 10 }, (_, index) => ({
      ...CALL,
      number: index + 1,
      asked: `invented-${index}`,
    }));
    await report(invented.slice(0, 5));
    await report(invented);
    const found = await rows();
    expect(found).toHaveLength(MAX_MODELS + 1);
    expect(found.find(({ model }) => model === OTHER_MODELS)).toMatchObject({ calls: '10' });
    // Users may switch models as often as they like.
    for (const cost of invented.keys()) {
      await app.dataSource.query('UPDATE app_conversations SET llm_model = $2 WHERE id = $1', [
        id,
        `m-${cost}`,
      ]);
      await atWork({ accumulated_cost: 100 + cost });
    }
    expect(await rows()).toHaveLength(2 * (MAX_MODELS + 1));
  });

  it('count for a sandbox without a conversation, and not for one that is gone', async () => {
    const { id: bare } = await new SandboxesClient(app.url, user).running();
    await report([CALL], proxy, bare);
    await report([CALL], proxy, 'no-such-sandbox');
    expect(await rows()).toMatchObject([{ calls: '1' }]);
  });

  it('are forgotten after so many days', async () => {
    await report([
      { ...CALL, at: '2020-01-01T00:00:00.000Z' },
      { ...CALL, number: 2, at: new Date().toISOString() },
    ]);
    const usage = app.app.get(ModelUsageRepository, { strict: false });
    expect(await usage.prune(10)).toBe(1);
    expect(await usage.prune(10)).toBe(0);
    expect(await rows()).toHaveLength(1);
  });
});
