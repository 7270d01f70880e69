import { randomBytes } from 'node:crypto';
import type { SandboxLaunch } from '@slipway/sandboxes/sandbox-backend.js';

/** A launch of our own agent server that asks for nothing special, with an id and a key of its own. */
export function sandboxLaunch(changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
  return {
    id: randomBytes(11).toString('hex'),
    sessionKey: `key-${randomBytes(16).toString('hex')}`,
    program: { kind: 'native', image: null },
    env: {},
    workingDir: 'workspace/project',
    cpu: null,
    memoryMb: null,
    runtime: null,
    network: null,
    pod: null,
    ports: {},
    callbackUrl: null,
    ...changes,
  };
}
