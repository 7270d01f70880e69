import {
  type PreparationLine,
  SandboxBackendError,
  SandboxBackend,
  type SandboxBackendKind,
  type SandboxFacts,
  type SandboxLaunch,
} from '@slipway/sandboxes/sandbox-backend.js';
import { SESSION_KEY } from '../../packages/agent-server/test/support/agent-server-client.js';
import { Gate } from '../support/gate.js';
import {
  startSeparateAgentServer,
  type SeparateAgentServer,
} from '../../packages/agent-server/test/support/test-agent-server.js';

interface Box {
  launch: SandboxLaunch;
  server: SeparateAgentServer;
  running: boolean;
  createdAt: number;
}

/**
 * Sandboxes whose agent servers, real ones with an engine that needs no model, listen in the test's own process. They live
 * as long as this object, which several applications may share like a machine. Tests have a key to each of them.
 */
export class InProcessSandboxBackend extends SandboxBackend {
  readonly isolation = 'container';
  readonly boxes = new Map<string, Box>();
  /** Makes the next starts fail with this message. */
  failure: string | null = null;
  /** Starts wait while it is closed. */
  readonly gate = new Gate();

  constructor(readonly kind: SandboxBackendKind = 'process') {
    super();
  }

  override async prepare(): Promise<PreparationLine[]> {
    return [];
  }

  override async start(launch: SandboxLaunch): Promise<void> {
    if (this.failure !== null) {
      throw new SandboxBackendError(this.failure);
    }
    await this.gate.pass();
    const box = this.boxes.get(launch.id);
    if (box) {
      await this.resume(launch);
      return;
    }
    const server = await startSeparateAgentServer({ sessionKeys: keysOf(launch) });
    this.boxes.set(launch.id, { launch, server, running: true, createdAt: Date.now() });
  }

  override async inspect(id: string): Promise<SandboxFacts> {
    const box = this.boxes.get(id);
    return box
      ? {
          id,
          state: box.running ? 'running' : 'stopped',
          address: box.running ? `http://127.0.0.1:${box.server.port}` : null,
          ports: {},
          exit: box.running ? null : { code: 0, signal: null, outOfMemory: false },
          createdAt: box.createdAt,
        }
      : { id, state: 'missing', address: null, ports: {}, exit: null, createdAt: null };
  }

  override async logTail(): Promise<string> {
    return '';
  }

  override async pause(id: string): Promise<void> {
    const box = this.boxes.get(id);
    if (box?.running) {
      box.running = false;
      await box.server.halt();
    }
  }

  override async resume(launch: SandboxLaunch): Promise<void> {
    const box = this.boxes.get(launch.id);
    if (!box) {
      throw new SandboxBackendError('The files of the sandbox are gone.');
    }
    if (this.failure !== null) {
      throw new SandboxBackendError(this.failure);
    }
    await this.gate.pass();
    box.launch = launch;
    if (!box.running) {
      await box.server.restart({ sessionKeys: keysOf(launch) });
      box.running = true;
    }
  }

  override async remove(id: string): Promise<void> {
    const box = this.boxes.get(id);
    this.boxes.delete(id);
    await box?.server.stop();
  }

  override async list(): Promise<SandboxFacts[]> {
    return Promise.all([...this.boxes.keys()].map((id) => this.inspect(id)));
  }

  override async disk(): Promise<null> {
    return null;
  }

  /** Acts like a signal. */
  async kill(id: string): Promise<void> {
    await this.pause(id);
  }

  async close(): Promise<void> {
    await Promise.all([...this.boxes.keys()].map((id) => this.remove(id)));
  }
}

function keysOf({ sessionKey }: SandboxLaunch): string[] {
  return [sessionKey, SESSION_KEY];
}
