import { jsonAt, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { isSigned } from '@slipway/common/webhook-signature.js';
import type { HostWebhooks } from '../host-webhooks.js';

/** See https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html. */
export const BITBUCKET_DATA_CENTER_WEBHOOKS: HostWebhooks = {
  source: 'bitbucket_data_center',
  eventTypes: ['repo.*', 'pr.*'],
  idHeaders: ['x-request-id'],
  isSigned: (sent) => isSigned('hmac_sha256_hex', sent, 'x-hub-signature'),
  // It has no signature (https://github.com/runatlantis/atlantis/issues/474).
  isTest: ({ header }) => header('x-event-key') === 'diagnostics:ping' && header('x-hub-signature') === '',
  // The header says the same, and is not signed.
  keyOf: (_sent, payload) => (jsonText(payload, 'eventKey') ?? '').replaceAll(':', '.'),
  actorOf: (payload) => {
    const [name, id] = [jsonText(payload, 'actor', 'name'), jsonNumber(payload, 'actor', 'id')];
    return name === null ? null : { name, id: id === null ? null : String(id), isOwner: false };
  },
  told: (payload) => ({
    repository: fullName(
      jsonAt(payload, 'repository') ?? jsonAt(payload, 'pullRequest', 'toRef', 'repository'),
    ),
    numbers: [jsonAt(payload, 'pullRequest', 'id')],
    shas: [],
  }),
};

function fullName(repository: unknown): string | null {
  const [project, slug] = [jsonText(repository, 'project', 'key'), jsonText(repository, 'slug')];
  return project && slug && `${project}/${slug}`;
}
