import { jsonList, jsonText } from '../../common/json-access.js';

const MAX_DETAIL = 500;
const NO_REASON = 'no reason given';

/**
 * An agent server's own words about a failure, clipped. The stock server's answer to a request that it does not
 * understand repeats what it was sent, which may be a key or a secret: of such an answer only places and sentences are
 * taken.
 *
 * @param text body of its answer
 */
export function failureDetail(text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Not every failure is JSON; then the text itself is all there is.
    return text.slice(0, MAX_DETAIL) || NO_REASON;
  }
  const detail = jsonText(parsed, 'detail') ?? jsonList(parsed, 'detail').map(problem).join('; ');
  return detail.slice(0, MAX_DETAIL) || NO_REASON;
}

function problem(value: unknown): string {
  const place = jsonList(value, 'loc').filter((part) => typeof part === 'string' || typeof part === 'number');
  return `${place.join('.') || 'request'}: ${jsonText(value, 'msg') ?? NO_REASON}`;
}
