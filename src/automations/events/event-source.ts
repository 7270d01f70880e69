import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { jsonAt, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { MalformedBodyError, parseForm, parseJsonBody } from '@slipway/common/requests/json-body.js';
import { isSigned, type ReceivedWebhook } from '@slipway/common/webhook-signature.js';
import { textAt } from '@slipway/common/jmespath.js';
import type { HostWebhooks } from '@slipway/git-providers/host-webhooks.js';
import { webhooksOf } from '@slipway/git-providers/git-servers.js';
import type { AutomationEvent } from './automation-event.repository.js';
import type { AutomationWebhook } from './automation-webhook.repository.js';
import { payloadOfForm, withoutLargeMembers } from './large-event.js';

/** Pushes name every file of every commit. */
const MAX_VALUES = 50_000;
const MAX_KEY = 500;
const MAX_DELIVERY_ID = 200;
/** Members of an event whose times are not its own. */
const UNTIMED = ['repository', 'project', 'enterprise', 'inputs', 'client_payload'];
const TIMES = [
  'updated_at',
  'updated_on',
  'updatedDate',
  'date',
  'timestamp',
  'submitted_at',
  'completed_at',
  'started_at',
];

/** @param body as `JsonBodyBounds({ raw: true })` leaves it */
export function receivedWebhook({ body, headers }: Pick<Request, 'body' | 'headers'>): ReceivedWebhook {
  return {
    body: Buffer.isBuffer(body) ? body : Buffer.alloc(0),
    header: (name) => [headers[name.toLowerCase()] ?? []].flat().join(', '),
  };
}

/** A larger one is taken without its large members. */
const USUAL_BYTES = 1_048_576;
/** What GitHub sends at most (docs.github.com, "Webhook events and payloads"); the other hosts send less. */
export const MAX_HOST_EVENT_BYTES = 25 * 1_048_576;

export function isLargeEvent({ body }: ReceivedWebhook): boolean {
  return body.length > USUAL_BYTES;
}

/** A large event without its large members; any other as it is. @throws MalformedBodyError */
export async function smallEvent(sent: ReceivedWebhook): Promise<ReceivedWebhook> {
  if (!isLargeEvent(sent)) {
    return sent;
  }
  const text = await withoutLargeMembers(isForm(sent) ? await payloadOfForm(sent.body) : sent.body);
  const header = (name: string): string => (name === 'content-type' ? 'application/json' : sent.header(name));
  return { header, body: Buffer.from(text) };
}

/** JSON, or a form with JSON in `payload`, which GitHub sends by default. @throws MalformedBodyError for others */
export function parseEvent(sent: ReceivedWebhook): unknown {
  const text = sent.body.toString('utf8');
  const payload = parseJsonBody(isForm(sent) ? (parseForm(text)['payload'] ?? '') : text, MAX_VALUES);
  if (payload === null) {
    throw new MalformedBodyError('syntax');
  }
  return payload;
}

function isForm({ header }: ReceivedWebhook): boolean {
  return header('content-type').startsWith('application/x-www-form-urlencoded');
}

const DISPATCH = /_dispatch(?:\.|$)/;

/** Rules of the git host, or those that the user has set for a source of their own. */
export function rulesOf(webhook: AutomationWebhook): Pick<HostWebhooks, 'isSigned' | 'idHeaders' | 'keyOf'> {
  const { event_key_expr, signature_header, signature_scheme, event_id_header } = webhook;
  return (
    webhooksOf(webhook.source) ?? {
      isSigned: (sent) => isSigned(signature_scheme, sent, signature_header),
      // The signature covers this one.
      idHeaders: [signature_scheme === 'standard_webhooks' ? 'webhook-id' : (event_id_header ?? '')],
      keyOf: (_sent, payload) => textAt(event_key_expr, payload),
    }
  );
}

/** What tells an event from others, and says what it is. */
export function identityOf(
  webhook: AutomationWebhook,
  sent: ReceivedWebhook,
  payload: unknown,
  usual: string,
): Pick<AutomationEvent, 'deliveryId' | 'bodyDigest' | 'eventKey'> {
  const { idHeaders, keyOf } = rulesOf(webhook);
  const id = idHeaders.map(sent.header).find((each) => each !== '') ?? usual;
  const key = keyOf(sent, payload).slice(0, MAX_KEY) || 'unknown';
  const isOwn = webhooksOf(webhook.source) === null;
  const isIdSigned = isOwn && webhook.signature_scheme === 'standard_webhooks';
  // Events sent by hand or by an alarm may rightly be repeated when they have no time of their own.
  const comesAgain = !isIdSigned && (isOwn || DISPATCH.test(key)) && timeOf(payload) === null;
  const comment = isOwn ? null : commentVersion(payload);
  return {
    deliveryId: id.slice(0, MAX_DELIVERY_ID),
    bodyDigest: comesAgain
      ? null
      : digest(...(comment === null ? [isIdSigned ? id : '', sent.body] : [comment])),
    eventKey: key,
  };
}

function digest(...parts: (string | Buffer)[]): string {
  return parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');
}

/** The comment that an event tells of; GitLab calls it a note. */
function commentOf(payload: unknown): unknown {
  return jsonText(payload, 'object_kind') === 'note'
    ? jsonAt(payload, 'object_attributes')
    : jsonAt(payload, 'comment');
}

/** What a comment says; empty for other events. */
export function bodyOf(payload: unknown): string {
  const comment = commentOf(payload);
  const texts = [['body'], ['note'], ['text'], ['content', 'raw']].map((path) => jsonText(comment, ...path));
  return texts.find((text) => text !== null) ?? '';
}

/** The same in the events of all hooks that tell of a comment: those of the repository, the organization and an app differ. */
function commentVersion(payload: unknown): string | null {
  const comment = commentOf(payload);
  const [id, at] = [jsonNumber(comment, 'id'), ownTime(comment)];
  // Bitbucket tells of what happened to a comment in a header, which it does not sign.
  const state = ['deleted', 'resolution'].map((member) => Boolean(jsonAt(comment, member)));
  return id === null || at === null ? null : JSON.stringify([jsonText(payload, 'action'), id, at, state]);
}

/** When it happened, epoch milliseconds; null where it says just where. */
export function timeOf(payload: unknown): number | null {
  const members = Object.entries(Object(payload) as Record<string, unknown>);
  const parts = members.flatMap(([name, part]) => (UNTIMED.includes(name) ? [] : [part]));
  return [commentOf(payload), payload, ...parts].map(ownTime).find((time) => time !== null) ?? null;
}

/** Hosts write ISO 8601, GitLab with spaces, Data Center epoch milliseconds. */
function ownTime(part: unknown): number | null {
  const times = TIMES.map((member) => jsonNumber(part, member) ?? Date.parse(jsonText(part, member) ?? ''));
  return times.find((time) => Number.isFinite(time)) ?? null;
}
