import type { SecurityRisk } from '../../../agent-protocol/events.js';
import type { EngineSettings } from '../agent-engine.js';

/** Whether a call waits for the user; a risk that is not known counts as high. */
export function waitsForUser(
  policy: EngineSettings['confirmationPolicy'],
  needsConfirmation: boolean,
  risk: SecurityRisk,
): boolean {
  if (!needsConfirmation || policy === 'never') {
    return false;
  }
  return policy === 'always' || risk === 'HIGH' || risk === 'UNKNOWN';
}
