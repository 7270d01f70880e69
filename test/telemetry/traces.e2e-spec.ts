import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { jsonText } from '@slipway/common/json-access.js';
import { type CollectedSpan, FakeOtlpCollector } from '../fakes/fake-otlp-collector.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import type { TestUser } from '../support/create-test-app.js';
import { StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const CALLER_SPAN = '00f067aa0ba902b7';
const START = '/api/v1/app-conversations';
const MODEL_KEY = 'sk-traced-secret-4217';
const CLIENT = 3;

describe('the trace of a start', () => {
  let collector: FakeOtlpCollector;
  const backend = new InProcessSandboxBackend();
  const { hosts, app } = useGitHosts(
    async () => {
      collector = await FakeOtlpCollector.start();
      return {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
        OTEL_BSP_SCHEDULE_DELAY: '20',
        OTEL_METRICS_EXPORTER: 'none',
      };
    },
    { sandboxBackend: backend },
  );
  let user: TestUser;

  beforeEach(async () => {
    user = await app.createUser();
    await new StartsClient(app, user).settings({ llm_model: 'openai/gpt-4o', llm_api_key: MODEL_KEY });
  });

  afterAll(() => collector.close());

  /** The spans of the caller's trace, once the job of its start has ended, and that of its sandbox. */
  async function traceOf(headers: Record<string, string>, body: object): Promise<CollectedSpan[]> {
    const { body: task } = await request(app.url)
      .post(START)
      .set({ ...user.headers, ...headers })
      .send(body)
      .expect(200);
    await new StartsClient(app, user).reached({ id: jsonText(task, 'id') ?? '' }, 'READY');
    const hasEnded = (job: string) =>
      collector.spans.some(({ name, traceId }) => name === job && isTrace(traceId));
    const server = () =>
      collector.named(`POST ${START}`).find(({ attributes }) => attributes['slipway.request.id'] === id);
    const id = headers['X-Request-Id'];
    const isTrace = (traceId: string) => traceId === server()?.traceId;
    await until(() => ['process conversation-start', 'start sandbox'].every(hasEnded));
    return collector.spans.filter(({ traceId }) => isTrace(traceId));
  }

  it('is one tree of request, statements, job, steps, sandbox, agent server and git, below the span of the caller', async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const trace = await traceOf(
      // The caller does not decide that it is kept.
      { traceparent: `00-${traceId}-${CALLER_SPAN}-00`, 'X-Request-Id': 'one-trace' },
      { initial_message: { role: 'user', content: [{ type: 'text', text: 'hello' }] } },
    );

    expect(new Set(trace.map((span) => span.traceId))).toEqual(new Set([traceId]));
    const names = trace.map(({ name, service }) => `${service}: ${name}`);
    expect(names).toEqual(
      expect.arrayContaining([
        `slipway: POST ${START}`,
        'slipway: sandbox_insert',
        'slipway: process conversation-start',
        'slipway: start step WORKING',
        'slipway: start step WAITING_FOR_SANDBOX',
        'slipway: start step PREPARING_REPOSITORY',
        'slipway: start step STARTING_CONVERSATION',
        'slipway: start sandbox',
        'slipway: launch sandbox program',
        'slipway: wait for agent server',
        'slipway: POST /api/conversations',
        'slipway-agent-server: POST /api/conversations',
        'slipway-agent-server: create conversation',
      ]),
    );
    expect(trace.filter(({ failed }) => failed)).toEqual([]);
    const byId = new Map(trace.map((span) => [span.spanId, span]));
    const orphans = trace.filter(({ parentId }) => !byId.has(parentId));
    expect(new Set(orphans.map(({ name, parentId }) => `${name} < ${parentId}`))).toEqual(
      new Set([`POST ${START} < ${CALLER_SPAN}`]),
    );
    const parentOf = (name: string) =>
      byId.get(trace.find((span) => span.name === name)?.parentId ?? '')?.name;
    expect([
      parentOf('process conversation-start'),
      parentOf('start sandbox'),
      parentOf('start step WORKING'),
      parentOf('create conversation'),
    ]).toEqual([`POST ${START}`, `POST ${START}`, 'process conversation-start', 'POST /api/conversations']);
    // What an agent server says is within the call that it describes.
    const call = trace.find(({ name, kind }) => name === 'POST /api/conversations' && kind === CLIENT);
    const inside = trace.filter(({ service }) => service === 'slipway-agent-server');
    const create = inside.find(({ name }) => name === 'create conversation');
    expect(inside.length).toBeGreaterThan(2);
    expect(create?.startNs).toBeGreaterThanOrEqual((call?.startNs ?? 0n) - 1_000_000n);
    expect(create?.endNs).toBeLessThanOrEqual((call?.endNs ?? 0n) + 1_000_000n);
  });

  it('holds no secret, no id of a user and nothing that users wrote, and begins anew where a caller sends nonsense', async () => {
    await app.as(user).post('/api/add-git-providers?token=query-secret-4217', hosts.tokens).expect(200);
    await app.as(user).get('/api/user/suggested-tasks').expect(200);
    await app.as(user).post('/api/secrets', { name: 'MY_SECRET', value: 'custom-secret-4217' }).expect(201);
    const trace = await traceOf(
      { traceparent: `00-${'0'.repeat(32)}-${CALLER_SPAN}-01`, 'X-Request-Id': 'secrets' },
      {
        initial_message: { role: 'user', content: [{ type: 'text', text: 'words of 4217' }] },
        secrets: { PLANTED: 'planted-secret-4217' },
        title: 'title 4217',
      },
    );
    const [sandbox] = await new StartsClient(app, user).sandboxes();
    const key = backend.boxes.get(sandbox?.id ?? '')?.launch.sessionKey ?? 'no key';

    const text = JSON.stringify(collector.spans, (_name, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    expect(trace.length).toBeGreaterThan(10);
    expect(trace.find(({ name }) => name === `POST ${START}`)).toMatchObject({
      parentId: '',
      attributes: {
        'http.request.method': 'POST',
        'http.route': START,
        'http.response.status_code': 200,
        'slipway.request.id': 'secrets',
        'user.hash': expect.stringMatching(/^[0-9a-f]{16}$/),
      },
    });
    // Ids and times are digits too.
    expect(text).not.toMatch(/(secret|token|words of|title|octocat|tanuki|bucket).?4217/);
    expect(text).not.toContain(key);
    expect(text).not.toContain(user.key);
    expect(text).not.toContain(user.id);
  });

  it('measures requests to git hosts by their host alone, and tells them nothing of the trace', async () => {
    await app.as(user).post('/api/add-git-providers', hosts.tokens).expect(200);
    hosts.clearFaults();
    await request(app.url)
      .get('/api/user/suggested-tasks')
      .set({ ...user.headers, 'X-Request-Id': 'tasks' })
      .expect(200);

    const taskRequest = () =>
      collector.spans.find(({ attributes }) => attributes['slipway.request.id'] === 'tasks');
    await until(() => taskRequest() !== undefined);
    const calls = collector.spans.filter(
      ({ traceId, attributes }) => traceId === taskRequest()?.traceId && 'server.address' in attributes,
    );
    expect(calls.length).toBe(
      [hosts.github, hosts.gitlab, hosts.bitbucket].flatMap(({ requests }) => requests).length,
    );
    expect(calls[0]).toMatchObject({
      kind: CLIENT,
      attributes: { 'server.address': '127.0.0.1', 'http.response.status_code': 200 },
    });
    const sent = [hosts.github, hosts.gitlab, hosts.bitbucket].flatMap(({ requests }) => requests);
    expect(sent.filter(({ headers }) => 'traceparent' in headers)).toEqual([]);
  });

  it('names requests that failed, and leaves probes out', async () => {
    await app.as().get('/health/live').expect(200);
    await request(app.url).get('/api/v1/sandboxes/search').set('X-Request-Id', 'refused').expect(401);

    await until(() =>
      collector.spans.some(({ attributes }) => attributes['slipway.request.id'] === 'refused'),
    );
    const refused = collector.spans.find(({ attributes }) => attributes['slipway.request.id'] === 'refused');
    expect(refused).toMatchObject({ failed: false, attributes: { 'http.response.status_code': 401 } });
    expect(refused?.attributes).not.toHaveProperty('user.hash');
    expect(collector.spans.filter(({ name }) => name.includes('health'))).toEqual([]);
  });

  it('measures nothing that the service does by itself', () => {
    const roots = collector.spans.filter(({ parentId }) => parentId === '').map(({ name }) => name);

    expect(new Set(roots.map((name) => name.split(' ')[0]))).toEqual(new Set(['GET', 'POST']));
  });
});
