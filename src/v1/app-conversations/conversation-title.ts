import { toHexId } from '../../common/hex-id.js';

/** Agent servers take no longer ones. */
export const LONGEST_TITLE = 200;

/** The title of a conversation before anything was said in it. */
export function initialTitle(conversationId: string): string {
  return `Conversation ${toHexId(conversationId).slice(0, 5)}`;
}

/** The sentence against a title that is too long, or null. */
export function longestTitleProblem(title: string): string | null {
  return title.length > LONGEST_TITLE ? `Expected at most ${LONGEST_TITLE} characters.` : null;
}
