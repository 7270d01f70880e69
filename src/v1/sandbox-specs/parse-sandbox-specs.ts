import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { podTemplateSchema } from '../../config/sandbox-config.js';
import {
  DEFAULT_PORTS,
  DEFAULT_WORKING_DIR,
  type SandboxSpec,
  type SandboxSpecProgram,
} from './sandbox-specs.js';

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
  })
  .superRefine((entry, context) => {
    const problem = programProblem(entry) ?? variableProblem(entry);
    if (problem !== null) {
      context.addIssue({ code: 'custom', message: problem });
    }
  });

const fileSchema = z
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

/**
 * Parses the operator's list of sandbox specifications from YAML or JSON.
 * @throws TypeError with one line that says where the mistake is and what is expected
 */
export function parseSandboxSpecs(file: string, now: Date): SandboxSpec[] {
  let content: unknown;
  try {
    content = parseYaml(file);
  } catch (error) {
    throw new TypeError(`is neither YAML nor JSON: ${firstLine(error)}`, { cause: error });
  }
  const parsed = fileSchema.safeParse(content);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue && issue.path.length > 0 ? `${z.core.toDotPath(issue.path)}: ` : '';
    // Zod nests the issue of a key inside the issue of its object.
    const message = issue?.code === 'invalid_key' ? issue.issues[0]?.message : issue?.message;
    throw new TypeError(`${where}${message ?? 'is not a list of specifications'}`);
  }
  return parsed.data.map((entry) => toSpec(entry, now));
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

function toSpec(entry: Entry, now: Date): SandboxSpec {
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
    createdAt: now,
  };
}

function toProgram({ agent_server: agentServer, image, command, args = [] }: Entry): SandboxSpecProgram {
  if (command !== undefined) {
    const [program = '', ...words] = Array.isArray(command) ? command : [command];
    return { kind: 'command', command: program, args: [...words, ...args] };
  }
  return image !== undefined && agentServer !== 'slipway'
    ? { kind: 'image', image, args }
    : { kind: 'native', image: image ?? null };
}

function firstLine(error: unknown): string {
  const message = errorMessage(error);
  return message.split('\n', 1)[0]?.replace(/:$/, '') ?? message;
}
