import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { isSigned } from '../../common/crypto/webhook-signature.js';
import type { HostWebhooks } from '../git-provider.js';

/** See https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/. */
export const BITBUCKET_WEBHOOKS: HostWebhooks = {
  source: 'bitbucket',
  eventTypes: ['pullrequest.*', 'repo.*'],
  idHeaders: ['x-request-uuid'],
  isSigned: (sent) => isSigned('hmac_sha256_hex', sent, 'x-hub-signature'),
  keyOf: ({ header }) => header('x-event-key').replaceAll(':', '.'),
  actorOf: (payload) => {
    const uuid = jsonText(payload, 'actor', 'uuid');
    return uuid === null ? null : { name: uuid, id: uuid, isOwner: false };
  },
  told: (payload) => ({
    repository: jsonText(payload, 'repository', 'full_name'),
    numbers: [jsonAt(payload, 'pullrequest', 'id')],
    shas: [jsonText(payload, 'commit_status', 'commit', 'hash'), linkedCommit(payload)],
  }),
};

/** Of a build; its commit is named by the address alone. */
function linkedCommit(payload: unknown): unknown {
  const address = jsonText(payload, 'commit_status', 'links', 'commit', 'href') ?? '';
  return /\/commit\/([0-9a-f]{7,64})$/.exec(address)?.[1];
}
