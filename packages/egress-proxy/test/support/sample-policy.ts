import type { EgressInjection, EgressPolicy, EgressRules } from '../../src/protocol.js';
import { parseAuthority, type Target } from '../../src/target.js';

export const SANDBOX = 'sandbox-1';
export const CREDENTIAL = 'credential-of-sandbox-1';
export const PLACEHOLDER = 'ghp_0000placeholder0000000000000000000000';
export const VALUE = 'ghp_9999thisIsTheRealValue999999999999999';

export function samplePolicy(changes: Partial<EgressPolicy> = {}): EgressPolicy {
  return {
    sandbox: SANDBOX,
    phase: 'agent',
    layers: [],
    injections: [],
    networks: [],
    authority: { certificate: '', key: '' },
    once: [],
    maxAgeSeconds: 0,
    ...changes,
  };
}

export function denying(allow: EgressRules['allow'], deny: EgressRules['deny'] = []): EgressRules {
  return { default: 'deny', allow, deny };
}

export function allowing(allow: EgressRules['allow'], deny: EgressRules['deny'] = []): EgressRules {
  return { default: 'allow', allow, deny };
}

export function injection(changes: Partial<EgressInjection> = {}): EgressInjection {
  return {
    placeholder: PLACEHOLDER,
    value: VALUE,
    hosts: [{ host: 'api.example.com' }],
    headers: ['authorization'],
    ...changes,
  };
}

/** `https://name:port` or `http://name:port`. */
export function target(address: string): Target {
  const isTls = address.startsWith('https:');
  const parsed = parseAuthority(address.replace(/^https?:\/\//, ''), {
    isTls,
    defaultPort: isTls ? 443 : 80,
  });
  if (parsed === null) {
    throw new Error(`${address} is no target`);
  }
  return parsed;
}
