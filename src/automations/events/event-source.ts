import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { verify } from '@octokit/webhooks-methods';
import { jsonText } from '@slipway/common/json-access.js';
import {
  MalformedBodyError,
  parseJsonBody,
  readRawBody,
  receiveByDeadline,
} from '@slipway/common/requests/json-body.js';
import { evaluate } from '../definitions/event-filter.js';
import type { AutomationEvent } from './automation-event.repository.js';
import type { AutomationWebhook, SignatureScheme } from './automation-webhook.repository.js';

const MAX_BYTES = 1_048_576;
const DEADLINE_MS = 20_000;
/** Pushes name every file of every commit. */
const MAX_VALUES = 50_000;

/** The bytes that were signed. @throws MalformedBodyError beyond a mebibyte, before any of it is parsed */
export async function readEventBody(request: IncomingMessage): Promise<Buffer> {
  return receiveByDeadline(request, DEADLINE_MS, () => readRawBody(request, MAX_BYTES));
}

/** JSON, or a form with JSON in `payload`, which GitHub sends by default. @throws MalformedBodyError for others */
export function parseEvent({ header, body }: SentEvent): unknown {
  const isForm = header('content-type').startsWith('application/x-www-form-urlencoded');
  const text = body.toString('utf8');
  const payload = parseJsonBody(isForm ? (new URLSearchParams(text).get('payload') ?? '') : text, MAX_VALUES);
  if (payload === null) {
    throw new MalformedBodyError('syntax');
  }
  return payload;
}

/** By its name; empty where the host sends none. */
type Header = (name: string) => string;

export interface SentEvent {
  header: Header;
  /** The bytes as they came: a parser may read two bodies as one. */
  body: Buffer;
}

interface SignedEvent extends SentEvent {
  secret: string;
  now: number;
}

type Signed = boolean | Promise<boolean>;

interface Source {
  isSigned: (event: SignedEvent) => Signed;
  /** The first that is sent tells repetitions. */
  idHeaders: readonly string[];
  /** Such as `issues.labeled`. */
  keyOf: (header: Header, payload: unknown) => unknown;
}

const MAX_KEY = 500;
const MAX_DELIVERY_ID = 200;
/** Older deliveries may have been recorded and sent again. */
const REPLAY_WINDOW_SECONDS = 300;
const STANDARD_SECRET = /^(?:whsec_)?([A-Za-z0-9+/]+={0,2})$/;

const SCHEMES: Record<SignatureScheme, (event: SignedEvent, headerName: string) => Signed> = {
  hmac_sha256_hex: ({ header, body, secret }, headerName) => {
    const given = header(headerName).toLowerCase();
    // The library throws for an empty body.
    return (
      body.length > 0 && verify(secret, body.toString('utf8'), given.replace(/^(?:sha256=)?/, 'sha256='))
    );
  },
  // https://www.standardwebhooks.com, which GitLab's signing tokens follow.
  standard_webhooks: ({ header, body, secret, now }) => {
    const [id, timestamp] = [header('webhook-id'), header('webhook-timestamp')];
    const [, encoded] = STANDARD_SECRET.exec(secret) ?? [];
    const key = encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64');
    const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
    const given = header('webhook-signature').split(' ').slice(0, 10);
    return given.some((each) => equals(each, `v1,${expected}`)) && isRecent(timestamp, now);
  },
  slack_v0: ({ header, body, secret, now }, headerName) => {
    const timestamp = header('x-slack-request-timestamp');
    const expected = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex');
    return equals(header(headerName), `v0=${expected}`) && isRecent(timestamp, now);
  },
};

const BITBUCKET: Omit<Source, 'idHeaders'> = {
  isSigned: (event) => SCHEMES.hmac_sha256_hex(event, 'x-hub-signature'),
  keyOf: (header) => header('x-event-key').replaceAll(':', '.'),
};

const HOSTS: Readonly<Record<string, Source>> = {
  github: {
    isSigned: (event) => SCHEMES.hmac_sha256_hex(event, 'x-hub-signature-256'),
    idHeaders: ['x-github-delivery'],
    keyOf: (header, payload) => joined(header('x-github-event'), jsonText(payload, 'action')),
  },
  gitlab: {
    // A signature where there is a signing token, else the secret token as it is.
    isSigned: (event) =>
      event.header('webhook-signature') === ''
        ? equals(event.header('x-gitlab-token'), event.secret)
        : SCHEMES.standard_webhooks(event, ''),
    // The first two are the same, one of them signed. The last one, for servers before 17.4, changes when it is sent again.
    idHeaders: ['webhook-id', 'idempotency-key', 'x-gitlab-event-uuid'],
    keyOf: (_header, payload) =>
      joined(
        jsonText(payload, 'object_kind') ?? jsonText(payload, 'event_name'),
        jsonText(payload, 'object_attributes', 'action') ?? jsonText(payload, 'action'),
      ),
  },
  bitbucket: { ...BITBUCKET, idHeaders: ['x-request-uuid'] },
  bitbucket_data_center: { ...BITBUCKET, idHeaders: ['x-request-id'] },
};

export const BUILT_IN_SOURCES = Object.keys(HOSTS);

export function sourceOf(webhook: AutomationWebhook): Source {
  const { source, event_key_expr, signature_header, signature_scheme, event_id_header } = webhook;
  const host = Object.hasOwn(HOSTS, source) ? HOSTS[source] : undefined;
  return (
    host ?? {
      isSigned: (event) => SCHEMES[signature_scheme](event, signature_header),
      // The signature covers this one.
      idHeaders: [signature_scheme === 'standard_webhooks' ? 'webhook-id' : (event_id_header ?? '')],
      keyOf: (_header, payload) => evaluate(event_key_expr, payload),
    }
  );
}

/** Data Center's test of the connection is no event, and has no signature (https://github.com/runatlantis/atlantis/issues/474). */
export function isConnectionTest(source: string, { header }: SentEvent): boolean {
  return (
    source === 'bitbucket_data_center' &&
    header('x-event-key') === 'diagnostics:ping' &&
    header('x-hub-signature') === ''
  );
}

/** What tells an event from others, and says what it is. */
export function identityOf(
  webhook: AutomationWebhook,
  { header, body }: SentEvent,
  payload: unknown,
): Pick<AutomationEvent, 'bodyDigest' | 'eventKey'> & { deliveryId: string | null } {
  const { idHeaders, keyOf } = sourceOf(webhook);
  const id = idHeaders.map(header).find((each) => each !== '');
  const key = keyOf(header, payload);
  const isOnce = BUILT_IN_SOURCES.includes(webhook.source) && isTimed(payload);
  return {
    deliveryId: id?.slice(0, MAX_DELIVERY_ID) ?? null,
    bodyDigest: isOnce ? createHash('sha256').update(body).digest('hex') : null,
    eventKey: (typeof key === 'string' && key.slice(0, MAX_KEY)) || 'unknown',
  };
}

/**
 * Whether the body says when what it tells of happened: then it comes once, under whatever delivery id, which most
 * signatures do not cover. One without, such as `workflow_dispatch`, has the time of its repository alone.
 */
function isTimed(payload: unknown): boolean {
  const { repository: _repository, project: _project, ...parts } = Object(payload) as Record<string, unknown>;
  return [payload, ...Object.values(parts)].some((part) =>
    ['updated_at', 'updated_on', 'date'].some((member) => jsonText(part, member) !== null),
  );
}

function isRecent(seconds: string, now: number): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(now / 1000 - Number(seconds)) <= REPLAY_WINDOW_SECONDS;
}

/** In the same time whatever is given; digests have one length. */
function equals(given: string, expected: string): boolean {
  const [one, other] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

function joined(...parts: (string | null)[]): string {
  return parts.filter(Boolean).join('.');
}
