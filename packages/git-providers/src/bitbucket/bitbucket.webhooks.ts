import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { isSigned } from '@slipway/common/webhook-signature.js';
import { type EventShape, type HostWebhooks, nameAsItLooks } from '../host-webhooks.js';

const SHAPES: readonly EventShape[] = [
  [/^pullrequest:comment_/, 'pullrequest', 'comment'],
  [/^pullrequest:(?:un)?approved$/, 'pullrequest', 'approval'],
  [/^pullrequest:changes_request_/, 'pullrequest', 'changes_request'],
  [/^pullrequest:fulfilled$/, (payload) => jsonText(payload, 'pullrequest', 'state') === 'MERGED'],
  [/^pullrequest:rejected$/, (payload) => jsonText(payload, 'pullrequest', 'state') === 'DECLINED'],
  [/^pullrequest:/, 'pullrequest'],
  [/^repo:push$/, 'push'],
  [/^repo:commit_status_/, 'commit_status'],
];

/** See https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/. */
export const BITBUCKET_WEBHOOKS: HostWebhooks = {
  source: 'bitbucket',
  eventTypes: ['pullrequest.*', 'repo.*'],
  idHeaders: ['x-request-uuid'],
  isSigned: (sent) => isSigned('hmac_sha256_hex', sent, 'x-hub-signature'),
  keyOf: ({ header }, payload) => nameAsItLooks(SHAPES, header('x-event-key'), payload).replaceAll(':', '.'),
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

/** Returns the commit of a build, which only the build's address names. */
function linkedCommit(payload: unknown): unknown {
  const address = jsonText(payload, 'commit_status', 'links', 'commit', 'href') ?? '';
  return /\/commit\/([0-9a-f]{7,64})$/.exec(address)?.[1];
}
