import { readFileSync } from 'node:fs';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { ConfigError } from './config.error.js';

type Variables = Readonly<Record<string, string>>;

/**
 * Adds the secrets that are given as `X_FILE`, the form in which container platforms mount them. One newline at the end is
 * not part of the secret.
 *
 * @throws ConfigError for a file that cannot be read, and for a secret that is given twice
 */
export function withSecretFiles(variables: Variables, secrets: readonly string[]): Variables {
  const found = secrets.flatMap((name): [string, string][] => {
    const file = variables[`${name}_FILE`];
    if (file === undefined) {
      return [];
    }
    if (variables[name] !== undefined) {
      throw new ConfigError(`${name}_FILE: ${name} is set too; only one of them may be`);
    }
    return [[name, contentOf(`${name}_FILE`, file)]];
  });
  return { ...variables, ...Object.fromEntries(found) };
}

function contentOf(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new ConfigError(`${variable}: the file cannot be read: ${errorMessage(error)}`, { cause: error });
  }
}
