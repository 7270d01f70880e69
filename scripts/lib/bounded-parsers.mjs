import ts from 'typescript';

/**
 * Files of `src` and `packages` that parse text, by what bounds that text before: a parser takes the time that its author
 * had in mind, which nobody knows for text of others. A new file belongs under the bound that it has, or calls one of the first.
 */
export const BOUNDED_PARSERS = {
  'bytes, depth and values': [
    'packages/common/src/requests/json-body.ts',
    'packages/common/src/http/response-body.ts',
    'packages/agent-client/src/bounded-json.ts',
  ],
  'bytes, by the client that received it': [
    'packages/agent-server/src/conversations/credentials.ts',
    'packages/agent-server/src/engine/native/call-repair.ts',
    'packages/agent-server/src/engine/native/language-model.ts',
    'packages/agent-server/src/engine/native/model-call.ts',
    'packages/agent-server/src/engine/native/model-fetch.ts',
    'packages/agent-server/src/engine/native/llm-failure.ts',
    'packages/agent-server/src/engine/native/refusal-words.ts',
    'packages/agent-server/src/engine/native/refused-parameters.ts',
    'packages/agent-server/src/engine/native/spoken-calls.ts',
    'packages/agent-server/src/engine/native/text-tools.ts',
    'packages/agent-server/src/engine/native/tool-calls.ts',
    'packages/agent-server/src/tools/mcp/remote-fetch.ts',
    'packages/agent-server/src/tools/mcp/server-answers.ts',
    'packages/sandboxes/src/kubernetes/api-server.ts',
    'packages/git-providers/src/enterprise-sso/enterprise-sso.mapper.ts',
    'packages/git-providers/src/provider-errors.ts',
    'src/git-providers/tokens/token-renewals.ts',
    'packages/models/src/model-check.ts',
    'packages/models/src/model-trial.ts',
    'packages/models/src/trial-requests.ts',
    'packages/agent-client/src/agent-server.client.ts',
    'packages/agent-client/src/agent-server.http.ts',
    'packages/sandboxes/src/kubernetes/pod-start.ts',
    'packages/sandboxes/src/kubernetes/standard-input.ts',
  ],
  'bytes of a line, a frame or a file': [
    'packages/agent-server/src/files/file-routes.ts',
    'packages/agent-server/src/engine/acp/acp-connection.ts',
    'packages/agent-server/src/event-log.ts',
    'packages/egress-proxy/src/model-calls/json-members.ts',
    'packages/egress-proxy/src/model-calls/model-usage.ts',
    'packages/egress-proxy/src/model-calls/usage-request.ts',
    'src/v1/egress/egress-proxy.process.ts',
    'packages/agent-server/src/security/risk-assessment.ts',
    'packages/agent-server/src/skills/skill-reader.ts',
    'packages/agent-server/src/skills/skill-routes.ts',
    'packages/agent-server/src/sockets/socket-server.ts',
    'packages/agent-server/src/tools/terminal-screen.ts',
    'packages/agent-server/src/tools/tool-schema.ts',
    'packages/common/src/frontmatter.ts',
    'src/follow/round-talk.ts',
  ],
  'bytes of a header or an address': [
    'src/v1/sandbox-proxy/agent-server.proxy.ts',
    'src/auth/oidc/pending-sign-in.ts',
    'src/auth/sessions/session-cookie.ts',
    'packages/agent-client/src/agent-server.spans.ts',
    'packages/reverse-proxy/src/forwarded-headers.ts',
    'src/v1/sandbox-proxy/port-access.ts',
  ],
  'characters of a field of the API': [
    'packages/agent-protocol/src/conversation-schemas.ts',
    'packages/common/src/schedule.ts',
    'packages/agent-server/src/secret-masker.ts',
    'packages/common/src/model-endpoint.ts',
  ],
  'characters of one text, or steps of an expression': [
    'packages/common/src/jmespath.ts',
    'packages/common/src/untrusted-text/mentions.ts',
    'packages/common/src/untrusted-text/rendered-text.ts',
  ],
  'our own rows, bounded when they were written': [
    'src/git-providers/tokens/provider-token.repository.ts',
    'src/outbound-webhooks/push/push-keys.ts',
    'src/outbound-webhooks/push/push-subscription.repository.ts',
    'packages/tool-servers/src/stored-servers.ts',
    'src/settings/profiles/llm-profile.repository.ts',
    'src/settings/settings.repository.ts',
    'src/v1/app-conversations/conversation-export.ts',
    'src/v1/app-conversations/kept-changes/kept-changes.repository.ts',
    'src/v1/app-conversations/start-task.repository.ts',
    'src/v1/sandboxes/lifecycle/egress-access.ts',
    'src/v1/app-conversations/outside-credentials/outside-credentials.ts',
    'packages/egress-rules/src/tool-credentials.ts',
    'src/v1/events/events.service.ts',
    'src/v1/events/store/observed-state.ts',
  ],
  'our own files and programs': [
    'packages/egress-proxy/src/service-connection.ts',
    'packages/agent-server/src/command-line.ts',
    'packages/agent-server/src/conversations/conversation-files.ts',
    'packages/common/src/processes/end-processes.ts',
    'packages/api/src/openapi/document-passes.ts',
    'packages/api/src/openapi/schema-rules.ts',
    'packages/api/src/openapi/shared-parts.ts',
    'src/common/product.ts',
    'packages/embedded-postgres/src/binaries.ts',
    'packages/sandboxes/src/kubernetes/sandbox-facts.ts',
    'packages/sandboxes/src/process/guarded-programs.ts',
    'packages/sandboxes/src/process/isolation.ts',
    'packages/sandboxes/src/process/sandbox-files.ts',
    'packages/sandboxes/src/process/sandbox-network.ts',
    'packages/sandboxes/src/process/sandbox-program.ts',
  ],
  "the operator's, who is trusted": [
    'packages/agent-server/src/tools/git.tools.ts',
    'packages/agent-server/src/tools/web-search.tool.ts',
    'packages/common/src/http/address-rules.ts',
    'packages/common/src/errors/config.error.ts',
    'src/config/egress-config.ts',
    'src/config/sandbox-config.ts',
    'packages/sandboxes/src/docker/container.ts',
    'packages/sandboxes/src/docker/images.ts',
    'src/v1/sandboxes/sandbox-backend.factory.ts',
  ],
  'on the machine of the one user whom it concerns': [
    'src/cli/remote-keys.ts',
    'src/cli/slipway-program.ts',
    'src/cli/support-bundle.ts',
    'packages/console/src/automations/editor.tsx',
    'packages/console/src/conversations/conversation-queries.ts',
    'packages/console/src/conversations/events.ts',
    'packages/console/src/conversations/timeline.tsx',
    'packages/console/src/settings/tool-servers.tsx',
    'src/cli/conversation-commands.ts',
    'src/cli/service-client.ts',
  ],
  'whatever its callers have, who are named here': ['packages/common/src/json-access.ts'],
};

const LIBRARIES =
  /^(?:@ltd\/j-toml|busboy|cron-parser|csv-parse|eventsource-parser|fast-xml-parser|htmlparser2|ini|jmespath|js-yaml|json5|jsonrepair|markdown-it|(?:node:)?querystring|parse5|qs|re2js|sax(?:es)?|smol-toml|toml|xml2js|yaml)(?:\/|$)/;
const CALLS = ['parseJson', 'jsonLines'];

/** Whether a file applies a parser, apart from patterns that it makes of its own constants when it is loaded. */
export function parsesText(tree) {
  const walk = (node, isInFunction) =>
    isParser(node, isInFunction) ||
    ts.forEachChild(node, (child) => walk(child, isInFunction || ts.isFunctionLike(node)) || undefined) ===
      true;
  return walk(tree, false);
}

function isParser(node, isInFunction) {
  if (ts.isNewExpression(node) || ts.isCallExpression(node)) {
    const [text] = node.arguments ?? [];
    const name = node.expression.getText().replace(/^globalThis\./, '');
    const isQuery = name === 'URLSearchParams' && text !== undefined && !ts.isObjectLiteralExpression(text);
    const isSplit = name.endsWith('.split') && text !== undefined && isPattern(text);
    // Of a response, which its client may have bounded.
    const isBody = name.endsWith('.json') && text === undefined;
    return isQuery || isSplit || isBody || (name === 'RegExp' && isInFunction) || CALLS.includes(name);
  }
  if (ts.isStringLiteral(node)) {
    const { parent } = node;
    const isImport =
      (ts.isImportDeclaration(parent) && parent.importClause?.isTypeOnly !== true) ||
      ts.isExportDeclaration(parent) ||
      ts.isCallExpression(parent);
    return isImport && LIBRARIES.test(node.text);
  }
  return (
    ((ts.isPropertyAccessExpression(node) || ts.isBindingElement(node)) &&
      node.name.getText() === 'searchParams') ||
    // Called, or handed to what calls it.
    (ts.isPropertyAccessExpression(node) && /^(?:globalThis\.)?JSON\.parse$/.test(node.getText())) ||
    (ts.isVariableDeclaration(node) && node.initializer?.getText() === 'JSON')
  );
}

/** A regular expression, or a constant of the file that is one. */
function isPattern(separator) {
  if (!ts.isIdentifier(separator)) {
    return ts.isRegularExpressionLiteral(separator);
  }
  const isNamed = ({ name, initializer }) =>
    name.getText() === separator.text && /^(?:\/|(?:new )?RegExp\()/.test(initializer?.getText() ?? '');
  return separator
    .getSourceFile()
    .statements.some(
      (each) => ts.isVariableStatement(each) && each.declarationList.declarations.some(isNamed),
    );
}
