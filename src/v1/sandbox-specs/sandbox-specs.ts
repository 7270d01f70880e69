import { readFile } from 'node:fs/promises';
import { errorMessage } from '../../common/errors/error-message.js';
import { ConfigError } from '../../config/config.error.js';
import { DEFAULT_PORTS, type SandboxSpec } from './sandbox-spec.js';

/** The specifications of this installation, in the operator's order. Never empty. */
export abstract class SandboxSpecs {
  /** What a sandbox gets whose creator named none: the first. */
  abstract readonly default: SandboxSpec;

  abstract find(id: string): SandboxSpec | null;

  abstract all(): readonly SandboxSpec[];
}

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

/**
 * The specifications of this installation.
 *
 * @param file `SANDBOX_SPECS_FILE`, null for the built-in list
 * @throws ConfigError one line that names the file and the place in it
 */
export async function loadSandboxSpecs(file: string | null, now: Date): Promise<SandboxSpec[]> {
  if (file === null) {
    return builtInSpecs(now);
  }
  // Only where there is a file: the parsers take longer to load than all the rest of this folder.
  const { parseSandboxSpecs } = await import('./parse-sandbox-specs.js');
  try {
    return parseSandboxSpecs(await readFile(file, 'utf8'), now);
  } catch (error) {
    const reason = errorMessage(error);
    throw new ConfigError(`SANDBOX_SPECS_FILE: ${file}: ${reason}`, { cause: error });
  }
}
