import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MetricsServer } from '../../src/observability/metrics.server.js';
import { EmptySandboxBackend } from '../fakes/empty-sandbox-backend.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { createTestApp } from '../support/create-test-app.js';
import { insertRunningSandbox } from '../support/followed-logs.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

let agent: FakeConversationServer & { address: string };
let metrics: string;
const backend = new EmptySandboxBackend();

const service = useTestApp({ METRICS_PORT: '0' }, { sandboxBackend: backend });

beforeAll(async () => {
  agent = await FakeConversationServer.start();
  metrics = `http://127.0.0.1:${service.app.get(MetricsServer).port ?? 0}/metrics`;
});

afterAll(async () => {
  await agent.close();
});

async function lines(): Promise<string[]> {
  return (await (await fetch(metrics)).text()).split('\n');
}

describe('metrics', () => {
  it('are served on a port of their own', async () => {
    const { status, headers } = await fetch(metrics);

    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect((await fetch(`${service.url}/metrics`, { headers: service.user.headers })).status).toBe(404);
    expect((await fetch(metrics, { method: 'POST' })).status).toBe(404);
    expect((await fetch(metrics.replace('/metrics', '/api/settings'))).status).toBe(404);
  });

  it('name their variable when the port is taken', async () => {
    const { port } = new URL(metrics);

    await expect(createTestApp({ METRICS_PORT: port })).rejects.toThrow(/^METRICS_PORT: .*EADDRINUSE/);
  });

  it('count requests by route, whatever the address', async () => {
    const ask = (path: string, method = 'GET') =>
      fetch(`${service.url}${path}`, { method, headers: service.user.headers });
    await ask('/api/v1/sandboxes/search');
    await ask('/api/v1/conversation/0123456789abcdef0123456789abcdef/events/count');
    await ask('/nobody/knows', 'DELETE');
    await ask('/api/v1/sandboxes/nobodys4711/agent-server/alive');
    const counted = [
      'method="GET",route="/api/v1/sandboxes/search",status="200"',
      'method="GET",route="/api/v1/conversation/:id/events/count",status="404"',
      'method="DELETE",route="none",status="404"',
      'method="GET",route="/api/v1/sandboxes/:id/agent-server",status="404"',
    ].map((labels) => `slipway_http_request_duration_seconds_count{${labels}} 1`);
    // Counted once a response is sent, which may be after it has arrived.
    await until(async () => {
      const found = await lines();
      return counted.every((line) => found.includes(line));
    });

    const found = (await lines()).join('\n');
    expect(found).not.toContain('nobodys4711');
    expect(found).not.toContain('0123456789abcdef');
  });

  it('show what is in the database at that moment', async () => {
    expect(await lines()).not.toContain('slipway_sandboxes{status="RUNNING",backend="process"} 1');
    await insertRunningSandbox(service, service.user.id, agent);

    expect(await lines()).toContain('slipway_sandboxes{status="RUNNING",backend="process"} 1');
  });

  it('count sandboxes once a minute where there are more than 10,000', async () => {
    const missing = async () =>
      (await lines())
        .find((line) => line.includes('{status="MISSING",backend="docker"}'))
        ?.split(' ')
        .at(-1);
    await service.dataSource.query(
      `INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, last_activity_at)
       SELECT 'many' || n, $1, 'slipway', 'MISSING', 'docker', 'absent-host', '', decode(md5('many' || n), 'hex'), now()
       FROM generate_series(1, 10001) AS n`,
      [service.user.id],
    );
    expect(await missing()).toBe('10001');

    await service.dataSource.query(`DELETE FROM sandboxes WHERE host_id = 'absent-host' AND id <> 'many1'`);
    expect(await missing()).toBe('10001');
    service.clock.advance(60_000);
    expect(await missing()).toBe('1');
  });

  it('show how many removed sandboxes have files left', async () => {
    const line = (count: number) => `slipway_sandbox_leftovers{backend="process"} ${count}`;
    await until(async () => (await lines()).includes(line(0)));
    backend.leftovers = 2;
    await until(async () => !(await lines()).includes(line(0)));
    expect(await lines()).toContain(line(2));
  });

  it('show how full the disk of sandboxes is, where that is known', async () => {
    const aboutDisk = async () =>
      (await lines()).filter((line) => line.startsWith('slipway_sandbox_disk_bytes{'));
    expect(await aboutDisk()).toEqual([]);
    backend.space = { freeBytes: 30, totalBytes: 100, freeFiles: null };

    expect(await aboutDisk()).toEqual([
      'slipway_sandbox_disk_bytes{state="free"} 30',
      'slipway_sandbox_disk_bytes{state="used"} 70',
    ]);
  });
});
