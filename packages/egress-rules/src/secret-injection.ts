import { type EgressHostRule, parseEgressHost } from './egress-rules.js';

/** The rule by which a proxy puts the value of a secret in, outside of sandboxes; as it is stored and shown. */
export interface SecretInjection {
  /** `name`, `name:port` or `http://name`, in lower case and punycode; at least one. */
  hosts: string[];
  inject: { header: string; format: string };
  methods?: string[];
  /** Exact, or prefixes where they end in `*`. */
  paths?: string[];
  /** That the user chose; others are random, and of one sandbox each. */
  placeholder?: string;
}

/** What is wrong with a rule in a request, and where; it never has the value that is refused. */
export interface RuleProblem {
  loc: string[];
  msg: string;
  type: string;
}

/** When a secret is in sandboxes; null: always. */
export const SECRET_PHASES = ['setup'] as const;
export type SecretPhase = (typeof SECRET_PHASES)[number];

/** What a request says of it: what is absent stays as it is stored, and null is what holds without. */
export interface InjectionChange {
  hosts?: readonly string[] | null;
  inject?: { header?: string | null; format?: string | null } | null;
  methods?: string[] | null;
  paths?: string[] | null;
  placeholder?: string | null;
  phase?: SecretPhase | null;
}

const VALUE = '{}';
const DEFAULT_INJECT = { header: 'Authorization', format: `Bearer ${VALUE}` };
/** Servers take heads of 8 KiB as a rule. */
const MAX_SENT = 8_192;
export const MIN_PLACEHOLDER = 16;
/** Of hosts, each with all methods and paths: proxies are told so, of each secret, every few seconds. */
const MAX_PLACES = 16_384;

/** A host of a secret, with whether its value may go there without TLS. Null: the text is none. */
export function parseSecretHost(text: string): (EgressHostRule & { http?: true }) | null {
  const [, scheme, rest = ''] = /^(https?:\/\/)?(.*)$/i.exec(text.trim()) ?? [];
  const host = parseEgressHost(rest);
  // Everything below one label (`*.com`) belongs to many.
  const isWide = host !== null && /^\*\.[^.]+$/.test(host.host);
  return host === null || isWide
    ? null
    : { ...host, ...(scheme?.toLowerCase() === 'http://' && { http: true as const }) };
}

/** @param text one that `parseSecretHost` takes */
function normalHost(text: string): string {
  const { host, port, http } = parseSecretHost(text) ?? { host: text };
  const name = host.includes(':') ? `[${host}]` : host;
  return `${http ? 'http://' : ''}${name}${port === undefined ? '' : `:${port}`}`;
}

/** The rule after a change; null: the secret has none, and its value is in sandboxes. */
export function changedInjection(
  stored: SecretInjection | null,
  { hosts: given, ...change }: InjectionChange,
): SecretInjection | null {
  const hosts = given === undefined ? (stored?.hosts ?? []) : [...new Set((given ?? []).map(normalHost))];
  if (hosts.length === 0) {
    return null;
  }
  const kept = <K extends 'methods' | 'paths' | 'placeholder'>(
    name: K,
  ): Pick<SecretInjection, K> | object => {
    const value = change[name] === undefined ? stored?.[name] : change[name];
    return value === undefined || value === null || value.length === 0 ? {} : { [name]: value };
  };
  const inject = change.inject === undefined ? stored?.inject : change.inject;
  const header = inject?.header ?? DEFAULT_INJECT.header;
  const isDefault = header.toLowerCase() === DEFAULT_INJECT.header.toLowerCase();
  return {
    hosts,
    // Another header has no scheme as a rule.
    inject: { header, format: inject?.format ?? (isDefault ? DEFAULT_INJECT.format : VALUE) },
    ...kept('methods'),
    ...kept('paths'),
    ...kept('placeholder'),
  };
}

/** Why a secret cannot be put in by its rule: it signs, is no text of a header, or its placeholder tells it. */
export function injectionProblems(
  { name, value }: { name: string; value: string },
  injection: SecretInjection | null,
  loc: readonly string[] = ['body'],
): RuleProblem[] {
  if (injection === null) {
    return [];
  }
  const signs = signingKind(name, value);
  if (signs !== null) {
    const msg = `${signs} signs requests and is never sent, so it cannot be put in outside of the sandbox. Leave hosts out to keep it in the sandbox, in clear, or store a token that is sent as it is.`;
    return [{ loc: [...loc, 'hosts'], msg, type: 'not_injectable' }];
  }
  const problem = (member: string, msg: string): RuleProblem[] => [
    { loc: [...loc, member], msg, type: 'value_error' },
  ];
  // What follows the text in a file is no part of a token.
  if (value === '' || value.length > MAX_SENT || !/^[\t -~\u00A0-\u00FF]+$/.test(value)) {
    return problem(
      'value',
      `Expected 1 to ${MAX_SENT} characters of one line, without a line break at the end: with hosts, the value is sent in a header.`,
    );
  }
  const { placeholder, hosts, methods = [], paths = [] } = injection;
  if (hosts.join().length + hosts.length * [...methods, ...paths].join().length > MAX_PLACES) {
    return problem(
      'hosts',
      `Expected hosts, each counted with all paths and methods, of ${MAX_PLACES} characters in all: shorten the paths, or end some in *.`,
    );
  }
  if (placeholder !== undefined && (placeholder.includes(value) || value.includes(placeholder))) {
    return problem('placeholder', 'Expected a text that tells nothing of the value: it is within the other.');
  }
  return [];
}

function signingKind(name: string, value: string): string | null {
  if (/(^|_)AWS_SECRET_ACCESS_KEY$/i.test(name)) {
    return 'A secret access key of AWS';
  }
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(value)) {
    return 'A private key';
  }
  return /"type"\s*:\s*"service_account"/.test(value) || /"private_key"\s*:/.test(value)
    ? "A service account's key"
    : null;
}

/** A placeholder that another secret of the installation has. */
export function placeholderTaken(loc: readonly string[] = ['body']): RuleProblem {
  const msg = 'Expected a placeholder that no other secret has; leave it out for a random one.';
  return { loc: [...loc, 'placeholder'], msg, type: 'value_error' };
}
