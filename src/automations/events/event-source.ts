import type { IncomingHttpHeaders } from 'node:http';
import { jsonText } from '@slipway/common/json-access.js';
import { evaluate } from '../definitions/event-filter.js';
import type { AutomationWebhook } from './automation-webhook.repository.js';
import {
  header,
  isHmacSigned,
  isSignedByGitHub,
  isSignedByGitLab,
  type SignedEvent,
  SIGNATURES,
} from './event-signature.js';

export interface EventSource {
  isSigned: (event: SignedEvent) => boolean | Promise<boolean>;
  /** Null where the host sends none. */
  deliveryId: (headers: IncomingHttpHeaders) => string | null;
  /** Such as `issues.labeled`. */
  eventKey: (headers: IncomingHttpHeaders, payload: unknown) => string;
  /**
   * Whether the body says when what it tells of happened: then it comes once, under whatever delivery id, which most
   * signatures do not cover.
   */
  saysWhen: (payload: unknown) => boolean;
}

const MAX_KEY = 500;
const MAX_DELIVERY_ID = 200;
const UNKNOWN_KEY = 'unknown';

const BITBUCKET: Pick<EventSource, 'isSigned' | 'eventKey'> = {
  isSigned: (event) => isHmacSigned(event, 'x-hub-signature'),
  eventKey: (headers) => header(headers, 'x-event-key').replaceAll(':', '.'),
};

const HOSTS: Readonly<Record<string, Omit<EventSource, 'saysWhen'>>> = {
  github: {
    isSigned: isSignedByGitHub,
    deliveryId: (headers) => header(headers, 'x-github-delivery'),
    eventKey: (headers, payload) => joined(header(headers, 'x-github-event'), jsonText(payload, 'action')),
  },
  gitlab: {
    isSigned: isSignedByGitLab,
    deliveryId: (headers) => header(headers, 'x-gitlab-event-uuid'),
    eventKey: (_headers, payload) =>
      joined(
        jsonText(payload, 'object_kind') ?? jsonText(payload, 'event_name') ?? '',
        jsonText(payload, 'object_attributes', 'action'),
      ),
  },
  bitbucket: { ...BITBUCKET, deliveryId: (headers) => header(headers, 'x-request-uuid') },
  bitbucket_data_center: { ...BITBUCKET, deliveryId: (headers) => header(headers, 'x-request-id') },
};

export const BUILT_IN_SOURCES = Object.keys(HOSTS);

export function eventSource(webhook: AutomationWebhook): EventSource {
  const host = Object.hasOwn(HOSTS, webhook.source) ? HOSTS[webhook.source] : undefined;
  return bounded(host ? { ...host, saysWhen: isTimed } : ownSource(webhook));
}

function ownSource(webhook: AutomationWebhook): EventSource {
  const { eventKeyExpr, signatureHeader, signatureScheme } = webhook;
  // The signature covers this one.
  const idHeader = signatureScheme === 'standard_webhooks' ? 'webhook-id' : webhook.eventIdHeader;
  return {
    isSigned: (event) => SIGNATURES[signatureScheme](event, signatureHeader),
    deliveryId: (headers) => (idHeader === null ? null : header(headers, idHeader)),
    eventKey: (_headers, payload) => {
      const key = evaluate(eventKeyExpr, payload);
      return typeof key === 'string' ? key : '';
    },
    saysWhen: () => false,
  };
}

/** An event without one, such as `workflow_dispatch`, has the time of its repository alone. */
function isTimed(payload: unknown): boolean {
  const { repository: _repository, project: _project, ...parts } = Object(payload) as Record<string, unknown>;
  return [payload, ...Object.values(parts)].some((part) =>
    ['updated_at', 'updated_on', 'date'].some((member) => jsonText(part, member) !== null),
  );
}

function bounded({ deliveryId, eventKey, ...source }: EventSource): EventSource {
  return {
    ...source,
    deliveryId: (headers) => deliveryId(headers)?.slice(0, MAX_DELIVERY_ID) || null,
    eventKey: (headers, payload) => eventKey(headers, payload).slice(0, MAX_KEY) || UNKNOWN_KEY,
  };
}

function joined(type: string, action: string | null): string {
  return action === null || action === '' ? type : `${type}.${action}`;
}
