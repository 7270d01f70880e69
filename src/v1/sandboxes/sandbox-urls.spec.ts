import { describe, expect, it } from '@jest/globals';
import { HttpAdapterHost } from '@nestjs/core';
import { parseConfig } from '../../config/load-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import {
  parseAgentServerLabel,
  parseHostLabel,
  SandboxUrls,
  toAgentServerLabel,
  toHostLabels,
} from './sandbox-urls.js';

describe('host names of ports', () => {
  it.each([
    ['3Yv5mQ8hZk2LrTnBx7Wc0d', 'WORKER_1'],
    ['zzzzzzzzzzzzzzzzzzzzzz', 'WORKER_99'],
    ['0000000000000000000000', 'DEV_SERVER_3'],
    ['0', 'APP_1'],
    ['00', 'APP_1'],
  ])('%s %s', (sandboxId, name) => {
    const [label = ''] = toHostLabels(sandboxId, [name]);
    expect(label).toMatch(/^[a-z0-9-]{1,63}$/);
    expect(parseHostLabel(label)).toEqual({ sandboxId, name });
  });

  it('tells ids apart that differ in case or in leading zeros only', () => {
    const labels = ['a', 'A', '0a', '00a'].flatMap((sandboxId) => toHostLabels(sandboxId, ['APP_1']));
    expect(new Set(labels).size).toBe(4);
  });

  it('reads what it is to stay as it is', () => {
    // Addresses are kept in bookmarks.
    expect(toHostLabels('Ab1', ['WORKER_1', 'DEV_SERVER_2'])).toEqual(['worker-1-5zbr', 'dev-server-2-5zbr']);
  });

  it.each(['', 'www', 'worker-1', 'worker-1-', 'worker-1-0', 'worker-1-1', 'worker-01-abcd', 'worker-1-a.b'])(
    'none: %s',
    (label) => {
      expect(parseHostLabel(label)).toBeNull();
    },
  );
});

function urls(environment: Record<string, string>): SandboxUrls {
  const config = parseConfig(environment, false);
  return new SandboxUrls(config, new ServiceAddress(new HttpAdapterHost(), config));
}

const LOCAL = { PUBLIC_URL: 'http://localhost:3000' };
const PUBLIC = { PUBLIC_URL: 'https://slipway.example.com' };

describe('the addresses of ports', () => {
  it.each([
    ['on loopback', LOCAL, 'http://app-1-5zbr.localhost:3000/'],
    [
      'below the configured one',
      { ...PUBLIC, SANDBOX_PORTS_URL: 'https://apps.example.com' },
      'https://app-1-5zbr.apps.example.com/',
    ],
    ['where no host name leads to the service: none', PUBLIC, undefined],
  ])('%s', (_, environment, url) => {
    expect(urls(environment).ports('Ab1', { APP_1: 'x' })).toEqual(
      url === undefined ? [] : [{ name: 'APP_1', url }],
    );
  });

  it.each([
    ['APP-1-5ZBR.localhost:9999', 'APP_1'],
    ['app-1-5zbr.localhost.', 'APP_1'],
    ['www.localhost', undefined],
  ])('are known under the name %s', (host, name) => {
    expect(urls(LOCAL).isPortHost(host)).toBe(true);
    expect(urls(LOCAL).portOf(host)?.name).toBe(name);
  });
});

describe('the address of an agent server', () => {
  const LABEL = toAgentServerLabel('Ab1');

  it.each([
    ['on loopback', LOCAL, 14000, 'http://127.0.0.1:14000'],
    ['without a port', LOCAL, null, 'http://localhost:3000/api/v1/sandboxes/Ab1/agent-server'],
    ['behind a public name', PUBLIC, 14000, 'https://slipway.example.com/api/v1/sandboxes/Ab1/agent-server'],
    ['ports, where asked for', { ...PUBLIC, SANDBOX_EXPOSE: 'ports' }, 14000, 'http://127.0.0.1:14000'],
    [
      'path, where asked for',
      { ...LOCAL, SANDBOX_EXPOSE: 'path' },
      14000,
      'http://localhost:3000/api/v1/sandboxes/Ab1/agent-server',
    ],
    ['hosts on loopback', { ...LOCAL, SANDBOX_EXPOSE: 'hosts' }, null, `http://${LABEL}.localhost:3000`],
    [
      'hosts below the configured one',
      { ...PUBLIC, SANDBOX_EXPOSE: 'hosts', SANDBOX_PORTS_URL: 'https://apps.example.com' },
      null,
      `https://${LABEL}.apps.example.com`,
    ],
  ])('%s', (_, environment, exposePort, expected) => {
    expect(urls(environment).agentServer('Ab1', exposePort)).toBe(expected);
  });

  it.each([
    [`${LABEL}.localhost:3000`, 'Ab1'],
    [`${LABEL.toUpperCase()}.localhost`, 'Ab1'],
    ['agent-server-.localhost:3000', null],
    ['agent-server-0.localhost:3000', null],
    ['worker-1-5zbr.localhost:3000', null],
    [`${LABEL}.example.com`, null],
    ['localhost:3000', null],
  ])('under the name %s it is %s', (host, sandboxId) => {
    expect(urls({ ...LOCAL, SANDBOX_EXPOSE: 'hosts' }).agentServerAt(host)).toBe(sandboxId);
    expect(urls({ ...LOCAL, SANDBOX_EXPOSE: 'ports' }).agentServerAt(host)).toBeNull();
  });

  it('has a label that is none of a port, and is as long as a name may be', () => {
    const label = toAgentServerLabel('z'.repeat(22));
    expect(label).toMatch(/^[a-z0-9-]{1,63}$/);
    expect(parseAgentServerLabel(label)).toBe('z'.repeat(22));
    expect(parseHostLabel(label)).toBeNull();
  });
});
