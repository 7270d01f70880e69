import type { ZodType } from 'zod';
import { errorMessage } from './error-message.js';

/** The message has one line for each variable, which it names. */
export class ConfigError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ConfigError';
  }
}

/** Reads what a variable names. @throws ConfigError with the variable, the place and what is wrong, in one line */
export async function readConfigured<T>(variable: string, place: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const [reason] = errorMessage(error).split('\n', 1);
    throw new ConfigError(`${variable}: ${place}: ${reason}`, { cause: error });
  }
}

/** Parses a list of the operator, in YAML or JSON. @throws TypeError with its first mistake, in one line */
export async function parseConfigured<T>(text: string, schema: ZodType<T>): Promise<T> {
  // Both take long to load.
  const [{ parse }, { z }] = await Promise.all([import('yaml'), import('zod')]);
  let content: unknown;
  try {
    content = parse(text);
  } catch (error) {
    const [reason = ''] = errorMessage(error).split('\n', 1);
    throw new TypeError(`is neither YAML nor JSON: ${reason.replace(/:$/, '')}`, { cause: error });
  }
  const parsed = schema.safeParse(content);
  if (parsed.success) {
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  // Zod nests the issue of a key inside the issue of its object.
  const message = issue?.code === 'invalid_key' ? issue.issues[0]?.message : issue?.message;
  throw new TypeError([z.core.toDotPath(issue?.path ?? []), message].filter(Boolean).join(': '));
}
