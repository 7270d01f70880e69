import type { AgentEvent } from '../../../agent-protocol/events.js';
import type { EventPage } from '../../../agent-protocol/event-page.js';

/** Answers a page of a log that begins with the named event; with the first one when there is no such event. */
export type ReadPage = (pageId: string | undefined) => Promise<EventPage>;

/**
 * What a log holds after an event, page by page and oldest first. When the log does not know that event (it was cut,
 * for example by a loss of power), all of it comes: whoever stores it leaves out what is known.
 */
export async function* readLogAfter(read: ReadPage, after: string | null): AsyncGenerator<AgentEvent[]> {
  let pageId = after ?? undefined;
  let page = await read(pageId);
  const isKnown = pageId !== undefined && page.items[0]?.id === pageId;
  yield isKnown ? page.items.slice(1) : page.items;
  // Pages that name each other as the next one would never end.
  const seen = new Set([pageId]);
  while (page.next_page_id !== null && !seen.has(page.next_page_id)) {
    pageId = page.next_page_id;
    seen.add(pageId);
    page = await read(pageId);
    yield page.items;
  }
}
