import { readFile } from 'node:fs/promises';
import { readConfigured } from '../../config/config.error.js';
import type { SandboxConfig } from '../../config/sandbox-config.js';

export type SandboxSpecProgram =
  | { kind: 'native'; image: string | null }
  | { kind: 'command'; command: string; args: string[] }
  | { kind: 'image'; image: string; args: string[] };

export interface SandboxSpec {
  id: string;
  program: SandboxSpecProgram;
  /** Shown to every user, so it must not hold secrets. */
  env: Record<string, string>;
  workingDir: string;
  startTimeoutSeconds: number;
  cpu: number | null;
  memoryMb: number | null;
  runtime: string | null;
  network: string | null;
  /** Applies only to pods in a cluster. Null means the backend's default. */
  pod: {
    volumeSize: string | null;
    storageClass: string | null;
    serviceAccount: string | null;
    template: SandboxConfig['podTemplate'];
  } | null;
  /** Ports for programs that agents start, by name. The sandbox gets each number in a variable of that name. */
  ports: Readonly<Record<string, number>>;
  createdAt: Date;
}

/** The folder that clients of OpenHands assume. Each backend provides it where it can. */
export const DEFAULT_WORKING_DIR = '/workspace/project';
/** Used by specifications that list no ports. The names and numbers are those of OpenHands. */
export const DEFAULT_PORTS: Readonly<Record<string, number>> = { WORKER_1: 8011, WORKER_2: 8012 };

export class SandboxSpecs {
  readonly default: SandboxSpec;

  constructor(private readonly specs: readonly SandboxSpec[]) {
    const [first] = specs;
    if (!first) {
      throw new RangeError('expected at least one sandbox specification');
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
 * Loads `SANDBOX_SPECS_FILE`, or the built-in list when it is null.
 * @throws ConfigError with one line that names the file and where the mistake is
 */
export async function loadSandboxSpecs(file: string | null, now: Date): Promise<SandboxSpec[]> {
  if (file === null) {
    return builtInSpecs(now);
  }
  // The import is lazy: the parsers take longer to load than the rest of this folder.
  const { parseSandboxSpecs } = await import('./parse-sandbox-specs.js');
  return readConfigured('SANDBOX_SPECS_FILE', file, async () =>
    parseSandboxSpecs(await readFile(file, 'utf8'), now),
  );
}

/** The list used without `SANDBOX_SPECS_FILE`: our own agent server, which every backend can run. */
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
