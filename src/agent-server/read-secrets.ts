import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { jsonText } from '../common/json-access.js';
import { numbered } from './parse-options.js';

const KEY_VARIABLE = /^(OH_SESSION_API_KEYS_\d+|SESSION_API_KEY)$/;

/**
 * The session key from one line of JSON, `{"session_api_key":"…"}`. Unlike variables and arguments, no other process
 * can read it afterwards.
 *
 * @throws Error when there is no such line
 */
export async function readSessionKey(input: Readable): Promise<string> {
  const lines = createInterface({ input });
  try {
    for await (const line of lines) {
      const key = keyIn(line);
      if (key !== null) {
        return key;
      }
      break;
    }
  } finally {
    lines.close();
    input.destroy();
  }
  throw new Error('standard input must begin with a line of JSON that has a session_api_key');
}

/** The session keys in the environment, where the stock server has them; they are removed from it. */
export function takeSessionKeys(env: NodeJS.ProcessEnv): string[] {
  const single = env['SESSION_API_KEY'];
  const keys = [...numbered(env, 'OH_SESSION_API_KEYS_'), ...(single ? [single] : [])];
  for (const name of Object.keys(env).filter((variable) => KEY_VARIABLE.test(variable))) {
    Reflect.deleteProperty(env, name);
  }
  return keys;
}

function keyIn(line: string): string | null {
  try {
    return jsonText(JSON.parse(line), 'session_api_key');
  } catch {
    return null;
  }
}
