import type { MessageEvent } from '../../../agent-protocol/events.js';

/** What the documentation shows. */
export const EVENT_EXAMPLE: MessageEvent = {
  kind: 'MessageEvent',
  id: 'b7d1c9de-0f0b-4c59-9d5a-1c2b3a4d5e6f',
  timestamp: '2026-11-21T09:30:00.123456',
  source: 'user',
  llm_message: { role: 'user', content: [{ type: 'text', text: 'Fix the failing test.' }] },
  activated_skills: [],
  extended_content: [],
};
