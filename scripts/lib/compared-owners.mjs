import ts from 'typescript';

/**
 * Who may do what to a row is asked in `auth/access.ts`, before these are called: their statements are about rows of a
 * user whom they are given. Another file that compares owners by itself would be a second answer.
 */
const COMPARES_OWNERS = [
  'auth/access.ts',
  'auth/api-key.repository.ts',
  'auth/oidc/identity.repository.ts',
  'auth/sessions/session.repository.ts',
  'automations/definitions/automation.repository.ts',
  'automations/events/automation-event.repository.ts',
  'git-providers/tokens/provider-token.repository.ts',
  'outbound-webhooks/push/push-message.repository.ts',
  'outbound-webhooks/push/push-subscription.repository.ts',
  'outbound-webhooks/webhook-delivery.repository.ts',
  'settings/mcp/mcp-config.repository.ts',
  'settings/secrets/custom-secret.repository.ts',
  'settings/settings.repository.ts',
  'usage/model-usage.repository.ts',
  'v1/app-conversations/conversation.queries.ts',
  'v1/app-conversations/conversation.repository.ts',
  'v1/app-conversations/followed/followed-pull-request.repository.ts',
  'v1/app-conversations/kept-changes/kept-changes.repository.ts',
  'v1/app-conversations/organization-conversation.queries.ts',
  'v1/app-conversations/start-task.queries.ts',
  'v1/app-conversations/start-task.repository.ts',
  'v1/events/followed-conversation.repository.ts',
  'v1/idempotency/idempotency-key.repository.ts',
  'v1/sandboxes/sandbox.queries.ts',
  'v1/sandboxes/sandbox.repository.ts',
];
const OWNER_IN_SQL = /\buser_id"?\s*(?:=|<>|<|>|IN\b|IS\b)/;

/** Findings about files that are not named, and names that are stale. @param row prints a measure */
export function comparedOwners(files, row) {
  const comparing = files
    .filter(({ name, tree }) => !name.startsWith('database/migrations/') && comparesOwners(tree))
    .map(({ name }) => name);
  const unnamed = comparing.filter((name) => !COMPARES_OWNERS.includes(name));
  const stale = COMPARES_OWNERS.filter((name) => !comparing.includes(name));
  row('files that compare owners and are not named', unnamed.length, 'none');
  return [
    ...unnamed.map(
      (name) =>
        `${name} compares user_id in SQL: ask auth/access.ts first, and call a repository that is named.`,
    ),
    ...stale.map((name) => `${name} compares no user_id: take it out of COMPARES_OWNERS.`),
  ];
}

/** Whether a literal of the file compares `user_id`, as SQL does. */
function comparesOwners(tree) {
  let isFound = false;
  const visit = (node) => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
      isFound ||= OWNER_IN_SQL.test(node.getText(tree));
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return isFound;
}
