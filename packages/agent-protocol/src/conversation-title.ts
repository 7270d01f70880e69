import type { AgentEvent, Content, MessageEvent } from './events.js';

const NOT_ASCII = /[^ -~]/;
/** A title needs no more of a line. */
const MAX_LINE = 10_000;

/** The first line of the user's first message, cut between words; null before there is one. */
export function conversationTitle(events: readonly AgentEvent[], maxLength: number): string | null {
  for (const event of events) {
    if (isUserMessage(event)) {
      const line = contentText(event.llm_message.content)
        .split('\n')
        .map((words) =>
          words
            .slice(0, MAX_LINE)
            .replace(/^[#>*\s-]+/, '')
            .replace(/\s+/g, ' ')
            .trim(),
        )
        .find((words) => words !== '');
      if (line !== undefined) {
        return shorten(line, maxLength);
      }
    }
  }
  return null;
}

export function isUserMessage(event: AgentEvent): event is MessageEvent {
  return event.kind === 'MessageEvent' && event.source === 'user';
}

/** Without images. */
export function contentText(content: readonly Content[]): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
}

function shorten(line: string, maxLength: number): string {
  if (line.length <= maxLength) {
    return line;
  }
  const letters = lettersOf(line);
  if (letters.length <= maxLength) {
    return line;
  }
  const cut = letters.slice(0, Math.max(maxLength - 1, 1)).join('');
  const space = cut.lastIndexOf(' ');
  return `${space > cut.length / 2 ? cut.slice(0, space) : cut}…`;
}

/** Loading the tables for graphemes beyond ASCII costs 20 ms. */
function lettersOf(line: string): string[] {
  return NOT_ASCII.test(line)
    ? Array.from(new Intl.Segmenter().segment(line), ({ segment }) => segment)
    : line.split('');
}
