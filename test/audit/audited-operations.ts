import { randomUUID } from 'node:crypto';
import type { AuditAction } from '../../src/audit/audit-action.js';
import type { TestUser } from '../support/create-test-app.js';
import { type AuditedScene, AUTOMATION, PLANTED, type SceneRequest } from './audited-scene.js';

interface AuditedOperation {
  /** Actions of the entries that the request leaves, in any order. */
  actions: AuditAction[];
  request: (scene: AuditedScene, admin: TestUser) => SceneRequest;
}

const MCP = {
  sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: PLANTED.mcpKey }],
  stdio_servers: [{ name: 'files', command: 'files', args: [], env: { TOKEN: PLANTED.mcpVariable } }],
  shttp_servers: [],
};
const AUTOMATIONS = '/api/automation/v1';
const START = { initial_message: { content: [{ text: PLANTED.message }] }, title: PLANTED.title };
const TOKENS = (scene: AuditedScene): object => ({
  provider_tokens: { github: { token: scene.githubToken } },
});

function conversation({ conversationId }: AuditedScene, action: string, body?: object): SceneRequest {
  const path = `/api/v1/app-conversations/${conversationId}/${action}`;
  return { method: 'POST', path, ...(body && { body }) };
}

/**
 * Every operation of openapi.json that changes something, by its id, with a request and the entries it leaves.
 * `audit-coverage.e2e-spec.ts` says what is missing.
 */
export const AUDITED_OPERATIONS: Record<string, AuditedOperation> = {
  store_provider_tokens_api_add_git_providers_post: {
    actions: ['git_token.store', 'mcp_servers.update'],
    request: (scene) => ({
      method: 'POST',
      path: '/api/add-git-providers',
      body: { ...TOKENS(scene), mcp_config: MCP },
    }),
  },
  store_provider_tokens_api_v1_secrets_git_providers_post: {
    actions: ['git_token.store'],
    request: (scene) => ({ method: 'POST', path: '/api/v1/secrets/git-providers', body: TOKENS(scene) }),
  },
  unset_provider_tokens_api_unset_provider_tokens_post: {
    actions: ['git_token.delete', 'git_token.delete', 'git_token.delete'],
    request: () => ({ method: 'POST', path: '/api/unset-provider-tokens' }),
  },
  unset_provider_tokens_api_v1_secrets_git_providers_delete: {
    actions: ['git_token.delete', 'git_token.delete', 'git_token.delete'],
    request: () => ({ method: 'DELETE', path: '/api/v1/secrets/git-providers' }),
  },
  sign_in_with_key: {
    actions: ['session.create'],
    request: ({ user }) => ({ method: 'POST', path: '/auth/key', body: { key: user.key } }),
  },
  sign_in_with_code: {
    actions: ['session.create'],
    request: (scene) => ({ method: 'POST', path: '/auth/code', body: { code: scene.newCode() } }),
  },
  update_conversation_api_conversations__conversation_id__patch: {
    actions: ['conversation.update'],
    request: ({ conversationId }) => ({
      method: 'PATCH',
      path: `/api/conversations/${conversationId}`,
      body: { title: PLANTED.title },
    }),
  },
  delete_conversation_api_conversations__conversation_id__delete: {
    actions: ['conversation.delete', 'sandbox.delete'],
    request: ({ conversationId }) => ({ method: 'DELETE', path: `/api/conversations/${conversationId}` }),
  },
  update_app_conversation: {
    actions: ['conversation.update'],
    request: ({ conversationId }) => ({
      method: 'PATCH',
      path: `/api/v1/app-conversations/${conversationId}`,
      body: { title: PLANTED.title, public: true },
    }),
  },
  delete_app_conversation: {
    actions: ['conversation.delete', 'sandbox.delete'],
    request: ({ conversationId }) => ({
      method: 'DELETE',
      path: `/api/v1/app-conversations/${conversationId}`,
    }),
  },
  start_app_conversation: {
    actions: ['conversation.start', 'sandbox.create'],
    request: () => ({ method: 'POST', path: '/api/v1/app-conversations', body: START }),
  },
  stream_app_conversation_start: {
    actions: ['conversation.start', 'sandbox.create'],
    request: () => ({ method: 'POST', path: '/api/v1/app-conversations/stream-start', body: START }),
  },
  pause_app_conversation: {
    actions: ['conversation.pause'],
    request: (scene) => conversation(scene, 'pause'),
  },
  run_app_conversation: {
    actions: ['conversation.run'],
    request: (scene) => conversation(scene, 'run'),
  },
  respond_to_confirmation: {
    actions: ['conversation.respond'],
    request: (scene) => conversation(scene, 'respond-to-confirmation', { accept: true }),
  },
  switch_conversation_profile: {
    actions: ['conversation.switch_profile'],
    request: (scene) => conversation(scene, 'switch_profile', { profile_name: 'fast' }),
  },
  switch_conversation_acp_model: {
    actions: ['conversation.switch_model'],
    request: (scene) => conversation(scene, 'switch_acp_model', { model: 'second' }),
  },
  open_pull_request: {
    actions: ['conversation.open_pull_request'],
    request: ({ conversationId, sandboxKey }) => ({
      method: 'POST',
      path: '/api/v1/webhooks/pull-requests',
      body: {
        conversation_id: conversationId,
        source_branch: 'fix/it',
        target_branch: 'release',
        title: PLANTED.title,
        body: PLANTED.message,
      },
      as: { headers: { 'X-Session-API-Key': sandboxKey } },
    }),
  },
  open_conversation_pull_request: {
    // Requested before the push, and done.
    actions: ['conversation.open_pull_request', 'conversation.open_pull_request'],
    request: (scene) =>
      conversation(scene, 'pull-request', { source_branch: 'fix/it', target_branch: 'release' }),
  },
  create_custom_secret_api_secrets_post: {
    actions: ['secret.create'],
    request: () => ({
      method: 'POST',
      path: '/api/secrets',
      body: { name: 'SECOND', value: PLANTED.newSecret },
    }),
  },
  update_custom_secret_api_secrets__secret_id__put: {
    actions: ['secret.update'],
    request: () => ({
      method: 'PUT',
      path: '/api/secrets/DEPLOY_TOKEN',
      body: { name: 'RENAMED', description: PLANTED.description },
    }),
  },
  delete_custom_secret_api_secrets__secret_id__delete: {
    actions: ['secret.delete'],
    request: () => ({ method: 'DELETE', path: '/api/secrets/DEPLOY_TOKEN' }),
  },
  create_custom_secret_api_v1_secrets_post: {
    actions: ['secret.update'],
    request: () => ({
      method: 'POST',
      path: '/api/v1/secrets',
      body: { name: 'DEPLOY_TOKEN', value: PLANTED.newSecret },
    }),
  },
  update_custom_secret_api_v1_secrets__secret_id__put: {
    actions: ['secret.update'],
    request: () => ({
      method: 'PUT',
      path: '/api/v1/secrets/DEPLOY_TOKEN',
      body: { name: 'DEPLOY_TOKEN', value: PLANTED.newSecret },
    }),
  },
  delete_custom_secret_api_v1_secrets__secret_id__delete: {
    actions: ['secret.delete'],
    request: () => ({ method: 'DELETE', path: '/api/v1/secrets/DEPLOY_TOKEN' }),
  },
  store_settings_api_settings_post: {
    actions: ['settings.update', 'mcp_servers.update'],
    request: () => ({
      method: 'POST',
      path: '/api/settings',
      body: { language: 'de', search_api_key: PLANTED.searchKey, mcp_config: MCP },
    }),
  },
  store_settings_api_v1_settings_post: {
    actions: ['settings.update', 'settings.update'],
    request: () => ({
      method: 'POST',
      path: '/api/v1/settings',
      body: { agent_settings_diff: { llm: { base_url: PLANTED.baseUrl, temperature: 0.5 } } },
    }),
  },
  save_profile_api_v1_settings_profiles__name__post: {
    actions: ['llm_profile.create'],
    request: () => ({
      method: 'POST',
      path: '/api/v1/settings/profiles/second',
      body: { llm: { model: 'openai/second', api_key: PLANTED.profileKey } },
    }),
  },
  delete_profile_api_v1_settings_profiles__name__delete: {
    actions: ['llm_profile.delete'],
    request: () => ({ method: 'DELETE', path: '/api/v1/settings/profiles/fast' }),
  },
  activate_profile_api_v1_settings_profiles__name__activate_post: {
    actions: ['settings.update', 'llm_profile.activate'],
    request: () => ({ method: 'POST', path: '/api/v1/settings/profiles/fast/activate' }),
  },
  rename_profile_api_v1_settings_profiles__name__rename_post: {
    actions: ['llm_profile.rename'],
    request: () => ({
      method: 'POST',
      path: '/api/v1/settings/profiles/fast/rename',
      body: { new_name: 'faster' },
    }),
  },
  create_api_key: {
    actions: ['api_key.create'],
    request: () => ({ method: 'POST', path: '/api/v1/api-keys', body: { name: 'second' } }),
  },
  decide_device_login: {
    actions: ['api_key.create'],
    request: ({ userCode: user_code }) => ({
      method: 'POST',
      path: '/oauth/device/verify-authenticated',
      body: { user_code },
    }),
  },
  revoke_api_key: {
    actions: ['api_key.revoke'],
    request: ({ keyId }) => ({ method: 'DELETE', path: `/api/v1/api-keys/${keyId}` }),
  },
  create_user: {
    actions: ['user.create'],
    request: (_scene, admin) => ({
      method: 'POST',
      path: '/api/v1/users',
      body: { email: `${randomUUID()}@example.com` },
      as: admin,
    }),
  },
  delete_user: {
    actions: ['user.delete'],
    request: ({ other }, admin) => ({ method: 'DELETE', path: `/api/v1/users/${other.id}`, as: admin }),
  },
  create_sandbox: {
    actions: ['sandbox.create'],
    request: () => ({ method: 'POST', path: '/api/v1/sandboxes' }),
  },
  pause_sandbox: {
    actions: ['sandbox.pause'],
    request: ({ sandboxId }) => ({ method: 'POST', path: `/api/v1/sandboxes/${sandboxId}/pause` }),
  },
  resume_sandbox: {
    actions: ['sandbox.resume'],
    request: ({ pausedId }) => ({ method: 'POST', path: `/api/v1/sandboxes/${pausedId}/resume` }),
  },
  delete_sandbox: {
    actions: ['sandbox.delete'],
    request: ({ sandboxId }) => ({ method: 'DELETE', path: `/api/v1/sandboxes/${sandboxId}` }),
  },
  create_automation: {
    actions: ['automation.create'],
    request: () => ({ method: 'POST', path: `${AUTOMATIONS}/preset/prompt`, body: AUTOMATION }),
  },
  update_automation: {
    actions: ['automation.update'],
    request: ({ automationId }) => ({
      method: 'PATCH',
      path: `${AUTOMATIONS}/${automationId}`,
      body: AUTOMATION,
    }),
  },
  delete_automation: {
    actions: ['automation.delete'],
    request: ({ automationId }) => ({ method: 'DELETE', path: `${AUTOMATIONS}/${automationId}` }),
  },
  dispatch_automation: {
    actions: ['automation.dispatch'],
    request: ({ automationId }) => ({ method: 'POST', path: `${AUTOMATIONS}/${automationId}/dispatch` }),
  },
  cancel_automation_run: {
    actions: ['automation.cancel_run'],
    request: ({ runId }) => ({ method: 'POST', path: `${AUTOMATIONS}/runs/${runId}/cancel` }),
  },
  create_automation_webhook: {
    actions: ['automation_webhook.create'],
    request: () => ({
      method: 'POST',
      path: `${AUTOMATIONS}/webhooks`,
      body: { name: PLANTED.title, source: 'github', webhook_secret: PLANTED.secret },
    }),
  },
  update_automation_webhook: {
    actions: ['automation_webhook.update'],
    request: ({ sourceId }) => ({
      method: 'PATCH',
      path: `${AUTOMATIONS}/webhooks/${sourceId}`,
      body: { enabled: false },
    }),
  },
  rotate_automation_webhook_secret: {
    actions: ['automation_webhook.rotate_secret'],
    request: ({ sourceId }) => ({
      method: 'POST',
      path: `${AUTOMATIONS}/webhooks/${sourceId}/rotate-secret`,
    }),
  },
  delete_automation_webhook: {
    actions: ['automation_webhook.delete'],
    request: ({ sourceId }) => ({ method: 'DELETE', path: `${AUTOMATIONS}/webhooks/${sourceId}` }),
  },
  create_webhook_endpoint: {
    actions: ['webhook_endpoint.create'],
    request: () => ({ method: 'POST', path: '/api/v1/webhook-endpoints', body: { url: PLANTED.webhookUrl } }),
  },
  update_webhook_endpoint: {
    actions: ['webhook_endpoint.update'],
    request: ({ endpointId }) => ({
      method: 'PATCH',
      path: `/api/v1/webhook-endpoints/${endpointId}`,
      body: { url: `${PLANTED.webhookUrl}/second`, enabled: false },
    }),
  },
  delete_webhook_endpoint: {
    actions: ['webhook_endpoint.delete'],
    request: ({ endpointId }) => ({ method: 'DELETE', path: `/api/v1/webhook-endpoints/${endpointId}` }),
  },
  rotate_webhook_secret: {
    actions: ['webhook_endpoint.rotate_secret'],
    request: ({ endpointId }) => ({
      method: 'POST',
      path: `/api/v1/webhook-endpoints/${endpointId}/rotate-secret`,
    }),
  },
};

/** Operations that leave no entry, and why. */
export const NOT_AUDITED: Record<string, string> = {
  send_message_to_conversation: "The conversation's own log has each message, with its speaker.",
  queue_pending_message: "The message is in the conversation's own log once it is delivered.",
  redeliver_webhook:
    'An event is sent once more to an endpoint that subscribed to it; the delivery log has it.',
  test_webhook_endpoint: 'A test event is sent to an endpoint of the caller; the delivery log has it.',
  begin_device_login: 'Nothing is changed for anybody until a person approves the login.',
  fetch_device_key: 'The key that a person has issued by the approval is told to its device.',
  exchange_code:
    'A link that the operator has opened is exchanged for the key it stands for; nothing is changed.',
  sign_out: 'It is, but the scene has no browser whose session could end: test/auth/sessions.e2e-spec.ts.',
  forward_to_agent_server:
    "The request goes to the agent server of the caller's own sandbox, as it would at the address of that.",
  on_conversation_update: 'An agent server reports with its session key; nobody decides anything.',
  receive_automation_event: 'A host sends it with a signature of its own; events are kept for a day.',
  validate_automation: 'It says what an automation would do, and keeps nothing.',
  on_event: 'An agent server reports with its session key; nobody decides anything.',
};
