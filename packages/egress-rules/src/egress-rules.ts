import { domainToASCII } from 'node:url';
import { isIP, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { EGRESS_PRESETS } from './egress-presets.js';

/** A host that sandboxes may reach. `host` is a name in lower case and punycode, `*.name`, or an address. */
export interface EgressHostRule {
  host: string;
  /** Undefined: 80 and 443. */
  port?: number;
  methods?: string[];
  paths?: string[];
}

/** What holds in one phase. Presets are replaced by their hosts. */
export interface EgressPhaseRules {
  default: 'allow' | 'deny';
  allow: EgressHostRule[];
  deny: EgressHostRule[];
}

/** Rules of one place: of the operator, of a specification, of settings, of a start. */
export interface EgressRuleSet extends EgressPhaseRules {
  /** What holds in their place until the agent begins. */
  setup?: EgressPhaseRules | undefined;
}

/** Of rules as users write them, in characters of JSON. */
export const MAX_WRITTEN_RULES = 16_384;

export type EgressPresets = Readonly<Record<string, readonly EgressHostRule[]>>;

/** In place of a name: the git hosts that the user has tokens for, which are known when a sandbox asks. */
export const GIT_HOSTS: EgressHostRule = { host: '@git' };

const MAX_HOSTS = 500;
const MAX_HOST_LENGTH = 260;
const HOST_EXPECTED =
  'must be a host (api.example.com, *.example.com, 192.0.2.7), with a port where it is not 80 or 443';
const NAME = /^(?=.{1,253}$)(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;
const PRESET_NAME = /^[a-z][a-z0-9-]{0,40}$/;

/**
 * Parses a host and port; null when the text is no host. A name loses its trailing dot, and an IPv6 address stands in
 * brackets, as in URLs.
 */
export function parseEgressHost(text: string): Pick<EgressHostRule, 'host' | 'port'> | null {
  const [, bracketed, plain = '', digits] =
    /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text.trim()) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > 65_535)) {
    return null;
  }
  const withPort = port === undefined ? {} : { port };
  if (bracketed !== undefined) {
    return isIPv6(bracketed) ? { host: ipaddr.parse(bracketed).toString(), ...withPort } : null;
  }
  const below = plain.startsWith('*.') ? '*.' : '';
  const name = /[/?#@\\]/.test(plain) ? '' : domainToASCII(plain.slice(below.length).replace(/\.$/, ''));
  // Digits at the end make an address of it for resolvers, whatever its form.
  const isName = NAME.test(`${below}${name}`) && !/(^|\.)(\d+|0x[\da-f]*)$/.test(name);
  return isName || (below === '' && isIP(name) === 4 && name === plain)
    ? { host: `${below}${name}`, ...withPort }
    : null;
}

const hostText = z
  .string()
  .max(MAX_HOST_LENGTH)
  .transform((text, context) => {
    const parsed = parseEgressHost(text);
    if (parsed === null) {
      context.addIssue({ code: 'custom', message: `"${text}" ${HOST_EXPECTED}` });
      return z.NEVER;
    }
    return parsed;
  });

const hostRule = z
  .strictObject({
    host: hostText,
    methods: z
      .array(z.string().regex(/^[A-Z]{1,20}$/, 'must be a method in upper case'))
      .min(1)
      .max(20),
    paths: z
      .array(
        z
          .string()
          .max(1_000)
          .regex(/^\/[^?#*]*\*?$/, 'must be a path, or the beginning of one and a *'),
      )
      .min(1)
      .max(100),
  })
  .partial({ methods: true, paths: true })
  .transform(({ host, ...rest }): EgressHostRule => ({ ...host, ...rest }));

const asObject = (entry: unknown): unknown => (typeof entry === 'string' ? { host: entry } : entry);
const hostRules = z.array(hostRule).max(MAX_HOSTS);

/** `{"version": 1, "presets": {"npm": ["registry.npmjs.org"]}}` */
export const egressPresetsSchema = z
  .strictObject({
    version: z.literal(1),
    presets: namedValues(
      z.string().regex(PRESET_NAME, 'must be lower-case letters, digits or -'),
      z.preprocess((hosts) => (Array.isArray(hosts) ? hosts.map(asObject) : hosts), hostRules),
    ),
  })
  .transform(({ presets }): EgressPresets => presets);

export const BUILT_IN_PRESETS: EgressPresets = {
  ...egressPresetsSchema.parse({ version: 1, presets: EGRESS_PRESETS }),
  git: [GIT_HOSTS],
};

/** Rules as they are written. A single word names a preset; a host of one word is written as an object. */
export function egressSchema(presets: EgressPresets): z.ZodType<EgressRuleSet> {
  const allowed = z.unknown().transform((entry, context): EgressHostRule[] => {
    if (typeof entry === 'string' && PRESET_NAME.test(entry)) {
      if (Object.hasOwn(presets, entry)) {
        return [...(presets[entry] ?? [])];
      }
      context.addIssue({
        code: 'custom',
        message: `"${entry}" is no preset (${Object.keys(presets).join(', ')}); a host of one word is written as {"host": "${entry}"}`,
      });
      return z.NEVER;
    }
    const parsed = hostRule.safeParse(asObject(entry));
    if (parsed.success) {
      return [parsed.data];
    }
    parsed.error.issues.forEach(({ message, path }) =>
      context.addIssue({ code: 'custom', message, path: [...path] }),
    );
    return z.NEVER;
  });
  const ofPhase = {
    default: z.enum(['allow', 'deny']).default('deny'),
    allow: z.array(allowed).max(MAX_HOSTS).default([]).transform(unique),
    deny: z.array(hostText).max(MAX_HOSTS).default([]),
  };
  return z.strictObject({ ...ofPhase, setup: z.strictObject(ofPhase).optional() });
}

/** A list may be named many times. */
function unique(entries: readonly EgressHostRule[][]): EgressHostRule[] {
  return [...new Map(entries.flat().map((entry) => [JSON.stringify(entry), entry])).values()];
}
