import type { ActionEvent } from '../../../agent-protocol/events.js';
import { describeFailure } from '../../failure.js';
import type { PreparedCall } from '../../tools/tool.js';
import type { EngineHost, NewEvent } from '../agent-engine.js';

/** A call that is in the log and was not run yet. */
export interface PendingCall {
  event: Pick<ActionEvent, 'id' | 'tool_name' | 'tool_call_id'>;
  prepared: PreparedCall;
}

/**
 * Runs calls one after the other and writes the result of each one, whatever happens to it.
 *
 * @returns whether one of them ended the agent's work; those after it are not run
 */
export async function runCalls(
  host: EngineHost,
  calls: readonly PendingCall[],
  signal: AbortSignal,
): Promise<boolean> {
  let finished = false;
  for (const { event, prepared } of calls) {
    if (finished || signal.aborted) {
      const cause = finished ? 'an earlier call ended the work' : 'the run was interrupted';
      await host.append(callError(event, `Not run: ${cause}.`));
    } else {
      await host.append(await resultOf(host, { event, prepared }, signal));
      finished = prepared.action.kind === 'FinishAction';
    }
  }
  return finished;
}

/** Closes a call without a result. */
export function callError({ tool_name, tool_call_id }: PendingCall['event'], error: string): NewEvent {
  return { kind: 'AgentErrorEvent', source: 'agent', tool_name, tool_call_id, error };
}

async function resultOf(
  host: EngineHost,
  { event, prepared }: PendingCall,
  signal: AbortSignal,
): Promise<NewEvent> {
  try {
    const observation = await prepared.run({
      workingDir: host.settings.workingDir,
      environment: host.toolEnvironment(),
      signal,
    });
    return {
      kind: 'ObservationEvent',
      source: 'environment',
      tool_name: event.tool_name,
      tool_call_id: event.tool_call_id,
      action_id: event.id,
      observation,
    };
  } catch (error) {
    const { name, message } = describeFailure(error);
    const reason = name === 'TimeoutError' ? 'it took too long.' : message;
    return callError(
      event,
      signal.aborted
        ? 'The call was interrupted; whether it had an effect is not known.'
        : `The tool failed: ${reason}`,
    );
  }
}
