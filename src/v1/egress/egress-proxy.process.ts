import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Injectable, Logger } from '@nestjs/common';
import { within } from '@slipway/common/async.js';
import { isJsonObject, parseJson } from '@slipway/common/json-access.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { withoutInherited } from '@slipway/common/processes/inherited-descriptors.js';
import { productFolder } from '../../common/product.js';
import { AppConfig } from '../../config/app-config.js';
import { ServiceAddress } from '../../config/service-address.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import type { SandboxBackendDescriptor } from '../sandboxes/backends/sandbox-backend.descriptor.js';
import { SANDBOX_BACKENDS } from '../sandboxes/backends/sandbox-backends.js';
import { SandboxLifecycleRepository } from '../sandboxes/sandbox-lifecycle.repository.js';
import { SandboxEgress } from '../sandboxes/lifecycle/egress-access.js';
import { PROXY_KEY } from './egress-proxy.keys.js';

const ENTRY = path.join(productFolder(), 'dist', 'egress-proxy', 'main.js');
const EVERY_MS = 1_000;
/** Requests under way may end within this time. */
const GRACE_MS = 10_000;
const LISTENING_MS = 5_000;
const LOOK_EVERY_MS = 10_000;
/** What it says as soon as it may be asked. */
const STARTED = 'egress proxy started';
const INHERITED = /^(NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|TZ)$/;

/**
 * The program that sandboxes of this host leave by where they have rules or credentials outside: started before the first of them, and again when it
 * ends. It ends with the service, and those of several replicas share the port.
 */
@Injectable()
export class EgressProxyProcess extends BackgroundLoop {
  private child: ChildProcess | null = null;
  private isNeeded = false;
  private lookedAt = -Infinity;
  private listening: () => void = () => undefined;

  constructor(
    private readonly specs: SandboxSpecs,
    private readonly egress: SandboxEgress,
    private readonly sandboxes: SandboxLifecycleRepository,
    private readonly cipher: SecretCipher,
    private readonly address: ServiceAddress,
    private readonly config: AppConfig,
  ) {
    super(EVERY_MS, new Logger('EgressProxy'), 'failed to start the egress proxy');
  }

  override async onApplicationBootstrap(): Promise<void> {
    if (this.backend.proxyEnvironment === null) {
      return;
    }
    this.egress.beforeUse(async () => {
      this.isNeeded = true;
      if (this.child === null) {
        await this.now();
      }
    });
    await super.onApplicationBootstrap();
  }

  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    const { child } = this;
    if (child !== null) {
      const exited = once(child, 'exit').then(() => undefined);
      child.kill('SIGTERM');
      await within(GRACE_MS, exited);
      child.kill('SIGKILL');
    }
  }

  protected async work(): Promise<void> {
    if (!(await this.isWanted()) || this.child !== null || this.stopping) {
      return;
    }
    const child = this.spawn(await this.variables());
    const listening = Promise.withResolvers<void>();
    this.listening = listening.resolve;
    await once(child, 'spawn');
    this.child = child;
    child.once('exit', (code, signal) => {
      this.child = null;
      listening.resolve();
      if (!this.stopping) {
        this.logger.warn('egress proxy exited', { code, signal });
      }
    });
    // It ends when its input does, so that none outlives a service that was killed.
    child.stdin?.on('error', () => undefined).write(`${this.cipher.derive(PROXY_KEY)}\n`);
    await within(LISTENING_MS, listening.promise);
  }

  /** Also by sandboxes of another replica of this host, whose proxy may have gone with it. */
  private async isWanted(): Promise<boolean> {
    // Known once the backend is prepared.
    this.isNeeded ||= this.specs.all().some((spec) => this.egress.mode(spec) !== null);
    if (!this.isNeeded && performance.now() >= this.lookedAt + LOOK_EVERY_MS) {
      this.lookedAt = performance.now();
      this.isNeeded = await this.sandboxes.needsEgress();
    }
    return this.isNeeded;
  }

  private get backend(): SandboxBackendDescriptor {
    return SANDBOX_BACKENDS[this.config.sandboxes.backend];
  }

  private async variables(): Promise<Record<string, string>> {
    const { dataDir, egress, sandboxes, http } = this.config;
    const { environment, dockerNetwork } = sandboxes;
    const serviceAddress = ['0.0.0.0', '::', 'localhost'].includes(http.host) ? '127.0.0.1' : http.host;
    const host = isIPv6(serviceAddress) ? `[${serviceAddress}]` : serviceAddress;
    const place = { dataDir, port: egress.port, dockerNetwork, serviceAddress };
    return {
      ...Object.fromEntries(Object.entries(environment).filter(([name]) => INHERITED.test(name))),
      EGRESS_PROXY_GRACE_SECONDS: String(GRACE_MS / 1000),
      EGRESS_PROXY_SERVICE_URL: `http://${host}:${this.address.port}`,
      ...(await this.backend.proxyEnvironment?.(place)),
    };
  }

  private spawn(env: Record<string, string>): ChildProcess {
    const child = spawn(process.execPath, [ENTRY], {
      cwd: '/',
      env,
      stdio: withoutInherited(['pipe', 'ignore', 'pipe']),
    });
    if (child.stderr !== null) {
      createInterface({ input: child.stderr }).on('line', (line) => this.passOn(line));
    }
    return child;
  }

  /** Its log has a JSON object in each line; what Node.js itself says is plain text. */
  private passOn(line: string): void {
    const entry = parseJson(line);
    const {
      message,
      level,
      time: _,
      ...fields
    } = isJsonObject(entry) ? entry : { message: line, level: 'warn' };
    if (message === STARTED) {
      this.listening();
    }
    this.logger[level === 'info' ? 'log' : 'warn'](String(message), fields);
  }
}
