import { UpstreamError } from './upstream-error.js';

/**
 * The JSON value of a buffered answer (`application/json` or any `+json` type).
 *
 * @param origin Origin for the error; the address itself may carry secrets.
 * @throws UpstreamError `malformed` for another content type or broken JSON. Neither the error nor its cause
 *   holds a piece of the body.
 */
export async function readJson(response: Response, origin: string): Promise<unknown> {
  const type = (response.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!/^(application|text)\/(.+\+)?json$/.test(type)) {
    throw new UpstreamError('malformed', origin);
  }
  const text = await response.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // A SyntaxError quotes the text it stumbled over, so it does not become the cause.
    throw new UpstreamError('malformed', origin);
  }
  return value;
}
