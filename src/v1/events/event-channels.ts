/** Payload: the id of a conversation whose events were stored. */
export const EVENTS_CHANNEL = 'conversation_events';

/** Payload: the id of a conversation whose log has something new, for the process that follows it. */
export const POKES_CHANNEL = 'conversation_pokes';

/** Payload: the id of a conversation whose log has just been opened. */
export const OPENED_CHANNEL = 'conversation_opened';

/** Payload: the id of a conversation whose log was removed. */
export const REMOVED_CHANNEL = 'conversation_removed';
