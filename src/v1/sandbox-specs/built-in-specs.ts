import { DEFAULT_PORTS } from './default-ports.js';
import type { SandboxSpec } from './sandbox-spec.js';

/** What there is without `SANDBOX_SPECS_FILE`: our own agent server, which every backend can run. */
export function builtInSpecs(now: Date): SandboxSpec[] {
  return [
    {
      id: 'slipway',
      program: { kind: 'native', image: null },
      env: {},
      workingDir: 'workspace',
      startTimeoutSeconds: 60,
      cpu: null,
      memoryMb: null,
      runtime: null,
      network: null,
      ports: DEFAULT_PORTS,
      createdAt: now,
    },
  ];
}
