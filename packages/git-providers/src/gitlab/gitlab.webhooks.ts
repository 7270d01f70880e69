import { jsonAt, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { isSameText, isSigned } from '@slipway/common/webhook-signature.js';
import type { HostWebhooks } from '../host-webhooks.js';

const COMMITS = [
  ['sha'],
  ['before'],
  ['checkout_sha'],
  ['object_attributes', 'sha'],
  ['merge_request', 'last_commit', 'id'],
  ['commit', 'sha'],
];

/** Types of work items that are issues, too: whether GitLab names one so depends on its version and on the page that made it. */
const ISSUES: readonly (string | null)[] = ['Issue', 'Incident'];

/** See https://docs.gitlab.com/user/project/integrations/webhook_events/. */
export const GITLAB_WEBHOOKS: HostWebhooks = {
  source: 'gitlab',
  eventTypes: ['push', 'issue.*', 'work_item.*', 'note.*', 'merge_request.*', 'pipeline.*'],
  // The first two are the same, one of them signed. The last one, for servers before 17.4, changes when it is sent again.
  idHeaders: ['webhook-id', 'idempotency-key', 'x-gitlab-event-uuid'],
  // A signature where there is a signing token, else the secret token as it is.
  isSigned: (sent) =>
    sent.header('webhook-signature') === ''
      ? isSameText(sent.header('x-gitlab-token'), sent.secret)
      : isSigned('standard_webhooks', sent),
  keyOf: (_sent, payload) =>
    [kindOf(payload), jsonText(payload, 'object_attributes', 'action') ?? jsonText(payload, 'action')]
      .filter(Boolean)
      .join('.'),
  actorOf: (payload) => {
    const id = jsonNumber(payload, 'user', 'id') ?? jsonNumber(payload, 'user_id');
    return id === null ? null : { name: String(id), id: String(id), isOwner: false };
  },
  told: (payload) => ({
    repository: jsonText(payload, 'project', 'path_with_namespace'),
    numbers: [
      // Its pipelines in a fork are told of by the fork.
      jsonAt(payload, 'merge_request', 'target_project_id') === jsonAt(payload, 'project', 'id') &&
        jsonAt(payload, 'merge_request', 'iid'),
      // Issues, pipelines and milestones are numbered, too, each from 1.
      kindOf(payload) === 'merge_request' && jsonAt(payload, 'object_attributes', 'iid'),
    ],
    shas: COMMITS.map((path) => jsonText(payload, ...path)),
  }),
};

function kindOf(payload: unknown): string | null {
  const kind = jsonText(payload, 'object_kind') ?? jsonText(payload, 'event_name');
  const isIssue = kind === 'work_item' && ISSUES.includes(jsonText(payload, 'object_attributes', 'type'));
  return isIssue ? 'issue' : kind;
}
