import { parseJson } from '@slipway/common/json-access.js';
import type { SandboxBackendKind } from '@slipway/sandboxes/sandbox-backend.js';
import {
  ChoiceVariable,
  For,
  FromVariable,
  IntegerVariable,
  MatchingVariable,
  PathVariable,
  Satisfies,
} from './variables.js';

/** As long as a random key of 128 bits in hexadecimal, at least. */
const PROXY_KEY = /^[\w+/=.-]{32,256}$/;

/** Backends that can give sandboxes no way out but the egress proxy. */
export const BACKENDS_WITH_EGRESS: readonly SandboxBackendKind[] = ['process', 'kubernetes'];

/** What sandboxes may reach. */
export class EgressConfig {
  @For('process', 'kubernetes')
  @FromVariable(
    'SANDBOX_EGRESS',
    'What all sandboxes may reach, by name; a specification (`egress`) can only narrow it. They then reach everything through a proxy of the service, and hosts of the model, of git and of tool servers stay open. By default nothing is restricted.',
    {
      form: 'JSON, such as `{"default":"deny","allow":["common","*.example.com"],"deny":[]}`',
      convert: (text) => parseJson(text) ?? text,
    },
  )
  rules: unknown;

  @For('process', 'kubernetes')
  @PathVariable(
    'SANDBOX_EGRESS_PRESETS',
    'YAML or JSON with lists of hosts that rules name, in place of the built-in ones: `{"version": 1, "presets": {"npm": ["registry.npmjs.org"]}}`.',
  )
  presetsFile: string | null;

  @For('process', 'kubernetes')
  @IntegerVariable(
    'SANDBOX_EGRESS_PORT',
    "Port of this machine at which the proxy listens, on loopback, where there are rules or credentials are outside; for pods, that of the proxy's Service. Sandboxes that run know it, so keep it.",
    { default: '3180', minimum: 1, maximum: 65_535 },
  )
  port: number;

  @For('kubernetes')
  @MatchingVariable(
    'SANDBOX_EGRESS_HOST',
    'Where pods find the proxy: a name, which the service resolves when a sandbox starts, or an address. By default `slipway-egress.<namespace of the sandboxes>.svc`.',
    /^[A-Za-z0-9.:-]{1,253}$/,
    'must be a host name or an IP address, without scheme and port',
  )
  host: string | null;

  @For('kubernetes')
  @FromVariable(
    'EGRESS_PROXY_KEY',
    'What the service and the pods of its egress proxy know each other by. Two, by a comma, while one replaces the other: the service takes both, the proxy shows the first.',
    { form: 'a key, or two', convert: (text) => text.split(',').map((key) => key.trim()), isSecret: true },
    Satisfies(
      (keys) => Array.isArray(keys) && keys.length <= 2 && keys.every((key) => PROXY_KEY.test(String(key))),
      'must be one or two keys of 32 to 256 letters, digits or - _ + / = . each; make one with: openssl rand -hex 32',
    ),
  )
  proxyKeys: string[] | null;

  @For('process', 'kubernetes')
  @ChoiceVariable(
    'SANDBOX_CREDENTIALS',
    "Whether the model's key, git tokens, keys of tool servers and secrets with hosts are in sandboxes, or placeholders of them, for which the proxy puts the values in on their way to the hosts that they belong to.",
    ['inside', 'outside'],
    { default: 'inside' },
  )
  credentials: 'inside' | 'outside';
}
