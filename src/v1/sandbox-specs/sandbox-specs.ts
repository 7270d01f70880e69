import { readFile } from 'node:fs/promises';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { ConfigError } from '../../config/config.error.js';

/** What runs inside a sandbox of this specification. */
export type SandboxSpecProgram =
  | { kind: 'native'; image: string | null }
  | { kind: 'command'; command: string; args: string[] }
  | { kind: 'image'; image: string; args: string[] };

/** A kind of sandbox that users may choose. It comes from the configuration; the API cannot change it. */
export interface SandboxSpec {
  id: string;
  program: SandboxSpecProgram;
  /** Shown to every user, so it must not hold secrets. */
  env: Record<string, string>;
  /** Where conversations work inside the sandbox. */
  workingDir: string;
  /** How long a start may take, not counting the pull of an image. */
  startTimeoutSeconds: number;
  /** Null: the backend's default. */
  cpu: number | null;
  memoryMb: number | null;
  runtime: string | null;
  network: string | null;
  /** Applies only to pods in a cluster. A null member means the backend's default. */
  pod: { volumeSize: string | null; storageClass: string | null; serviceAccount: string | null } | null;
  /** Ports for programs that agents start, by name. The sandbox gets each number in a variable of the same name. */
  ports: Readonly<Record<string, number>>;
  createdAt: Date;
}

/** The folder that clients of OpenHands assume. Each backend provides it where it can. */
export const DEFAULT_WORKING_DIR = '/workspace/project';
/** For specifications that list no ports; the names and numbers are those of OpenHands. */
export const DEFAULT_PORTS: Readonly<Record<string, number>> = { WORKER_1: 8011, WORKER_2: 8012 };

/** The specifications of this installation, in the operator's order. */
export class SandboxSpecs {
  /** The first of the list, used when a request for a sandbox names no specification. */
  readonly default: SandboxSpec;

  /** @throws RangeError when the list is empty */
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

/** The list used when `SANDBOX_SPECS_FILE` is not set: our own agent server, which every backend can run. */
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
