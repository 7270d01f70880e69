import type { SandboxSpec } from './sandbox-spec.js';

/** The specifications of this installation, in the operator's order. Never empty. */
export abstract class SandboxSpecs {
  /** What a sandbox gets whose creator named none: the first. */
  abstract readonly default: SandboxSpec;

  abstract find(id: string): SandboxSpec | null;

  abstract all(): readonly SandboxSpec[];
}
