import { cleanText } from '@slipway/common/well-formed-text.js';
import type { ReportedCall } from '@slipway/egress-proxy/protocol.js';

const MAX_NAME = 200;
const UNKNOWN = 'unknown model';

interface CalledModel {
  /** Under which it is counted. */
  name: string;
  /** By which its price is looked for, in this order. */
  priced: string[];
}

/**
 * The model of a call: the one that its user named where that was asked for, else the one that the request names. A tool may call a
 * dearer one with the same key.
 */
export function calledModel({
  model: configured,
  asked,
  answeredBy,
}: Pick<ReportedCall, 'model' | 'asked' | 'answeredBy'>): CalledModel {
  const isConfigured = configured !== null && (asked === null || isSame(configured, asked));
  const provider = configured === null ? null : (/^([^/]+)\//.exec(configured)?.[1] ?? null);
  const atProvider = (name: string | null): string[] =>
    name === null ? [] : provider === null || name.includes('/') ? [name] : [`${provider}/${name}`, name];
  const named = isConfigured ? configured : (asked ?? answeredBy ?? UNKNOWN);
  return {
    name: cleanText(named.slice(0, MAX_NAME)),
    priced: isConfigured
      ? [configured, ...atProvider(answeredBy)]
      : [...atProvider(asked), ...atProvider(answeredBy)],
  };
}

/** Requests leave out the provider before the name. */
function isSame(configured: string, asked: string): boolean {
  return configured === asked || configured.endsWith(`/${asked}`);
}
