import type { StoredEvent } from '../events.reader.js';

/** A line that clients take no notice of; it keeps connections open. */
export const HEARTBEAT = ': heartbeat\n\n';

/** An event in the format of server-sent events. Its JSON is one line. */
export function sseFrame({ seq, kind, body }: StoredEvent): string {
  return `id: ${seq}\nevent: ${kind.replaceAll(/[\r\n]/g, ' ')}\ndata: ${body}\n\n`;
}
