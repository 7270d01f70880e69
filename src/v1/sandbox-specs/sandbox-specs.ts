import { readFile } from 'node:fs/promises';
import { errorMessage } from '../../common/errors/error-message.js';
import { ConfigError } from '../../config/config.error.js';
import { DEFAULT_PORTS, DEFAULT_WORKING_DIR, type SandboxSpec } from './sandbox-spec.js';

/** The specifications of this installation, in the operator's order. */
export class SandboxSpecs {
  /** For a sandbox whose request names no specification: the first of the list. */
  readonly default: SandboxSpec;

  /** @throws RangeError when the list is empty */
  constructor(private readonly specs: readonly SandboxSpec[]) {
    const [first] = specs;
    if (!first) {
      throw new RangeError('there has to be a sandbox specification');
    }
    this.default = first;
  }

  find(id: string): SandboxSpec | null {
    return this.specs.find((spec) => spec.id === id) ?? null;
  }

  all(): readonly SandboxSpec[] {
    return this.specs;
  }
}

/**
 * @param file `SANDBOX_SPECS_FILE`; null: the built-in list
 * @throws ConfigError with one line that names the file and where the mistake is
 */
export async function loadSandboxSpecs(file: string | null, now: Date): Promise<SandboxSpec[]> {
  if (file === null) {
    return builtInSpecs(now);
  }
  // Loaded only when there is a file: the parsers take longer to load than the rest of this folder.
  const { parseSandboxSpecs } = await import('./parse-sandbox-specs.js');
  try {
    return parseSandboxSpecs(await readFile(file, 'utf8'), now);
  } catch (error) {
    throw new ConfigError(`SANDBOX_SPECS_FILE: ${file}: ${errorMessage(error)}`, { cause: error });
  }
}

/** The list without `SANDBOX_SPECS_FILE`: our own agent server, which every backend can run. */
export function builtInSpecs(now: Date): SandboxSpec[] {
  return [
    {
      id: 'slipway',
      program: { kind: 'native', image: null },
      env: {},
      workingDir: DEFAULT_WORKING_DIR,
      startTimeoutSeconds: 60,
      cpu: null,
      memoryMb: null,
      runtime: null,
      network: null,
      pod: null,
      ports: DEFAULT_PORTS,
      createdAt: now,
    },
  ];
}
