import { readFile } from 'node:fs/promises';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import type { ModelPrice } from '@slipway/agent-protocol/conversation-schemas.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { readConfigured } from '../../../config/config.error.js';
import { type AcpAgent, PLACEHOLDER, SECRET_GROUPS } from './acp-agents.js';

/** Settings that are no secret: any agent may see them. */
const OPEN_SETTINGS = ['llm_model', 'llm_base_url'] as const;

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable');

const agentSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'must be 1 to 63 lower-case letters, digits or . _ -'),
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    env: namedValues(variable, z.string()).default({}),
    secrets: z.array(variable).default([]),
    model: z.string().min(1).nullable().default(null),
    mode: z.string().min(1).nullable().default(null),
    auth_method: z.string().min(1).nullable().default(null),
    install: z.string().min(1).nullable().default(null),
  })
  .superRefine(({ env, secrets, model }, context) => {
    const groups = new Set<string>(Object.values(SECRET_GROUPS));
    const known = new Set<string>([...OPEN_SETTINGS, ...secrets.filter((name) => !groups.has(name))]);
    const values = [...Object.entries(env), ...(model === null ? [] : [['model', model] as const])];
    for (const [name, value] of values) {
      for (const [, used = ''] of value.matchAll(PLACEHOLDER)) {
        if (!known.has(used)) {
          context.addIssue({
            code: 'custom',
            path: name === 'model' ? ['model'] : ['env', name],
            message: `\${${used}} is neither ${OPEN_SETTINGS.join(' nor ')}, nor listed in secrets`,
          });
        }
      }
    }
  });

const agentsSchema = z.array(agentSchema).superRefine((agents, context) => {
  agents.forEach(({ name }, index) => {
    if (agents.findIndex((agent) => agent.name === name) !== index) {
      context.addIssue({ code: 'custom', path: [index, 'name'], message: `${name} stands there twice` });
    }
  });
});

/** Reads `ACP_AGENTS_FILE`, a list. @throws ConfigError as `readFileOf` */
export async function readAcpAgents(file: string): Promise<Map<string, AcpAgent>> {
  const agents = await readFileOf('ACP_AGENTS_FILE', file, agentsSchema, 'is no list of agents');
  return new Map(agents.map((agent) => [agent.name, agent]));
}

const price = z.number().nonnegative();
const modelPrice = z.strictObject({
  input: price,
  output: price,
  cache_read: price.optional(),
  cache_write: price.optional(),
});
const pricesSchema = namedValues(z.string().min(1), modelPrice);

/** Reads `MODEL_PRICES_FILE`, model name to USD per million tokens. @throws ConfigError as `readFileOf` */
export async function readModelPrices(file: string): Promise<Map<string, ModelPrice>> {
  const prices = await readFileOf('MODEL_PRICES_FILE', file, pricesSchema, 'is no list of prices');
  return new Map(Object.entries(prices));
}

/** Reads YAML or JSON. @throws ConfigError as `readConfigured` */
async function readFileOf<T>(
  setting: string,
  file: string,
  schema: z.ZodType<T>,
  otherwise: string,
): Promise<T> {
  return readConfigured(setting, file, async () => {
    const parsed = schema.safeParse(parseYaml(await readFile(file, 'utf8')));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new TypeError(issue ? `${z.core.toDotPath(issue.path)}: ${issue.message}` : otherwise);
    }
    return parsed.data;
  });
}
