const MOST_CHARACTERS = 100;

/**
 * Name of an event's file in an export, as OpenHands names it.
 *
 * @param index from 0
 * @param eventId of an agent server: it may hold anything, and the name must lead nowhere else
 */
export function eventFileName(index: number, eventId: string): string {
  const safe = eventId.replace(/[^0-9A-Za-z_-]/g, '_').slice(0, MOST_CHARACTERS);
  return `event_${String(index).padStart(6, '0')}_${safe}.json`;
}
