import ts from 'typescript';

/**
 * Who may do what to a row is asked in `auth/access.ts`, before these are called: their statements are about rows of a
 * user whom they are given. Another file that compares owners by itself would be a second answer.
 */
const COMPARES_OWNERS = [
  'auth/access.ts',
  'auth/api-key.repository.ts',
  'auth/oidc/identity.repository.ts',
  'auth/owned.repository.ts',
  'auth/sessions/session.repository.ts',
  'automations/definitions/automation.repository.ts',
  'automations/events/automation-event.repository.ts',
  'automations/runs/automation-run.repository.ts',
  'git-providers/tokens/provider-token.repository.ts',
  'outbound-webhooks/push/push-message.repository.ts',
  'outbound-webhooks/push/push-subscription.repository.ts',
  'outbound-webhooks/webhook-delivery.repository.ts',
  'outbound-webhooks/webhook-endpoint.repository.ts',
  'settings/mcp/mcp-config.repository.ts',
  'settings/profiles/llm-profile.repository.ts',
  'settings/secrets/custom-secret.repository.ts',
  'settings/settings.repository.ts',
  'usage/model-usage.repository.ts',
  // All that a user has, for whom the operator or an administrator has named.
  'v1/app-conversations/conversation-hand-over.service.ts',
  'v1/app-conversations/conversation.queries.ts',
  'v1/app-conversations/conversation.repository.ts',
  'v1/app-conversations/followed/followed-pull-request.repository.ts',
  'v1/app-conversations/kept-changes/kept-changes.repository.ts',
  'v1/app-conversations/organization-conversation.queries.ts',
  'v1/app-conversations/pending/pending-message.repository.ts',
  'v1/app-conversations/start-task.queries.ts',
  'v1/app-conversations/start-task.repository.ts',
  'v1/events/followed-conversation.repository.ts',
  'v1/idempotency/idempotency-key.repository.ts',
  'v1/sandboxes/sandbox.queries.ts',
  'v1/sandboxes/sandbox.repository.ts',
];
/** In SQL, and in conditions of a query builder that are texts. */
const OWNER_IN_TEXT = new RegExp(
  [
    String.raw`\buser_?id"?(?:::\w+)?\s*(?:=|!=|<|>|(?:NOT\s+)?(?:IN|LIKE|BETWEEN)\b|IS\b)`,
    // The other way round: `$1 = t.user_id`, `t.user_id` often of a table that a template names.
    String.raw`(?:=|<>|!=|\bANY\s*\()\s*(?:\w+\.|\$\{[^{}]*\}\.?)*"?user_id\b`,
    String.raw`\([^()]*\buser_id\b[^()]*\)\s*(?:=|<>|!=|(?:NOT\s+)?IN\b|IS\b)`,
    String.raw`\bUSING\s*\([^()]*\buser_id\b`,
  ].join('|'),
  'i',
);
/** Of TypeORM's repositories, entity managers and query builders: what they take as a condition. */
const TAKES_CONDITION =
  /^(?:(?:find|count|exists|sum|average|minimum|maximum)\w*By(?:OrFail)?|(?:and|or)?where|delete|update|softDelete|restore|increment|decrement)$/i;

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
      (name) => `${name} compares user_id: ask auth/access.ts first, and call a repository that is named.`,
    ),
    ...stale.map((name) => `${name} compares no user_id: take it out of COMPARES_OWNERS.`),
  ];
}

/** Whether the file compares `user_id`, in SQL or in a condition of TypeORM. */
function comparesOwners(tree) {
  let isFound = false;
  const visit = (node) => {
    isFound ||= isTextWithOwner(node, tree) || conditionsOf(node, tree).some(namesOwner);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return isFound;
}

function isTextWithOwner(node, tree) {
  const isText = ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
  return isText && OWNER_IN_TEXT.test(node.getText(tree));
}

function conditionsOf(node, tree) {
  if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
    const method = node.expression.name.text;
    // The last one of an update has the new values.
    const conditions = method === 'update' ? node.arguments.slice(0, -1) : node.arguments;
    return TAKES_CONDITION.test(method) ? conditions : [];
  }
  const isNamed = ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node);
  return isNamed && node.initializer && /^"?'?where/i.test(node.name.getText(tree)) ? [node.initializer] : [];
}

/** Whether an object has the member, or one that is spread into it, chosen for it or among several. */
function namesOwner(node) {
  const isMember = ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node);
  return (isMember && node.name.text === 'userId') || ts.forEachChild(node, namesOwner) === true;
}
