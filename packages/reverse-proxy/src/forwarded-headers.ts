import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';

/** Headers for one connection only (RFC 9110, 7.6.1), and those that Node.js handles itself. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** What proxies that sign people in give the service: tokens of the identity provider, and their own sessions. */
const SIGN_IN_HEADER =
  /^(?:x-forwarded-access-token|x-auth-request-.+|x-amzn-oidc-.+|x-ms-token-.+|x-goog-iap-jwt-assertion|cf-access-jwt-assertion)$/;
const SIGN_IN_COOKIE =
  /^[\s=]*(?:_oauth2_proxy|AWSELBAuthSessionCookie-|AppServiceAuthSession|CF_Authorization|authelia_session)/;
/** `Connection` must not remove a message's length and destination. */
const NEVER_HOP_BY_HOP = ['content-length', 'host'];
const MIN_STATUS = 200;
const MAX_STATUS = 599;

export type HeaderRewrite = (headers: OutgoingHttpHeaders) => void;

/** Whether a pair of `Cookie`, or a whole `Set-Cookie`, signs a user in to the service. */
export type IsOwnCookie = (cookie: string) => boolean;

/** Whether a cookie signs the user in to the service, or to a proxy in front of it. */
export function isCredential(cookie: string, isOwnCookie: IsOwnCookie): boolean {
  return isOwnCookie(cookie) || SIGN_IN_COOKIE.test(cookie);
}

/** Removes the headers for the connection on which the message arrived, and what signs the user in. */
export function endToEndHeaders(headers: IncomingHttpHeaders, isOwnCookie: IsOwnCookie): OutgoingHttpHeaders {
  const named = namedByConnection(headers.connection);
  const forwarded: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !HOP_BY_HOP.has(name) && !named.has(name) && !SIGN_IN_HEADER.test(name)) {
      forwarded[name] = value;
    }
  }
  return withoutCredentials(forwarded, isOwnCookie);
}

/** Browsers send cookies to all ports of a host, and take them from all. */
function withoutCredentials(
  { cookie, 'set-cookie': setCookie, ...others }: OutgoingHttpHeaders,
  isOwnCookie: IsOwnCookie,
): OutgoingHttpHeaders {
  const sent = String(cookie ?? '')
    .split(/; */)
    .filter((pair) => !isCredential(pair, isOwnCookie));
  const set = [setCookie ?? []].flat().filter((one) => !isCredential(one, isOwnCookie));
  return {
    ...others,
    ...(sent.join('') !== '' && { cookie: sent.join('; ') }),
    ...(set.length > 0 && { 'set-cookie': set }),
  };
}

function namedByConnection(connection: string | string[] = []): ReadonlySet<string> {
  const names = String(connection)
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());
  return new Set(names.filter((name) => !NEVER_HOP_BY_HOP.includes(name)));
}

/** Keeps the framing of the body, so that the program reads exactly as much as the service did. */
export function framingHeaders({ headers }: IncomingMessage): OutgoingHttpHeaders {
  return headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' };
}

/** Names the client and the address it used, after what proxies in front of the service have set. */
export function forwardedHeaders({ headers, socket }: IncomingMessage): OutgoingHttpHeaders {
  const earlier = headers['x-forwarded-for'];
  const client = socket.remoteAddress ?? '';
  return {
    'x-forwarded-for': earlier === undefined ? client : `${String(earlier)}, ${client}`,
    'x-forwarded-proto': headers['x-forwarded-proto'] ?? 'http',
    'x-forwarded-host': headers['x-forwarded-host'] ?? headers.host ?? '',
  };
}

/** @throws Error unless it is a valid final status */
export function responseStatus(status = 0): number {
  if (status < MIN_STATUS || status > MAX_STATUS) {
    throw new Error(`invalid status ${status}`);
  }
  return status;
}

/** @throws TypeError for headers that Node.js would refuse to send */
export function responseHeaders(
  received: IncomingHttpHeaders,
  rewrite: HeaderRewrite,
  isOwnCookie: IsOwnCookie,
): OutgoingHttpHeaders {
  const headers = endToEndHeaders(received, isOwnCookie);
  rewrite(headers);
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    for (const each of Array.isArray(value) ? value : [value]) {
      validateHeaderValue(name, String(each));
    }
  }
  return headers;
}
