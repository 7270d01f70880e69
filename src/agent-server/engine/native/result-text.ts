import type { Content } from '../../../agent-protocol/content.js';
import type { ResultEvent } from './visible-events.js';

/** What the model reads as the result of its call. */
export function resultText(event: ResultEvent): string {
  if (event.kind === 'AgentErrorEvent') {
    return event.error;
  }
  if (event.kind === 'UserRejectObservation') {
    return `The user refused this call: ${event.rejection_reason}`;
  }
  return textOf(event.observation.content) || '(no output)';
}

/** The text of a content; of pictures only that there are some. */
export function textOf(content: readonly Content[]): string {
  return content
    .map((part) => (part.type === 'text' ? part.text : `[${part.image_urls.length} image(s) left out]`))
    .join('\n');
}
