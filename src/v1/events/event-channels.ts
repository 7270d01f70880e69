/** Payload: the id of a conversation whose events were stored, or which is gone. */
export const EVENTS_CHANNEL = 'conversation_events';

/** Payload: the id of a conversation whose log has something new, for the process that follows it. */
export const POKES_CHANNEL = 'conversation_pokes';
