import { isJsonObject, parseJson } from '@slipway/common/json-access.js';
import { callsIn, type ModelResponse } from './response-parts.js';
import { parseArguments } from './tool-calls.js';

/** What gpt-oss, Kimi and DeepSeek leave behind a name: their templates' marks, or the number of the call. */
const BEHIND = /(?:<[|｜][^]*|:\d+)$/;
/** What gpt-oss, Gemini and others put before it: the namespace in which their templates declare tools. */
const BEFORE = /^(?:\S+\s+)?(?:to=)?(?:functions?|default_api|tools?)[.:]/i;

/** The offered tool that a model means; the name itself where it is none. */
export function undressedName(name: string, offered: Pick<ReadonlySet<string>, 'has'>): string {
  const short = name.replace(BEHIND, '').trim();
  return [name, short, short.replace(BEFORE, '')].find((each) => offered.has(each)) ?? name;
}

const TEXT = /"(?:[^"\\]|\\[^])*"/g;

/** Names without their dressing, and arguments as valid JSON where only one reading is possible. */
export async function withReadableCalls(
  response: ModelResponse,
  offered: ReadonlySet<string>,
): Promise<ModelResponse> {
  const isCut = response.ending !== 'complete';
  const parts = await Promise.all(
    response.parts.map(async (part) => {
      if (part.type !== 'call') {
        return part;
      }
      // A call that was cut is not run, and its end not invented.
      const repaired = isCut ? null : await repairedArguments(part.arguments);
      return { ...part, name: undressedName(part.name, offered), arguments: repaired ?? part.arguments };
    }),
  );
  return { ...response, parts, calls: callsIn(parts) };
}

/** Returns null if the arguments need no repair, or cannot be repaired. */
async function repairedArguments(written: string): Promise<string | null> {
  if (parseArguments(written) !== null || !written.trimStart().startsWith('{')) {
    return null;
  }
  const value = await repairedJson(written);
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return isJsonObject(first) ? JSON.stringify(first) : null;
}

/** The value that a text means; undefined where it is no JSON, or may mean others. */
export async function repairedJson(text: string): Promise<unknown> {
  const parsed = parseJson(text);
  if (parsed !== undefined) {
    return parsed;
  }
  // Few models need it, so it is loaded with the first one that does.
  const { jsonrepair, JSONRepairError } = await import('jsonrepair');
  const attempt = (part: string): unknown => {
    const repaired = jsonrepair(part);
    // A quotation mark that was not escaped may as well end its text, and a text without an end may have gone on.
    const isDoubtful = escapes(repaired) > escapes(part) || part.replaceAll(TEXT, '').includes('"');
    return isDoubtful ? undefined : parseJson(repaired);
  };
  try {
    return attempt(text);
  } catch (error) {
    if (!(error instanceof JSONRepairError)) {
      throw error;
    }
    // The second of two objects without anything between them begins at this position.
    const isSecond = text[error.position] === '{' && text[error.position - 1] === '}';
    return isSecond ? parseJson(text.slice(0, error.position)) : undefined;
  }
}

function escapes(text: string): number {
  return text.split('\\"').length;
}
