import type { AgentEvent } from './events.js';

export interface EventPage {
  items: AgentEvent[];
  /** Id of the event that the next page begins with. */
  next_page_id: string | null;
}
