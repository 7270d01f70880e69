import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { githubSlug } from '../../docs/.vitepress/github-slug.js';
import { MetricsServer } from '../../src/observability/metrics.server.js';
import { EmptySandboxBackend } from '../fakes/empty-sandbox-backend.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { createTestApp } from '../support/create-test-app.js';
import { insertRunningSandbox } from '../support/followed-logs.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';
import { type ExportedMetric, parseExposition, parseQuery, type Selection } from './promql.js';

const ROOT = path.join(import.meta.dirname, '../..');
const RULES = path.join(ROOT, 'deploy/observability/prometheus');

/** Labels that Prometheus adds to what it scrapes. */
const TARGET_LABELS = ['job', 'instance'];
/** Values of these depend on what clients have asked for; those of the others all exist from the start. */
const OPEN_LABELS = ['route', 'status', ...TARGET_LABELS];

interface Rule {
  record?: string;
  alert?: string;
  expr: string;
  annotations?: { runbook_url: string };
}

interface Panel {
  title: string;
  targets?: { expr: string }[];
}

const read = (...names: string[]): string => readFileSync(path.join(ROOT, ...names), 'utf8');
const rules = (
  parse(read('deploy/observability/prometheus/slipway.rules.yml')) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);
const panels = (JSON.parse(read('deploy/observability/grafana/slipway.json')) as { panels: Panel[] }).panels;
const queries: [string, string][] = [
  ...rules.map(({ record, alert, expr }): [string, string] => [record ?? alert ?? '', expr]),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }): [string, string] => [title, expr])),
];

const backend = new EmptySandboxBackend();
backend.space = { freeBytes: 30, totalBytes: 100, freeFiles: null };

const service = useTestApp({ METRICS_PORT: '0' }, { sandboxBackend: backend });
let metrics: string;
let text: string;
let exported: Map<string, ExportedMetric>;

beforeAll(async () => {
  await service.as().get('/health/live').expect(200);
  metrics = `http://127.0.0.1:${service.app.get(MetricsServer).port ?? 0}/metrics`;
  await until(async () => {
    text = await (await fetch(metrics)).text();
    return /^slipway_sandbox_leftovers\{/m.test(text) && /^slipway_http_request_duration/m.test(text);
  });
  exported = parseExposition(text);
  // Rules have labels of what they are made of, as far as they keep them.
  for (const { record, expr } of rules) {
    if (record !== undefined) {
      exported.set(record, recorded(expr));
    }
  }
});

function recorded(expr: string): ExportedMetric {
  const { selections, grouping } = parseQuery(expr);
  const labels = new Map<string, Set<string>>();
  for (const label of grouping.filter((each) => each !== 'le')) {
    labels.set(
      label,
      new Set(selections.flatMap(({ metric }) => [...(exported.get(metric)?.labels.get(label) ?? [])])),
    );
  }
  return { labels };
}

/** What of a selection no series can fulfil. */
function problemsOf({ metric, matchers }: Selection): string[] {
  const labels = exported.get(metric)?.labels;
  if (labels === undefined) {
    return [`no metric ${metric}`];
  }
  return matchers.flatMap(({ label, operator, value }) => {
    if (OPEN_LABELS.includes(label) && (TARGET_LABELS.includes(label) || labels.has(label))) {
      return labels.has(label) && label === 'status' && !metric.startsWith('slipway_http')
        ? unknownValues(metric, label, operator, value)
        : [];
    }
    return labels.has(label)
      ? unknownValues(metric, label, operator, value)
      : [`no label ${label} of ${metric}`];
  });
}

function unknownValues(metric: string, label: string, operator: string, value: string): string[] {
  const known = exported.get(metric)?.labels.get(label) ?? new Set();
  const named = operator.endsWith('~') ? value.split('|') : [value];
  return named.filter((each) => !known.has(each)).map((each) => `no ${label}="${each}" of ${metric}`);
}

describe('deploy/observability', () => {
  it.each(queries)('asks for metrics, labels and values that are exported: %s: %s', (_title, expr) => {
    const { selections, grouping } = parseQuery(expr);
    const labels = new Set([
      ...TARGET_LABELS,
      ...selections.flatMap(({ metric }) => [...(exported.get(metric)?.labels.keys() ?? [])]),
    ]);

    expect(selections.length).toBeGreaterThan(0);
    expect(selections.flatMap(problemsOf)).toEqual([]);
    expect(grouping.filter((label) => !labels.has(label))).toEqual([]);
  });

  it('finds a metric, a label and a value that are not exported', () => {
    const problems = (expr: string): string[] => parseQuery(expr).selections.flatMap(problemsOf);

    expect(problems('rate(slipway_nothing[5m])')).toEqual(['no metric slipway_nothing']);
    expect(problems('slipway_jobs{colour="red"}')).toEqual(['no label colour of slipway_jobs']);
    expect(problems('slipway_jobs{state=~"waiting|asleep"}')).toEqual(['no state="asleep" of slipway_jobs']);
    expect(() => parseQuery('sum(')).toThrow('not PromQL');
  });

  it('shows every metric of the service on the dashboard', () => {
    const shown = panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => parseQuery(expr).selections.map(({ metric }) => familyOf(metric))),
    );
    const defined = [...text.matchAll(/^# TYPE (slipway_\w+) /gm)].map(([, name = '']) => name);

    expect(defined.filter((name) => !shown.includes(name))).toEqual([]);
  });

  it('says of every metric what to do with the figures of several replicas', () => {
    const texts = [...text.matchAll(/^# HELP (slipway_\w+) (.*)$/gm)];

    expect(texts.length).toBeGreaterThan(25);
    expect(
      texts.filter(
        ([, , help = '']) => !/(sum over replicas|maximum over replicas|Of this replica)\.$/.test(help),
      ),
    ).toEqual([]);
  });

  it('takes what is read from the database as a maximum, never as a sum over replicas', () => {
    const shared = [...text.matchAll(/^# HELP (slipway_\w+) .*maximum over replicas\.$/gm)].map(
      ([, name]) => name,
    );
    const summed = queries.filter(([, expr]) =>
      shared.some((name) => new RegExp(`(sum|count)( by \\([^)]*\\))? ?\\(${name}\\b`).test(expr)),
    );

    expect(summed).toEqual([]);
  });

  it('sends whoever gets an alert to a section of docs/operations/recover.md', () => {
    const page = 'docs/operations/recover.md';
    const links = [...read(page).matchAll(/^#+ (.*)$/gm)].map(
      ([, heading = '']) => `${page}#${githubSlug(heading)}`,
    );
    const sections = rules.flatMap(({ alert, annotations }) =>
      alert === undefined ? [] : [annotations?.runbook_url ?? alert],
    );

    expect(sections.length).toBeGreaterThan(0);
    expect(sections.filter((url) => !links.includes(url))).toEqual([]);
  });

  it('has rules that promtool accepts, and that fire when they should', () => {
    const run = (...args: string[]) => spawnSync('promtool', args, { cwd: RULES, encoding: 'utf8' });
    if (run('--version').error !== undefined) {
      process.stderr.write(
        'promtool is not installed (Debian: prometheus); its checks of the rules were not run\n',
      );
      expect(process.env.CI).not.toBe('true');
      return;
    }
    for (const args of [
      ['check', 'rules', 'slipway.rules.yml'],
      ['test', 'rules', 'slipway.rules.test.yml'],
    ]) {
      const { status, stdout, stderr } = run(...args);
      expect({ status, output: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, output: '' });
    }
  });
});

describe('metrics', () => {
  let agent: FakeConversationServer & { address: string };
  beforeAll(async () => {
    agent = await FakeConversationServer.start();
  });
  afterAll(() => agent.close());
  const lines = async (): Promise<string[]> => (await (await fetch(metrics)).text()).split('\n');

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
    backend.space = null;
    expect(await aboutDisk()).toEqual([]);
    backend.space = { freeBytes: 30, totalBytes: 100, freeFiles: null };

    expect(await aboutDisk()).toEqual([
      'slipway_sandbox_disk_bytes{state="free"} 30',
      'slipway_sandbox_disk_bytes{state="used"} 70',
    ]);
  });
});

/** The metric that a series of a histogram belongs to. */
function familyOf(series: string): string {
  return series.replace(/_(bucket|sum|count)$/, '');
}
