import type { SandboxSpec } from './sandbox-spec.js';
import { SandboxSpecs } from './sandbox-specs.js';

/** The specifications as they were read at the start. */
export class ConfiguredSandboxSpecs extends SandboxSpecs {
  readonly default: SandboxSpec;

  /** @throws RangeError when the list is empty */
  constructor(private readonly specs: readonly SandboxSpec[]) {
    super();
    const [first] = specs;
    if (!first) {
      throw new RangeError('there has to be a sandbox specification');
    }
    this.default = first;
  }

  override find(id: string): SandboxSpec | null {
    return this.specs.find((spec) => spec.id === id) ?? null;
  }

  override all(): readonly SandboxSpec[] {
    return this.specs;
  }
}
