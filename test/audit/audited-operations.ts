import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { AuditAction } from '../../src/audit/audit-action.js';
import type { TestUser } from '../support/create-test-app.js';
import { organizationOf } from '../support/resolved-document.js';
import { type AuditedScene, AUTOMATION, PLANTED, type SceneRequest } from './audited-scene.js';

interface Change {
  /** Actions of the entries that the request leaves, in any order. */
  actions: AuditAction[];
  /** The id or the name in the operation's path. */
  of?: (scene: AuditedScene) => string;
  body?: (scene: AuditedScene) => object;
  /** Who sends it; by default the scene's user. */
  as?: (scene: AuditedScene, admin: TestUser) => SceneRequest['as'];
  /** What others do while the request waits for it. */
  meanwhile?: (scene: AuditedScene) => Promise<void>;
}

const MCP = {
  sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: PLANTED.mcpKey }],
  stdio_servers: [{ name: 'files', command: 'files', args: [], env: { TOKEN: PLANTED.mcpVariable } }],
  shttp_servers: [],
};
const START = { initial_message: { content: [{ text: PLANTED.message }] }, title: PLANTED.title };
const REMOVED: AuditAction[] = ['conversation.delete', 'sandbox.delete'];
const TOKENS_REMOVED: AuditAction[] = ['git_token.delete', 'git_token.delete', 'git_token.delete'];
const tokens = ({ githubToken: token }: AuditedScene): object => ({ provider_tokens: { github: { token } } });
const deployToken = (): string => 'DEPLOY_TOKEN';
const fast = (): string => 'fast';
const conversation = ({ conversationId }: AuditedScene): string => conversationId;
const sandbox = ({ sandboxId }: AuditedScene): string => sandboxId;
const automation = ({ automationId }: AuditedScene): string => automationId;
const source = ({ sourceId }: AuditedScene): string => sourceId;
const endpoint = ({ endpointId }: AuditedScene): string => endpointId;

/** Every operation of openapi.json that changes something, by its id. */
const CHANGES: Record<string, Change> = {
  store_provider_tokens_api_add_git_providers_post: {
    actions: ['git_token.store', 'mcp_servers.update'],
    body: (scene) => ({ ...tokens(scene), mcp_config: MCP }),
  },
  store_provider_tokens_api_v1_secrets_git_providers_post: { actions: ['git_token.store'], body: tokens },
  unset_provider_tokens_api_unset_provider_tokens_post: { actions: TOKENS_REMOVED },
  unset_provider_tokens_api_v1_secrets_git_providers_delete: { actions: TOKENS_REMOVED },
  sign_in_with_key: { actions: ['session.create'], body: ({ user }) => ({ key: user.key }) },
  sign_in_with_code: { actions: ['session.create'], body: (scene) => ({ code: scene.newCode() }) },
  update_conversation_api_conversations__conversation_id__patch: {
    actions: ['conversation.update'],
    of: conversation,
    body: () => ({ title: PLANTED.title }),
  },
  delete_conversation_api_conversations__conversation_id__delete: { actions: REMOVED, of: conversation },
  update_app_conversation: {
    actions: ['conversation.update'],
    of: conversation,
    body: () => ({ title: PLANTED.title, public: true }),
  },
  delete_app_conversation: { actions: REMOVED, of: conversation },
  start_app_conversation: { actions: ['conversation.start', 'sandbox.create'], body: () => START },
  stream_app_conversation_start: { actions: ['conversation.start', 'sandbox.create'], body: () => START },
  pause_app_conversation: { actions: ['conversation.pause'], of: conversation },
  run_app_conversation: { actions: ['conversation.run'], of: conversation },
  respond_to_confirmation: {
    actions: ['conversation.respond'],
    of: conversation,
    body: () => ({ accept: true }),
  },
  switch_conversation_profile: {
    actions: ['conversation.switch_profile'],
    of: conversation,
    body: () => ({ profile_name: 'fast' }),
  },
  switch_conversation_acp_model: {
    actions: ['conversation.switch_model'],
    of: conversation,
    body: () => ({ model: 'second' }),
  },
  open_pull_request: {
    actions: ['conversation.open_pull_request'],
    body: ({ conversationId: conversation_id }) => ({
      conversation_id,
      source_branch: 'fix/it',
      target_branch: 'release',
      title: PLANTED.title,
      body: PLANTED.message,
    }),
    as: ({ sandboxKey }) => ({ headers: { 'X-Session-API-Key': sandboxKey } }),
  },
  open_conversation_pull_request: {
    // Requested before the push, and done.
    actions: ['conversation.open_pull_request', 'conversation.open_pull_request'],
    of: conversation,
    body: () => ({ source_branch: 'fix/it', target_branch: 'release' }),
  },
  create_custom_secret_api_secrets_post: {
    actions: ['secret.create'],
    body: () => ({ name: 'SECOND', value: PLANTED.newSecret }),
  },
  update_custom_secret_api_secrets__secret_id__put: {
    actions: ['secret.update'],
    of: deployToken,
    body: () => ({ name: 'RENAMED', description: PLANTED.description }),
  },
  delete_custom_secret_api_secrets__secret_id__delete: { actions: ['secret.delete'], of: deployToken },
  create_org_secret: {
    actions: ['secret.create'],
    body: () => ({ name: 'NEW_TOKEN', value: PLANTED.newSecret }),
  },
  update_org_secret: {
    actions: ['secret.update'],
    of: deployToken,
    body: () => ({ description: PLANTED.description }),
  },
  delete_org_secret: { actions: ['secret.delete'], of: deployToken },
  update_org_defaults_settings: {
    actions: ['settings.update', 'mcp_servers.update'],
    body: () => ({ language: 'de', search_api_key: PLANTED.searchKey, mcp_config: MCP }),
  },
  create_custom_secret_api_v1_secrets_post: {
    actions: ['secret.update'],
    body: () => ({ name: 'DEPLOY_TOKEN', value: PLANTED.newSecret }),
  },
  update_custom_secret_api_v1_secrets__secret_id__put: {
    actions: ['secret.update'],
    of: deployToken,
    body: () => ({ name: 'DEPLOY_TOKEN', value: PLANTED.newSecret }),
  },
  delete_custom_secret_api_v1_secrets__secret_id__delete: { actions: ['secret.delete'], of: deployToken },
  store_settings_api_settings_post: {
    actions: ['settings.update', 'mcp_servers.update'],
    body: () => ({ language: 'de', search_api_key: PLANTED.searchKey, mcp_config: MCP }),
  },
  store_settings_api_v1_settings_post: {
    actions: ['settings.update', 'settings.update'],
    body: () => ({ agent_settings_diff: { llm: { base_url: PLANTED.baseUrl, temperature: 0.5 } } }),
  },
  save_profile_api_v1_settings_profiles__name__post: {
    actions: ['llm_profile.create'],
    of: () => 'second',
    body: () => ({ llm: { model: 'openai/second', api_key: PLANTED.profileKey } }),
  },
  delete_profile_api_v1_settings_profiles__name__delete: { actions: ['llm_profile.delete'], of: fast },
  activate_profile_api_v1_settings_profiles__name__activate_post: {
    actions: ['settings.update', 'llm_profile.activate'],
    of: fast,
  },
  rename_profile_api_v1_settings_profiles__name__rename_post: {
    actions: ['llm_profile.rename'],
    of: fast,
    body: () => ({ new_name: 'faster' }),
  },
  create_api_key: { actions: ['api_key.create'], body: () => ({ name: 'second' }) },
  decide_device_login: {
    actions: ['api_key.create'],
    body: ({ userCode: user_code }) => ({ user_code }),
  },
  revoke_api_key: { actions: ['api_key.revoke'], of: ({ keyId }) => keyId },
  create_user: {
    actions: ['user.create'],
    body: () => ({ email: `${randomUUID()}@example.com` }),
    as: (_scene, admin) => admin,
  },
  update_user: {
    actions: ['user.make_admin'],
    of: ({ other }) => other.id,
    body: () => ({ is_admin: true }),
    as: (_scene, admin) => admin,
  },
  disable_user: { actions: ['user.disable'], of: ({ other }) => other.id, as: (_scene, admin) => admin },
  enable_user: { actions: ['user.enable'], of: ({ disabledId }) => disabledId, as: (_scene, admin) => admin },
  delete_user: { actions: ['user.delete'], of: ({ other }) => other.id, as: (_scene, admin) => admin },
  update_organization_member: {
    actions: ['user.set_role'],
    of: ({ other }) => other.id,
    body: () => ({ role: 'viewer' }),
    as: (_scene, admin) => admin,
  },
  delete_organization_member: {
    actions: ['user.delete'],
    of: ({ other }) => other.id,
    as: (_scene, admin) => admin,
  },
  stop_organization_conversation: {
    actions: ['conversation.pause', 'conversation.take_over', 'sandbox.pause'],
    of: conversation,
    as: (_scene, admin) => admin,
    meanwhile: (scene) => scene.finishPause(),
  },
  create_sandbox: { actions: ['sandbox.create'] },
  pause_sandbox: { actions: ['sandbox.pause'], of: sandbox, meanwhile: (scene) => scene.finishPause() },
  resume_sandbox: { actions: ['sandbox.resume'], of: ({ pausedId }) => pausedId },
  allow_egress_once: {
    actions: ['sandbox.egress_allow'],
    of: sandbox,
    body: () => ({ host: 'api.example.com', once: true }),
  },
  delete_sandbox: { actions: ['sandbox.delete'], of: sandbox },
  create_automation: { actions: ['automation.create'], body: () => AUTOMATION },
  update_automation: { actions: ['automation.update'], of: automation, body: () => AUTOMATION },
  delete_automation: { actions: ['automation.delete'], of: automation },
  dispatch_automation: { actions: ['automation.dispatch'], of: automation },
  cancel_automation_run: { actions: ['automation.cancel_run'], of: ({ runId }) => runId },
  create_automation_webhook: {
    actions: ['automation_webhook.create'],
    body: () => ({ name: PLANTED.title, source: 'github', webhook_secret: PLANTED.secret }),
  },
  update_automation_webhook: {
    actions: ['automation_webhook.update'],
    of: source,
    body: () => ({ enabled: false }),
  },
  rotate_automation_webhook_secret: { actions: ['automation_webhook.rotate_secret'], of: source },
  show_repository_webhook_secret: {
    actions: ['automation_webhook.repository_secret'],
    of: source,
    body: () => ({ repository: 'octo/app' }),
  },
  delete_automation_webhook: { actions: ['automation_webhook.delete'], of: source },
  create_webhook_endpoint: {
    actions: ['webhook_endpoint.create'],
    body: () => ({ url: PLANTED.webhookUrl }),
  },
  update_webhook_endpoint: {
    actions: ['webhook_endpoint.update'],
    of: endpoint,
    body: () => ({ url: `${PLANTED.webhookUrl}/second`, enabled: false }),
  },
  delete_webhook_endpoint: { actions: ['webhook_endpoint.delete'], of: endpoint },
  rotate_webhook_secret: { actions: ['webhook_endpoint.rotate_secret'], of: endpoint },
  create_push_subscription: { actions: ['push_subscription.create'], body: ({ browser }) => browser },
  delete_push_subscription: {
    actions: ['push_subscription.delete'],
    body: () => ({ endpoint: PLANTED.pushUrl }),
  },
};

const { paths } = JSON.parse(readFileSync(path.join(import.meta.dirname, '../../openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, { operationId: string }>>;
};
const addresses = new Map(
  Object.entries(paths).flatMap(([template, operations]) =>
    Object.entries(operations).map(
      ([method, { operationId }]) => [operationId, { method: method.toUpperCase(), template }] as const,
    ),
  ),
);

/**
 * Each of them with its request and the entries that this leaves. `audit-coverage.e2e-spec.ts` says what is missing.
 */
export const AUDITED_OPERATIONS = Object.fromEntries(
  Object.entries(CHANGES).map(([id, { actions, meanwhile, of, body, as }]) => {
    const request = (scene: AuditedScene, admin: TestUser): SceneRequest => {
      const { method = '', template: address = '' } = addresses.get(id) ?? {};
      return {
        method,
        path: address
          .replace('{organization_id}', organizationOf(address, scene.user.id))
          .replace(/\{\w+\}/, (name) => of?.(scene) ?? name),
        ...(body && { body: body(scene) }),
        ...(as && { as: as(scene, admin) }),
      };
    };
    return [id, { actions, request, meanwhile }];
  }),
);

/** Operations that leave no entry, and why. */
export const NOT_AUDITED: Record<string, string> = {
  send_message_to_conversation: "The conversation's own log has each message, with its speaker.",
  queue_pending_message: "The message is in the conversation's own log once it is delivered.",
  redeliver_webhook:
    'An event is sent once more to an endpoint that subscribed to it; the delivery log has it.',
  test_webhook_endpoint: 'A test event is sent to an endpoint of the caller; the delivery log has it.',
  check_model_api_v1_model_check_post: 'A model is asked what it can do; nothing is changed.',
  begin_device_login: 'Nothing is changed for anybody until a person approves the login.',
  fetch_device_key: 'The key that a person has issued by the approval is told to its device.',
  exchange_code:
    'A link that the operator has opened is exchanged for the key it stands for; nothing is changed.',
  sign_out: 'It is, but the scene has no browser whose session could end: test/auth/sessions.e2e-spec.ts.',
  link_sign_in: 'It is, once the issuer has answered: test/auth/oidc-sign-in.e2e-spec.ts.',
  unlink_identity: 'It is, but the scene has no issuer: test/auth/oidc-sign-in.e2e-spec.ts.',
  restore_user: 'It is, but the scene has no issuer: test/auth/oidc-tokens.e2e-spec.ts.',
  backchannel_logout:
    'It is, as session.end, but the scene has no issuer: test/auth/oidc-sign-in.e2e-spec.ts.',
  push_branch:
    'It is, as conversation.open_pull_request, but in the scene the user may push: test/app-conversations/forks.e2e-spec.ts.',
  forward_to_agent_server:
    "The request goes to the agent server of the caller's own sandbox, as it would at the address of that.",
  on_conversation_update: 'An agent server reports with its session key; nobody decides anything.',
  receive_automation_event: 'A host sends it with a signature of its own; events are kept for a day.',
  validate_automation: 'It says what an automation would do, and keeps nothing.',
  on_event: 'An agent server reports with its session key; nobody decides anything.',
};
