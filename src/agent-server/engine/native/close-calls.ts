import { openCalls } from '../../conversations/open-calls.js';
import type { EngineHost } from '../agent-engine.js';
import { callError } from './run-calls.js';

/** Closes the calls that have no result with an error. */
export async function closeCalls(host: EngineHost, error: string): Promise<void> {
  for (const call of openCalls(host.events())) {
    await host.append(callError(call, error));
  }
}

/** Closes the calls that wait with the user's refusal. */
export async function rejectCalls(host: EngineHost, reason: string): Promise<void> {
  for (const { id, tool_name, tool_call_id } of openCalls(host.events())) {
    await host.append({
      kind: 'UserRejectObservation',
      source: 'environment',
      tool_name,
      tool_call_id,
      rejection_reason: reason,
      rejection_source: 'user',
      action_id: id,
    });
  }
}
