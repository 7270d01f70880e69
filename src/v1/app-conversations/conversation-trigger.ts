/** What may have made somebody start a conversation. */
export const CONVERSATION_TRIGGERS = [
  'resolver',
  'gui',
  'suggested_task',
  'openhands_api',
  'slack',
  'microagent_management',
  'jira',
  'jira_dc',
  'linear',
  'bitbucket',
  'automation',
] as const;

export type ConversationTrigger = (typeof CONVERSATION_TRIGGERS)[number];
