import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { parseConfigured, readConfigured } from '@slipway/common/errors/config.error.js';
import {
  BUILT_IN_PRESETS,
  type EgressPresets,
  type EgressRuleSet,
  egressSchema,
} from '@slipway/egress-rules/egress-rules.js';
import type { PodSettings, SandboxProgram } from '@slipway/sandboxes/sandbox-backend.js';
import { podTemplateSchema } from '../../config/sandbox-config.js';

export interface SandboxSpec {
  id: string;
  program: SandboxProgram;
  /** Shown to every user, so it must not hold secrets. */
  env: Record<string, string>;
  workingDir: string;
  startTimeoutSeconds: number;
  cpu: number | null;
  memoryMb: number | null;
  runtime: string | null;
  network: string | null;
  /** Applies only to pods in a cluster. Null means the backend's default. */
  pod: PodSettings | null;
  /** Ports for programs that agents start, by name. The sandbox gets each number in a variable of that name. */
  ports: Readonly<Record<string, number>>;
  /** What sandboxes may reach, besides what the operator's own rules say. Null: those alone. */
  egress: EgressRuleSet | null;
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
export async function loadSandboxSpecs(
  file: string | null,
  now: Date,
  presets: EgressPresets,
): Promise<SandboxSpec[]> {
  if (file === null) {
    return builtInSpecs(now);
  }
  return readConfigured('SANDBOX_SPECS_FILE', file, async () =>
    parseSandboxSpecs(await readFile(file, 'utf8'), now, presets),
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
      egress: null,
      createdAt: now,
    },
  ];
}

const DEFAULT_START_TIMEOUT_SECONDS = 120;
const MAX_START_TIMEOUT_SECONDS = 3600;
const MIN_MEMORY_MB = 64;
/** A quantity in the notation of Kubernetes. */
const VOLUME_SIZE = /^[1-9]\d{0,8}(?:Mi|Gi|Ti|M|G|T)$/;
const OBJECT_NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;
const OBJECT_NAME_EXPECTED = 'must be lower-case letters, digits, . or -, as names in Kubernetes are';

/** The name becomes an environment variable and part of a host name; its number avoids clashes with others. */
const PORT_NAME = /^(?!OH_)(?=.{1,30}$)[A-Z]+(?:_[A-Z]+)?_[1-9]\d?$/;
const MIN_PORT = 1024;
const MAX_PORTS = 10;
const AGENT_PORT = 8000;

const text = z.string().min(1).max(1000);

const entrySchema = z
  .strictObject({
    id: z.string().regex(/^[\w./:@+-]{1,200}$/, 'must be 1 to 200 letters, digits or . _ - / : @ +'),
    agent_server: z.enum(['slipway', 'openhands']).optional(),
    image: text.optional(),
    command: z.union([text, z.array(text).min(1)]).optional(),
    args: z.array(z.string().max(1000)).optional(),
    env: namedValues(z.string().regex(/^[A-Za-z_]\w*$/, 'must be a variable name'), z.string()).optional(),
    working_dir: text.optional(),
    start_timeout_seconds: z.number().int().min(1).max(MAX_START_TIMEOUT_SECONDS).optional(),
    resources: z
      .strictObject({
        cpu: z.number().positive().max(1024).optional(),
        memory_mb: z.number().int().min(MIN_MEMORY_MB).optional(),
      })
      .optional(),
    runtime: text.optional(),
    network: text.optional(),
    pod: z
      .strictObject({
        volume_size: z.string().regex(VOLUME_SIZE, 'must be a size such as 20Gi or 500Mi').optional(),
        storage_class: z.string().regex(OBJECT_NAME, OBJECT_NAME_EXPECTED).optional(),
        service_account: z.string().regex(OBJECT_NAME, OBJECT_NAME_EXPECTED).optional(),
        template: podTemplateSchema.optional(),
      })
      .optional(),
    ports: namedValues(
      z.string().regex(PORT_NAME, 'must be a name like WORKER_1'),
      z.number().int().min(MIN_PORT).max(65_535),
    )
      .refine((ports) => Object.keys(ports).length <= MAX_PORTS, `must be at most ${MAX_PORTS} ports`)
      .refine(
        (ports) => new Set([AGENT_PORT, ...Object.values(ports)]).size > Object.keys(ports).length,
        `must be different ports, and not ${AGENT_PORT}, which is the agent server's`,
      )
      .optional(),
    /** Read with the presets. */
    egress: z.unknown().optional(),
  })
  .superRefine((entry, context) => {
    const problem = programProblem(entry) ?? variableProblem(entry);
    if (problem !== null) {
      context.addIssue({ code: 'custom', message: problem });
    }
  });

const entriesSchema = z
  .array(entrySchema)
  .min(1, 'must list at least one specification')
  .superRefine((entries, context) => {
    const seen = new Set<string>();
    entries.forEach(({ id }, index) => {
      if (seen.has(id)) {
        context.addIssue({ code: 'custom', path: [index, 'id'], message: `"${id}" is listed twice` });
      }
      seen.add(id);
    });
  });

type Entry = z.infer<typeof entrySchema>;

/** Parses the operator's list of sandbox specifications. @throws TypeError as `parseConfigured` */
export async function parseSandboxSpecs(
  file: string,
  now: Date,
  presets: EgressPresets = BUILT_IN_PRESETS,
): Promise<SandboxSpec[]> {
  const egress = egressSchema(presets).nullable().default(null);
  return await parseConfigured(
    file,
    entriesSchema.transform((entries, context) =>
      entries.map((entry, index) => {
        const rules = egress.safeParse(entry.egress);
        rules.error?.issues.forEach(({ message, path }) =>
          context.addIssue({ code: 'custom', message, path: [index, 'egress', ...path] }),
        );
        return toSpec(entry, rules.data ?? null, now);
      }),
    ),
  );
}

function programProblem({ agent_server: agentServer, image, command, args }: Entry): string | null {
  if (image !== undefined && command !== undefined) {
    return 'takes an image or a command, not both';
  }
  if (agentServer === 'slipway' && (command !== undefined || args !== undefined)) {
    return 'takes no command and no args where agent_server is slipway: the service starts that one';
  }
  if (agentServer === 'openhands' && image === undefined && command === undefined) {
    return 'needs an image or a command where agent_server is openhands';
  }
  return null;
}

function variableProblem({ ports, env }: Entry): string | null {
  const both = Object.keys(ports ?? DEFAULT_PORTS).find(
    (name) => env !== undefined && Object.hasOwn(env, name),
  );
  return both === undefined ? null : `takes ${both} as a variable of env or as a port, not both`;
}

function toSpec(entry: Entry, egress: EgressRuleSet | null, now: Date): SandboxSpec {
  return {
    id: entry.id,
    program: toProgram(entry),
    env: entry.env ?? {},
    workingDir: entry.working_dir ?? DEFAULT_WORKING_DIR,
    startTimeoutSeconds: entry.start_timeout_seconds ?? DEFAULT_START_TIMEOUT_SECONDS,
    cpu: entry.resources?.cpu ?? null,
    memoryMb: entry.resources?.memory_mb ?? null,
    runtime: entry.runtime ?? null,
    network: entry.network ?? null,
    pod: entry.pod
      ? {
          volumeSize: entry.pod.volume_size ?? null,
          storageClass: entry.pod.storage_class ?? null,
          serviceAccount: entry.pod.service_account ?? null,
          template: entry.pod.template ?? {},
        }
      : null,
    ports: entry.ports ?? DEFAULT_PORTS,
    egress,
    createdAt: now,
  };
}

function toProgram({ agent_server: agentServer, image, command, args = [] }: Entry): SandboxProgram {
  if (command !== undefined) {
    const [program = '', ...words] = Array.isArray(command) ? command : [command];
    return { kind: 'command', command: program, args: [...words, ...args] };
  }
  return image !== undefined && agentServer !== 'slipway'
    ? { kind: 'image', image, args }
    : { kind: 'native', image: image ?? null };
}
