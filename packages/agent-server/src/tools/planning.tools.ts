import { z } from 'zod';
import type { AgentEvent, Observation, TaskItem } from '@slipway/agent-protocol/events.js';
import { builtInTool, type Tool } from './tool.js';

const item = z.object({
  title: z.string().describe('The task in a few words.'),
  notes: z.string().default('').describe('Details.'),
  status: z.enum(['todo', 'in_progress', 'done']).default('todo'),
});
const schema = z.object({
  command: z.enum(['view', 'plan']).default('view').describe('`plan` replaces the whole list.'),
  task_list: z.array(item).default([]).describe('The whole list, for `plan`.'),
});

export const NOTED: Observation = {
  kind: 'ThinkObservation',
  content: [{ type: 'text', text: 'Noted.' }],
  is_error: false,
};

export const thinkTool = builtInTool('Think', {
  name: 'think',
  description:
    'Note down a thought: weigh options, plan a difficult change, reason about a failure. It changes nothing and ' +
    'fetches nothing; the thought stays in the conversation.',
  needsConfirmation: false,
  schema: z.object({ thought: z.string().describe('The thought to note down.') }),
  toAction: ({ thought }) => ({ kind: 'ThinkAction', thought }),
  run: async () => NOTED,
});

/** Keeps the agent's own task list. The list is not stored here: it is the last plan in the conversation's log. */
export function taskTrackerTool(currentPlan: () => readonly TaskItem[]): Tool {
  return builtInTool('TaskTracker', {
    name: 'task_tracker',
    description:
      'Keep a list of tasks for work with several steps. `plan` writes the whole list, `view` shows it. Keep one task ' +
      'in progress at a time and mark it done as soon as it is.',
    needsConfirmation: true,
    schema,
    toAction: ({ command, task_list }) => ({ kind: 'TaskTrackerAction', command, task_list }),
    run: async ({ command, task_list }) => {
      return trackedTasks(command, command === 'plan' ? task_list : [...currentPlan()]);
    },
  });
}

export function trackedTasks(command: 'view' | 'plan', tasks: TaskItem[]): Observation {
  const content = [{ type: 'text' as const, text: describeTasks(tasks) }];
  return { kind: 'TaskTrackerObservation', content, is_error: false, command, task_list: tasks };
}

const MARKS = { todo: '[ ]', in_progress: '[>]', done: '[x]' };

function describeTasks(tasks: readonly TaskItem[]): string {
  if (tasks.length === 0) {
    return 'The task list is empty.';
  }
  return tasks
    .map(
      ({ title, notes, status }, index) =>
        `${index + 1}. ${MARKS[status]} ${title}${notes === '' ? '' : ` (${notes})`}`,
    )
    .join('\n');
}

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
