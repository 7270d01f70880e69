import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { FakeKubernetes } from '../../../../test/fakes/fake-kubernetes.js';
import { until } from '../../../../test/support/until.js';
import { useCluster } from '../../../../test/support/use-cluster.js';
import { useFolder } from '../../../../test/support/use-folder.js';
import type { ApiServer } from './api-server.js';

const POD = '/api/v1/namespaces/agents/pods/one';
const SIGNAL = new AbortController().signal;
const NOT_THE_DEADLINE = [
  'nextTick',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
  'performance',
  'Date',
] as const;

describe('the credentials of an API server', () => {
  const folder = useFolder();
  const test = useCluster();
  let cluster: FakeKubernetes;
  let file: string;
  let port: number;
  let api: ApiServer;

  beforeEach(() => {
    ({ cluster, port, api, kubeconfig: file } = test);
    cluster.put(POD, { metadata: { name: 'one' } });
  });

  /** A plugin that `aws`, `gcloud` and others bring for a kubeconfig. */
  const runsPlugin = async (script: string) => {
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'sh',
      args: ['-c', script],
      interactiveMode: 'Never',
    };
    await writeFile(file, FakeKubernetes.kubeconfig(port, '', { exec }));
  };
  const credential = (token: string) =>
    JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token },
    });

  const requests: [string, () => Promise<unknown>][] = [
    ['a call', async () => await api.call(POD, { patienceMs: 0 })],
    ['a text', async () => await api.text(POD)],
    ['a watch', async () => await api.stream(POD, {}, SIGNAL).next()],
    // The fake opens no WebSocket, but says so only to those whom it knows.
    ['a WebSocket', async () => await expect(api.webSocket(POD, [])).rejects.toMatchObject({ status: 200 })],
  ];

  it.each(requests)('are read again, and %s is sent again', async (_, send) => {
    await api.call(POD);
    cluster.token = 'the-next';
    await writeFile(file, FakeKubernetes.kubeconfig(port, cluster.token));
    await send();
    expect(cluster.requests).toHaveLength(3);
  });

  it.each(requests.slice(0, 3))('are refused twice, and no more of %s is sent', async (_, send) => {
    cluster.token = 'the-next';
    await expect(send()).rejects.toMatchObject({ status: 401 });
    expect(cluster.requests).toHaveLength(2);
  });

  it('are read again although the API server was away before', async () => {
    await api.call(POD);
    cluster.fail(
      () => {
        cluster.token = 'the-next';
        return true;
      },
      { kind: 'status', status: 503 },
    );
    await writeFile(file, FakeKubernetes.kubeconfig(port, 'the-next'));
    await api.call(POD);
    expect(cluster.requests).toHaveLength(4);
  });

  it('come from one run of a plugin for all requests that wait for them, until they are refused', async () => {
    const runs = path.join(folder.path, 'runs');
    const token = path.join(folder.path, 'token');
    await writeFile(token, credential('a-token'));
    await runsPlugin(`echo run >> ${runs}; cat ${token}`);
    const five = async () => await Promise.all(Array.from({ length: 5 }, () => api.call(POD)));
    await five();
    expect(await readFile(runs, 'utf8')).toBe('run\n');
    cluster.token = 'the-next';
    await writeFile(token, credential(cluster.token));
    await five();
    expect(await readFile(runs, 'utf8')).toBe('run\nrun\n');
  });

  it.each([
    ['echo log in first >&2; exit 1', /no credentials for it can be had: log in first/],
    ['echo nothing', /no credentials for it can be had: [^]*JSON/],
  ])('say what is wrong with a plugin: %s', async (script, problem) => {
    await runsPlugin(script);
    await expect(api.call(POD, { patienceMs: 0 })).rejects.toThrow(problem);
    expect(cluster.requests).toEqual([]);
  });

  it('are not waited for without end where a plugin asks somebody to log in', async () => {
    const id = path.join(folder.path, 'id');
    await runsPlugin(`echo $$ > ${id}; exec sleep 600`);
    jest.useFakeTimers({ doNotFake: [...NOT_THE_DEADLINE] });
    const sent = api.call(POD, { patienceMs: 0 }).catch((error: unknown) => error);
    await jest.advanceTimersByTimeAsync(15_000);
    jest.useRealTimers();
    expect(String(await sent)).toContain('no credentials for it can be had: they were not there after 15 s');
    await until(async () => (await readFile(id, 'utf8').catch(() => '')) !== '');
    spawnSync('kill', [(await readFile(id, 'utf8')).trim()]);
  });
});
