import { unmaskableReason } from '@slipway/common/secret-mask.js';
import { type Asked, injectionsFor } from './decision.js';
import type { EgressInjection, EgressPolicy } from './protocol.js';

export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** A text that went to the host, and what stands for it in the sandbox. */
export interface Replacement {
  sent: string;
  shown: string;
}

interface Injected {
  headers: HeaderLines;
  path: string;
  /** What a response may echo of this request. */
  replacements: Replacement[];
  /** Those whose value was put in. */
  used: EgressInjection[];
}

const BASIC = /^(basic\s+)([a-z0-9+/]+={0,2})\s*$/i;
const BEARER = /^\s*(?:(?:bearer|token|apikey|api-key|key)\s+)?(\S+)\s*$/i;

/** Puts the values in place of placeholders, in the headers and members of the query that each credential names. */
export function injectCredentials(
  policy: EgressPolicy,
  asked: Required<Omit<Asked, 'isUnread'>>,
  headers: HeaderLines,
): Injected {
  const injections = injectionsFor(policy, asked);
  const replacements: Replacement[] = [];
  const note = (sent: string, shown: string): string => {
    if (sent !== shown) {
      replacements.push({ sent, shown });
    }
    return sent;
  };
  const used = new Set<EgressInjection>();
  const put = (text: string, wanted: readonly EgressInjection[]): string => {
    wanted.filter(({ placeholder }) => text.includes(placeholder)).forEach((each) => used.add(each));
    return withValues(text, wanted);
  };
  const lines = headers.map(([name, value]) => {
    const wanted = injections.filter(({ headers: names }) => names.includes(name.toLowerCase()));
    const plain = put(
      value,
      wanted.filter((each) => hasForm(value, each)),
    );
    const [, scheme, encoded] = BASIC.exec(plain) ?? [];
    if (
      plain !== value ||
      scheme === undefined ||
      encoded === undefined ||
      name.toLowerCase() !== 'authorization'
    ) {
      return [name, plain] as const;
    }
    const basic = put(decodeBase64(encoded), wanted);
    const isChanged = basic !== decodeBase64(encoded);
    return [
      name,
      isChanged ? `${scheme}${note(Buffer.from(basic, 'latin1').toString('base64'), encoded)}` : value,
    ] as const;
  });
  const path = mapQuery(asked.path, (name, member) =>
    put(
      member,
      injections.filter(({ query }) => query?.includes(name)),
    ),
  );
  return { headers: lines, path, replacements, used: [...used] };
}

/** The scheme before a placeholder may be in upper or lower case. */
function hasForm(header: string, { format, placeholder }: EgressInjection): boolean {
  const [before = '', after = ''] = format?.trim().split('{}') ?? [];
  const text = header.trim();
  const end = text.length - after.length;
  return (
    format === undefined ||
    (text.slice(0, before.length).toLowerCase() === before.toLowerCase() &&
      text.slice(before.length, end) === placeholder &&
      text.slice(end) === after)
  );
}

function withValues(text: string, injections: readonly EgressInjection[]): string {
  return injections.reduce(
    (result, { placeholder, value }) => result.replaceAll(placeholder, () => value),
    text,
  );
}

/** What a response from these hosts may echo: the values of all credentials that go there, as texts are usually written. */
export function echoesOf(policy: EgressPolicy, { target }: Asked): Replacement[] {
  const echoes = injectionsFor(policy, { target }).flatMap(writtenForms);
  // Of those alike, the first.
  return [...new Map(echoes.toReversed().map((echo) => [echo.sent, echo])).values()].toReversed();
}

/** Made once for a policy, not for each request. */
const known = new WeakMap<EgressInjection, Replacement[]>();

function writtenForms(injection: EgressInjection): Replacement[] {
  const { value, placeholder } = injection;
  const forms =
    known.get(injection) ??
    (unmaskableReason(value) === null ? FORMS : []).map((written) => ({
      sent: written(value),
      shown: written(placeholder),
    }));
  known.set(injection, forms);
  return forms;
}

const FORMS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => JSON.stringify(text).slice(1, -1),
  encodeURIComponent,
  (text) => Buffer.from(text).toString('base64'),
];

/** Where credentials stand, besides `Authorization`: of models, and of git hosts. */
const CREDENTIAL_HEADERS = new Set([
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'private-token',
  'job-token',
  'deploy-token',
  'x-auth-token',
]);
const CREDENTIAL_MEMBERS = new Set([
  'key',
  'api_key',
  'access_token',
  'private_token',
  'job_token',
  // Of all APIs of Google, and of AWS.
  'oauth_token',
  'bearer_token',
  'x-amz-signature',
]);
/** A user beside a placeholder; 39 is the longest login of a git host, and the shortest token that stands alone is longer. */
const USER = /^[\w.+-]{0,39}$|^[^\s@:]{1,64}@[^\s@:]{1,189}$/;
const NO_PASSWORD = ['', 'x-oauth-basic'];

/** Where WebSockets of browsers put a key, as they cannot send other headers: `openai-insecure-api-key.KEY`. */
const KEY_OF_SOCKET = /key|token|bearer/i;

/** Whether a request brings a credential that is not the sandbox's own: one of a stranger would carry data to their account. */
export function hasForeignCredential(policy: EgressPolicy, path: string, headers: HeaderLines): boolean {
  const own = new Set(policy.injections.map(({ placeholder }) => placeholder));
  let isForeign = headers.some(([name, value]) => isForeignHeader(own, name, value));
  // Some servers take semicolons for ampersands.
  mapQuery(path.replaceAll(';', '&'), (name, value) => {
    isForeign ||= CREDENTIAL_MEMBERS.has(name.toLowerCase()) && value !== '' && !own.has(value);
    return value;
  });
  return isForeign;
}

function isForeignHeader(own: ReadonlySet<string>, name: string, value: string): boolean {
  // Some servers take underscores for hyphens.
  const plain = name.toLowerCase().replaceAll('_', '-');
  if (value.trim() === '') {
    return false;
  }
  if (plain === 'authorization') {
    return !isOwnAuthorization(own, value);
  }
  if (plain === 'sec-websocket-protocol') {
    const offered = value.split(',').map((text) => text.trim());
    return offered.some(
      (text) => KEY_OF_SOCKET.test(text) && ![...own].some((each) => text.endsWith(`.${each}`)),
    );
  }
  return CREDENTIAL_HEADERS.has(plain) && !own.has(value.trim());
}

function isOwnAuthorization(own: ReadonlySet<string>, value: string): boolean {
  const [, , encoded] = BASIC.exec(value) ?? [];
  if (encoded === undefined) {
    return own.has(BEARER.exec(value)?.[1] ?? '');
  }
  const [, user = '', password = ''] = /^([^:]*):?(.*)$/s.exec(decodeBase64(encoded)) ?? [];
  return own.has(password) ? USER.test(user) : own.has(user) && NO_PASSWORD.includes(password);
}

/** The path with other values in its query; members that stay the same are left as they were written. */
function mapQuery(path: string, change: (name: string, value: string) => string): string {
  const start = path.indexOf('?');
  if (start < 0) {
    return path;
  }
  const members = path
    .slice(start + 1)
    .split('&')
    .map((member) => {
      const [, name = '', value] = /^([^=]*)=?(.*)$/s.exec(member) ?? [];
      const given = decodeMember(value ?? '');
      const changed = change(decodeMember(name), given);
      return changed === given ? member : `${name}=${encodeURIComponent(changed)}`;
    });
  return `${path.slice(0, start)}?${members.join('&')}`;
}

function decodeMember(text: string): string {
  const spaced = text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch (error) {
    if (error instanceof URIError) {
      return spaced;
    }
    throw error;
  }
}

/** Bytes as characters, so that what is no text is encoded again as it was. */
function decodeBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('latin1');
}
