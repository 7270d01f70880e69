import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type CollectedSpan, FakeOtlpCollector } from '../../fakes/fake-otlp-collector.js';
import type { ServiceProcess } from '../../support/service-process.js';
import { until } from '../../support/until.js';
import type { ApiClient } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message } from './support/script.js';

const START = 'POST /api/v1/app-conversations';
const JOB = /^process conversation-start$/;
const OF_SERVICE = [START, 'start sandbox', 'launch sandbox program', 'wait for agent server'];
const OF_SANDBOX = [
  'agent server start',
  'prepare repository',
  'clone repository',
  'check out files',
  'create conversation',
];

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
    const namesOf = (program: string): string[] =>
      lastStart()
        .filter(({ service }) => service === program)
        .map(({ name }) => name);
    const rootsOf = (spans: CollectedSpan[]): string[] => {
      const known = new Set(spans.map(({ spanId }) => spanId));
      return spans.filter(({ parentId }) => !known.has(parentId)).map(({ name }) => name);
    };
    // They arrive in several batches, a parent after its children.
    await until(() => {
      const spans = lastStart();
      return (
        spans.some(({ name, failed }) => JOB.test(name) && !failed) &&
        [...OF_SERVICE, ...OF_SANDBOX].every((wanted) => spans.some(({ name }) => name === wanted)) &&
        rootsOf(spans).length === 1
      );
    });

    const trace = lastStart();
    expect(trace.filter(({ failed }) => failed)).toEqual([]);
    expect(namesOf('slipway')).toEqual(expect.arrayContaining(OF_SERVICE));
    expect(namesOf('slipway-agent-server')).toEqual(expect.arrayContaining(OF_SANDBOX));
    const byId = new Map(trace.map((span) => [span.spanId, span]));
    expect(rootsOf(trace)).toEqual([START]);
    const started = trace.find(({ name }) => name === 'agent server start');
    expect(byId.get(started?.parentId ?? '')?.name).toBe('wait for agent server');
  });

  it('go on in the replica that takes a start over', async () => {
    const second = await startReplica('second');
    const [here, there] = [user.at(first.url), user.at(second.url)];
    world.git.gate.close();
    const task = await here.start({ selected_repository: 'octo/app', ...message('hello') });
    await until(() => world.git.gate.waiting > 0);
    await world.stop(first);
    world.git.gate.open();
    await there.ready(task);

    const done = () =>
      lastStart().find(({ name, instance, failed }) => JOB.test(name) && instance === 'second' && !failed);
    await until(() => done() !== undefined);
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
