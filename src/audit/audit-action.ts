export const AUDIT_RESOURCES = [
  'api_key',
  'audit',
  'automation',
  'automation_webhook',
  'conversation',
  'encryption_keys',
  'git_token',
  'llm_profile',
  'mcp_servers',
  'push_subscription',
  'sandbox',
  'secret',
  'session',
  'settings',
  'user',
  'webhook_endpoint',
] as const;

export type AuditResource = (typeof AUDIT_RESOURCES)[number];

/** Every recorded action, with its meaning. The part before the dot is the resource type. */
export const AUDIT_ACTIONS = {
  'api_key.create': 'A key was issued',
  'api_key.revoke': 'A key was revoked',
  'api_key.forget': 'A key that had ended was forgotten, because the user has many newer ones that ended',
  'audit.prune': 'Entries older than AUDIT_RETENTION_DAYS were removed',
  'automation.create': 'An automation was created',
  'automation.update': 'Members of an automation were changed',
  'automation.dispatch': 'A run of an automation was requested by hand',
  'automation.cancel_run': 'A run of an automation was cancelled',
  'automation.delete': 'An automation was removed with its runs',
  'automation_webhook.create': 'Events of a source were let in',
  'automation_webhook.update': 'Members of the webhook of a source were changed',
  'automation_webhook.rotate_secret': 'The secret of a source was replaced',
  'automation_webhook.repository_secret': 'The secret of one repository of a source was shown',
  'automation_webhook.delete': 'Events of a source were shut out',
  'conversation.start': 'The start of a conversation was accepted',
  'conversation.adopt': 'A conversation that a client began at the agent server itself was added',
  'conversation.update': 'Members of a conversation were changed',
  'conversation.delete': 'A conversation was deleted',
  'conversation.pause': 'The agent was told to pause',
  'conversation.run': 'The agent was told to go on',
  'conversation.respond': 'What the agent wanted to do was allowed or refused',
  'conversation.take_over': 'An administrator told the agent of another user to go on, pause or stop',
  'conversation.switch_profile': 'The conversation was given the model of a stored profile',
  'conversation.switch_model': 'The agent of others was told to use another model',
  'conversation.open_pull_request': "The agent or the user opened a pull request with the user's token",
  'conversation.follow_round': 'The agent was told to go on, because of what happened to its pull request',
  'conversation.follow_end': 'A pull request is not followed any more',
  'encryption_keys.rotate': 'Stored secrets were encrypted again with the first of ENCRYPTION_KEYS',
  'git_token.store': 'A token for a git provider was stored',
  'git_token.update': 'The account id of a stored token was changed',
  'git_token.rotate': 'The git provider replaced a token, and its successor was stored',
  'git_token.delete': 'A token was removed',
  'llm_profile.create': 'A model was stored under a name',
  'llm_profile.update': 'A stored model was replaced',
  'llm_profile.rename': 'A stored model got another name',
  'llm_profile.activate': 'The settings were set to a stored model',
  'llm_profile.delete': 'A stored model was removed',
  'mcp_servers.update': 'The tool servers of a user were replaced, changed or removed',
  'push_subscription.create': 'A browser is notified',
  'push_subscription.delete': 'A browser is notified no more, or its push service knows it no more',
  'sandbox.create': 'A sandbox was made, and its start requested',
  'sandbox.pause': 'A pause was requested',
  'sandbox.resume': 'A start after a pause or an error was requested',
  'sandbox.delete': 'The removal of a sandbox with its files was requested',
  'sandbox.stop': 'A sandbox was ended because it broke a rule',
  'sandbox.egress_allow': 'One request of a sandbox was allowed that its rules refuse',
  'sandbox.remove_orphan': 'The removal of a sandbox without a row was begun',
  'secret.create': 'A custom secret was stored',
  'secret.update': 'The value, description or name of a custom secret was changed',
  'secret.delete': 'A custom secret was removed',
  'secret.expose': 'A secret or a git token was read in clear with the key of a sandbox',
  'session.create': 'A browser was signed in, with a key or the code of a link',
  'session.end': 'A browser was signed out',
  'settings.update': 'Members of the settings were changed',
  'settings.expose': 'The settings were read with their keys in clear, beside the key of a sandbox',
  'user.create': 'A user was created',
  'user.make_admin': 'A user was made an administrator',
  'user.unmake_admin': 'An administrator was made an ordinary user',
  'user.disable': 'A user was disabled: nobody and nothing acts in that name',
  'user.enable': 'A user was enabled again',
  'user.link': 'A user was linked with a sign-in of the issuer',
  'user.unlink': 'A sign-in of the issuer was taken from a user',
  'user.restore': 'A removed person was let in again',
  'user.set_role': 'The issuer or an owner gave a user another role',
  'user.delete':
    'A user was removed; conversations and sandboxes are kept for a while, or given to another user',
  'webhook_endpoint.create': 'A webhook endpoint was created',
  'webhook_endpoint.update': 'Members of a webhook endpoint were changed',
  'webhook_endpoint.rotate_secret': 'The signing secret of a webhook endpoint was replaced',
  'webhook_endpoint.disable': 'Deliveries to a webhook endpoint were ended, because its server takes none',
  'webhook_endpoint.delete': 'A webhook endpoint was removed',
} as const satisfies Record<`${AuditResource}.${string}`, string>;

export type AuditAction = keyof typeof AUDIT_ACTIONS;

export const AUDIT_ACTION_NAMES = Object.keys(AUDIT_ACTIONS) as AuditAction[];

export const ACTOR_KINDS = ['user', 'sandbox', 'operator', 'service'] as const;

export type ActorKind = (typeof ACTOR_KINDS)[number];

/** `done` in the entry's transaction; `requested`: the work follows; `failed`: the agent server did not do it. */
export const AUDIT_OUTCOMES = ['done', 'requested', 'failed'] as const;

export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

export function resourceOf(action: AuditAction): AuditResource {
  const type = AUDIT_RESOURCES.find((resource) => action.startsWith(`${resource}.`));
  if (type === undefined) {
    throw new Error(`the audit action ${action} names no type of resource`);
  }
  return type;
}
