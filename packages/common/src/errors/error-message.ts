import { types } from 'node:util';

const MAX_CAUSES = 10;

export function errorMessage(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/** The message with those of its causes, `fetch failed: connect ECONNREFUSED 127.0.0.1:9`, and what to do about it. */
export function errorWithCauses(error: unknown): string {
  const messages: string[] = [];
  const seen = new Set<unknown>();
  const add = (value: unknown): void => {
    if (value === undefined || value === null || seen.has(value) || seen.size >= MAX_CAUSES) {
      return;
    }
    seen.add(value);
    const text = isError(value) || typeof value === 'string' ? errorMessage(value) : '';
    const message = text || errorCode(value);
    if (message && !messages.some((known) => known.includes(message))) {
      messages.push(message);
    }
    if (value instanceof AggregateError) {
      value.errors.forEach(add);
    }
    add(isError(value) ? value.cause : undefined);
  };
  add(error);
  messages.push(...[connectionProblem(error)].filter((problem) => problem !== null));
  return messages.join(': ') || errorMessage(error);
}

export function errorStack(error: unknown): string {
  return isError(error) ? (error.stack ?? error.message) : String(error);
}

/** The `code` of a system or PostgreSQL error (`ENOENT`, `57P03`). */
export function errorCode(error: unknown): string | undefined {
  const isObject = typeof error === 'object' && error !== null;
  return isObject && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Codes for certificates whose authority is unknown here (X509_verify_cert_error_string(3)). */
const UNKNOWN_AUTHORITY =
  /^(UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)|(DEPTH_ZERO_)?SELF_SIGNED_CERT.*)$/;
/** Messages of `fetch` and undici's agent, then of Node.js itself. */
const REFUSED_TUNNEL = /^Proxy response \((\d{3})\)|^Failed to establish tunnel .* (\d{3})\b/;

/** The clause that tells an operator of a proxy or a certificate in the way of a connection; null for other failures. */
export function connectionProblem(error: unknown, causes = MAX_CAUSES): string | null {
  if (!isError(error) || causes === 0) {
    return null;
  }
  const code = errorCode(error) ?? '';
  if (UNKNOWN_AUTHORITY.test(code)) {
    return `the authority of its certificate has to be in the file that NODE_EXTRA_CA_CERTS names (${code})`;
  }
  const [, ofUndici, ofNode] = REFUSED_TUNNEL.exec(error.message) ?? [];
  const status = ofUndici ?? ofNode;
  if (status === undefined) {
    return connectionProblem(error.cause, causes - 1);
  }
  if (status === '407') {
    return 'the proxy answered 407: HTTPS_PROXY needs the right user and password';
  }
  return Number(status) < 500
    ? `the proxy answered ${status}: it has to let this server through, or NO_PROXY has to name it`
    : `the proxy answered ${status}: it cannot reach this server, which NO_PROXY may have to name`;
}

/** Returns null instead of throwing an error with such a code: `ENOENT` for a file that is not there. */
export async function unlessCode<T>(codes: string | readonly string[], work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if ([codes].flat().includes(errorCode(error) ?? '')) {
      return null;
    }
    throw error;
  }
}

/** Recognises errors of another realm, too. */
function isError(error: unknown): error is Error {
  return error instanceof Error || types.isNativeError(error);
}
