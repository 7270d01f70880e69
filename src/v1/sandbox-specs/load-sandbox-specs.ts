import { readFile } from 'node:fs/promises';
import { ConfigError } from '../../config/config.error.js';
import { builtInSpecs } from './built-in-specs.js';
import type { SandboxSpec } from './sandbox-spec.js';

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
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`SANDBOX_SPECS_FILE: ${file}: ${reason}`, { cause: error });
  }
}
