import { readFile } from 'node:fs/promises';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import type { ModelPrice } from '@slipway/agent-protocol/conversation-schemas.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { ConfigError } from '../../../config/config.error.js';

const price = z.number().nonnegative();
const modelPrice = z.strictObject({
  input: price,
  output: price,
  cache_read: price.optional(),
  cache_write: price.optional(),
});
const fileSchema = namedValues(z.string().min(1), modelPrice);

/** Reads `MODEL_PRICES_FILE` (YAML or JSON), model name to USD per million tokens. Throws ConfigError with one line. */
export async function readModelPrices(file: string): Promise<Map<string, ModelPrice>> {
  try {
    const content: unknown = parseYaml(await readFile(file, 'utf8'));
    const parsed = fileSchema.safeParse(content);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new TypeError(
        issue ? `${z.core.toDotPath(issue.path)}: ${issue.message}` : 'is no list of prices',
      );
    }
    return new Map(Object.entries(parsed.data));
  } catch (error) {
    const [reason] = errorMessage(error).split('\n', 1);
    throw new ConfigError(`MODEL_PRICES_FILE: ${file}: ${reason}`, { cause: error });
  }
}
