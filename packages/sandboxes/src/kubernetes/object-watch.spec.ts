import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { jsonText } from '@slipway/common/json-access.js';
import { until } from '../../../../test/support/until.js';
import { useCluster } from '../../../../test/support/use-cluster.js';
import { ObjectWatch } from './object-watch.js';

const PODS = '/api/v1/namespaces/agents/pods';
const LABELS = { app: 'agent' };

const isWatch = (request: string) => request.endsWith('?watch');

describe('ObjectWatch', () => {
  const test = useCluster();
  let watch: ObjectWatch<string>;

  beforeEach(() => {
    const read = (object: unknown): string | null => jsonText(object, 'metadata', 'name');
    const options = { path: PODS, labelSelector: 'app=agent', read, onChange: () => undefined };
    watch = new ObjectWatch(test.api, options);
  });

  afterEach(() => watch.stop());

  const put = (name: string) => test.cluster.put(`${PODS}/${name}`, { metadata: { name, labels: LABELS } });

  it('lists thousands in pages', async () => {
    const names = Array.from({ length: 450 }, (_, index) => `pod-${index}`);
    names.forEach(put);
    watch.start();
    expect([...(await watch.objects()).keys()]).toEqual(names);
    expect(test.cluster.requests.filter((request) => !isWatch(request))).toHaveLength(3);
  });

  it.each([
    ['ended at once', { kind: 'empty' }],
    ['cut', { kind: 'reset' }],
    ['refused', { kind: 'status', status: 403, reason: 'Forbidden' }],
  ] as const)('lists less and less often while each watch is %s, and has its list', async (_, fault) => {
    put('one');
    test.cluster.fail(isWatch, fault, 3);
    const begunAt = performance.now();
    watch.start();
    await until(async () => (await watch.objects()).size === 1 && test.cluster.watching === 1);
    // At least half of 100, 200 and 400 ms; each timer may be early by some.
    expect(performance.now() - begunAt).toBeGreaterThanOrEqual(340);
    put('two');
    await until(async () => (await watch.objects()).size === 2);
  });
});
