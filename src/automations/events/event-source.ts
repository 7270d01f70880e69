import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { jsonText } from '@slipway/common/json-access.js';
import { MalformedBodyError, parseForm, parseJsonBody } from '@slipway/common/requests/json-body.js';
import { isSigned, type ReceivedWebhook } from '../../common/crypto/webhook-signature.js';
import { textAt } from '../../common/jmespath.js';
import type { HostWebhooks } from '../../git-providers/git-provider.js';
import { webhooksOf } from '../../git-providers/git-servers.js';
import type { AutomationEvent } from './automation-event.repository.js';
import type { AutomationWebhook } from './automation-webhook.repository.js';

/** Pushes name every file of every commit. */
const MAX_VALUES = 50_000;
const MAX_KEY = 500;
const MAX_DELIVERY_ID = 200;
/** Members of an event whose times are not its own. */
const UNTIMED = ['repository', 'project', 'enterprise', 'inputs', 'client_payload'];

/** @param body as `JsonBodyBounds({ raw: true })` leaves it */
export function receivedWebhook({ body, headers }: Pick<Request, 'body' | 'headers'>): ReceivedWebhook {
  return {
    body: Buffer.isBuffer(body) ? body : Buffer.alloc(0),
    header: (name) => [headers[name.toLowerCase()] ?? []].flat().join(', '),
  };
}

/** JSON, or a form with JSON in `payload`, which GitHub sends by default. @throws MalformedBodyError for others */
export function parseEvent({ header, body }: ReceivedWebhook): unknown {
  const isForm = header('content-type').startsWith('application/x-www-form-urlencoded');
  const text = body.toString('utf8');
  const payload = parseJsonBody(isForm ? (parseForm(text)['payload'] ?? '') : text, MAX_VALUES);
  if (payload === null) {
    throw new MalformedBodyError('syntax');
  }
  return payload;
}

/** As the git host says, or the user about a source of their own. */
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
  const isOnce = webhooksOf(webhook.source) !== null && isTimed(payload);
  return {
    deliveryId: id.slice(0, MAX_DELIVERY_ID),
    bodyDigest: isOnce ? createHash('sha256').update(sent.body).digest('hex') : null,
    eventKey: keyOf(sent, payload).slice(0, MAX_KEY) || 'unknown',
  };
}

/** Whether it says when it happened, and not just where: then it comes once, whatever its delivery id. */
function isTimed(payload: unknown): boolean {
  const members = Object.entries(Object(payload) as Record<string, unknown>);
  const parts = members.flatMap(([name, part]) => (UNTIMED.includes(name) ? [] : [part]));
  return [payload, ...parts].some((part) =>
    ['updated_at', 'updated_on', 'date'].some((member) => jsonText(part, member) !== null),
  );
}
