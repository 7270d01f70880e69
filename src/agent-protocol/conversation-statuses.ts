/** Values of `execution_status`; `deleting` is a moment's, while a conversation is removed. */
export const CONVERSATION_STATUSES = [
  'idle',
  'running',
  'paused',
  'waiting_for_confirmation',
  'finished',
  'error',
  'stuck',
  'deleting',
] as const;
