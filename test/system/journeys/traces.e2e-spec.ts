import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type CollectedSpan, FakeOtlpCollector } from '../../fakes/fake-otlp-collector.js';
import type { ServiceProcess } from '../../support/service-process.js';
import { type ApiClient, eventually } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message } from './support/script.js';

jest.setTimeout(300_000);

const START = 'POST /api/v1/app-conversations';
const JOB = /^process conversation-start$/;

describe('traces of a service whose sandboxes are processes', () => {
  let world: JourneyWorld;
  let collector: FakeOtlpCollector;
  let first: ServiceProcess;
  let user: ApiClient;

  const startReplica = async (instance: string): Promise<ServiceProcess> =>
    await world.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
      OTEL_EXPORTER_OTLP_HEADERS: `X-Key=${key}`,
      OTEL_RESOURCE_ATTRIBUTES: `service.instance.id=${instance}`,
      OTEL_BSP_SCHEDULE_DELAY: '50',
    });
  let key: string;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    key = world.secrets.plant('collector key');
    collector = await FakeOtlpCollector.start();
    first = await startReplica('first');
    user = await world.createUser();
    await world.giveToken(user);
    await world.git.commit('octo/app', 'main', { 'README.md': 'hello\n' });
  });

  afterAll(async () => {
    await world.close();
    await collector.close();
  });

  /** The spans of the start that began last. */
  const lastStart = (): CollectedSpan[] => {
    const traceId = collector.named(START).at(-1)?.traceId;
    return collector.spans.filter((span) => span.traceId === traceId);
  };

  it('lead from the request into the sandbox', async () => {
    await user.started({ selected_repository: 'octo/app', ...message('hello') });
    await eventually(() => lastStart().some(({ name, failed }) => JOB.test(name) && !failed));

    const trace = lastStart();
    expect(trace.filter(({ failed }) => failed)).toEqual([]);
    const [agentServer, service] = ['slipway-agent-server', 'slipway'].map((program) =>
      trace.filter((span) => span.service === program).map(({ name }) => name),
    );
    expect(service).toEqual(
      expect.arrayContaining([START, 'start sandbox', 'launch sandbox program', 'wait for agent server']),
    );
    expect(agentServer).toEqual(
      expect.arrayContaining([
        'agent server start',
        'prepare repository',
        'clone repository',
        'check out files',
        'create conversation',
      ]),
    );
    const byId = new Map(trace.map((span) => [span.spanId, span]));
    expect(trace.filter(({ parentId }) => !byId.has(parentId)).map(({ name }) => name)).toEqual([START]);
    const started = trace.find(({ name }) => name === 'agent server start');
    expect(byId.get(started?.parentId ?? '')?.name).toBe('wait for agent server');
  });

  it('go on in the replica that takes a start over', async () => {
    const second = await startReplica('second');
    const [here, there] = [user.at(first.url), user.at(second.url)];
    const task = await here.start(message('hello'));
    await world.stop(first);
    await there.ready(task);

    const done = () =>
      lastStart().find(({ name, instance, failed }) => JOB.test(name) && instance === 'second' && !failed);
    await eventually(() => done() !== undefined);
    const trace = lastStart();
    expect(trace.find(({ name }) => name === START)?.instance).toBe('first');
    expect(trace.filter(({ parentId }) => parentId === '').map(({ name }) => name)).toEqual([START]);
  });

  it('hold no secret, and sandboxes know nothing of the collector', async () => {
    const { sandboxId } = await user.started(message('hello'));
    const { output } = await user.run(sandboxId, 'env; tr "\\0" "\\n" < /proc/1/environ');

    expect(output).toMatch(/^PATH=/m);
    expect(output).not.toMatch(/OTEL_|traceparent/i);
    const text = JSON.stringify(collector.spans, (_name, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    expect(world.secrets.in(text)).toEqual([]);
    expect(world.secrets.in(JSON.stringify([...collector.metrics.values()]))).toEqual([]);
    const sent = collector.server.requests.map(({ headers }) => headers['x-key']);
    expect(new Set(sent)).toEqual(new Set([key]));
  });
});
