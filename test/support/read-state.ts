import { LogReadersService } from '../../src/v1/events/log-sync/log-readers.service.js';
import type { TestApp } from './create-test-app.js';

/** Has the state of a conversation read anew, as if the second between two reads were over. */
export function readState({ app }: TestApp, conversationId: string): void {
  for (const [id, { reader }] of app.get(LogReadersService, { strict: false })['followed']) {
    if (id.replaceAll('-', '') === conversationId) {
      reader['stateAt'] = -Infinity;
      reader.requestSync();
    }
  }
}
