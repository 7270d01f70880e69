import {
  type BackendSweep,
  type DiskSpace,
  type PreparationLine,
  SandboxBackend,
  SandboxBackendError,
  type SandboxFacts,
} from '@slipway/sandboxes/sandbox-backend.js';

/** Has no sandboxes and starts none. */
export class EmptySandboxBackend extends SandboxBackend {
  readonly kind = 'process';
  readonly isolation = 'container';
  /** How full its disk is. */
  space: DiskSpace | null = null;
  /** Removed sandboxes with files left, as a sweep finds them. */
  leftovers = 0;

  override async prepare(): Promise<PreparationLine[]> {
    return [];
  }

  override async start(): Promise<void> {
    throw new SandboxBackendError('This test has no sandboxes.');
  }

  override async inspect(id: string): Promise<SandboxFacts> {
    return { id, state: 'missing', address: null, ports: {}, exit: null, createdAt: null };
  }

  override async logTail(): Promise<string> {
    return '';
  }

  override async pause(): Promise<void> {}

  override async resume(): Promise<void> {
    throw new SandboxBackendError('This test has no sandboxes.');
  }

  override async remove(): Promise<void> {}

  override async list(): Promise<SandboxFacts[]> {
    return [];
  }

  override async disk(): Promise<DiskSpace | null> {
    return this.space;
  }

  override async sweep(): Promise<BackendSweep> {
    return { leftovers: this.leftovers, notices: [] };
  }
}
