import { homedir } from 'node:os';
import path from 'node:path';
import type { DataSource } from 'typeorm';
import { Injectable } from '@nestjs/common';
import { destinationsOf } from '@slipway/common/http/address-rules.js';
import { AppConfig } from '../../config/app-config.js';
import { PUBLIC_GIT_SERVERS } from '@slipway/git-providers/public-git-servers.js';
import { ServiceStateRepository } from '../../database/service-state.repository.js';
import { type Instrument, Metrics } from '@slipway/telemetry/metrics.js';
import { proxyDestinations } from '@slipway/sandboxes/launch-variables.js';
import type { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { SANDBOX_BACKENDS } from './backends/sandbox-backends.js';
import { SANDBOX_DEFAULTS } from './lifecycle/launch-plan.js';

const OPERATIONS = ['prepare', 'start', 'inspect', 'logTail', 'pause', 'resume', 'remove', 'list'] as const;
type Operation = (typeof OPERATIONS)[number];

type OperationLabels = { backend: readonly string[]; operation: typeof OPERATIONS };

const SECONDS = [0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60];

@Injectable()
export class BackendMetrics {
  private readonly calls: Instrument<OperationLabels>;
  private readonly errors: Instrument<OperationLabels>;
  private readonly backend: string;

  constructor(metrics: Metrics, config: AppConfig) {
    this.backend = config.sandboxes.backend;
    const labels = { backend: [this.backend], operation: OPERATIONS };
    this.calls = metrics.addHistogram({
      name: 'slipway_sandbox_backend_call_seconds',
      help: 'How long calls of the sandbox backend took, whether or not they succeeded',
      labels,
      buckets: SECONDS,
    });
    this.errors = metrics.addCounter({
      name: 'slipway_sandbox_backend_errors_total',
      help: 'Calls of the sandbox backend that failed, without those that their caller broke off',
      labels,
    });
  }

  async measure(operation: Operation, call: () => unknown, signal?: AbortSignal): Promise<unknown> {
    const { backend } = this;
    const begunAt = performance.now();
    try {
      return await call();
    } catch (error) {
      if (signal?.aborted !== true) {
        this.errors.record({ backend, operation });
      }
      throw error;
    } finally {
      this.calls.record({ backend, operation }, (performance.now() - begunAt) / 1000);
    }
  }
}

/** The same backend, with its calls measured. */
export function measured(backend: SandboxBackend, metrics: BackendMetrics): SandboxBackend {
  return new Proxy(backend, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') {
        return member;
      }
      const operation = OPERATIONS.find((each) => each === name);
      return (...args: unknown[]): unknown => {
        const call = (): unknown => Reflect.apply(member, target, args);
        const signal = args.find((each) => each instanceof AbortSignal);
        return operation === undefined ? call() : metrics.measure(operation, call, signal);
      };
    },
  });
}

/** Loads only the configured backend. `callbackUrl` is known once the service listens. */
export async function createSandboxBackend(
  config: AppConfig,
  dataSource: DataSource,
  hostId: string,
  callbackUrl: () => string,
): Promise<SandboxBackend> {
  const { sandboxes, egress, dataDir } = config;
  return await SANDBOX_BACKENDS[sandboxes.backend].create({
    sandboxes,
    egress,
    dataDir,
    instanceId: sandboxes.instanceId ?? (await new ServiceStateRepository(dataSource).instanceId()),
    hostId,
    callbackUrl,
    defaults: SANDBOX_DEFAULTS,
    allow: [...sandboxes.networkAllow, ...configuredDestinations(config)],
    hiddenPaths: [
      dataDir,
      homedir(),
      path.resolve('.env'),
      ...databasePaths(urlOf(dataSource)),
      ...databasePaths(config.database.directUrl),
    ],
  });
}

/** Hosts of the operator's own configuration, in case they are not public: git servers, settings, the proxy. */
export function configuredDestinations(config: AppConfig): string[] {
  return [...new Set([...configuredHosts(config), ...proxyDestinations(config.sandboxes.environment)])];
}

/** Those without the proxy, by which sandboxes with rules would leave past them. */
export function configuredHosts({ git, outbound }: AppConfig): string[] {
  const addresses = [
    ...Object.values(git.servers).flatMap(({ cloneUrl, apiUrl }) => [cloneUrl, apiUrl]),
    ...[...git.hostAllowlist, ...(outbound.allowlist ?? [])].filter((entry) => !entry.includes('*')),
  ];
  return [...new Set(addresses.flatMap(destinationsOf))].filter((host) => !isPublic(host));
}

/** No start has to resolve these names. */
function isPublic(host: string): boolean {
  return Object.values(PUBLIC_GIT_SERVERS).some((server) => `.${host}`.endsWith(`.${server.host}:443`));
}

function urlOf({ options }: DataSource): string | null {
  return 'url' in options && typeof options.url === 'string' ? options.url : null;
}

/** Files that open the database: its socket's folder and the client's key (`?host=/folder`, `?sslkey=/file`). */
export function databasePaths(databaseUrl: string | null): string[] {
  if (databaseUrl === null || !URL.canParse(databaseUrl)) {
    return [];
  }
  const { hostname, searchParams } = new URL(databaseUrl);
  const host = searchParams.get('host') ?? decoded(hostname);
  const key = searchParams.get('sslkey');
  return [...(host.startsWith('/') ? [host] : []), ...(key === null ? [] : [path.resolve(key)])];
}

function decoded(hostname: string): string {
  try {
    return decodeURIComponent(hostname);
  } catch {
    // A host name with a literal percent sign is no path.
    return hostname;
  }
}
