import type { TaskItem } from '../../agent-protocol/actions.js';
import type { AgentEvent } from '../../agent-protocol/events.js';

/** The task list as the log has it: that of the last plan. */
export function lastPlan(events: readonly AgentEvent[]): readonly TaskItem[] {
  const last = events.findLast(
    (event) =>
      event.kind === 'ObservationEvent' &&
      event.observation.kind === 'TaskTrackerObservation' &&
      event.observation.command === 'plan',
  );
  return last?.kind === 'ObservationEvent' && last.observation.kind === 'TaskTrackerObservation'
    ? last.observation.task_list
    : [];
}
