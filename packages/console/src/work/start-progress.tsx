import { Callout } from '../ui/blocks.js';
import type { Start, StartTask } from './use-start.js';

const STEPS: [StartTask['status'], string][] = [
  ['WORKING', 'Accepted'],
  ['WAITING_FOR_SANDBOX', 'Sandbox'],
  ['PREPARING_REPOSITORY', 'Repository'],
  ['RUNNING_SETUP_SCRIPT', 'Setup script'],
  ['SETTING_UP_GIT_HOOKS', 'Git hooks'],
  ['STARTING_CONVERSATION', 'Conversation'],
  ['READY', 'Ready'],
];

/** The steps of a start: which are done, which is under way, and why it stopped. */
export function StartProgress({ start: { task, problem, isUnderWay } }: { start: Start }) {
  if (problem !== null) {
    return (
      <Callout kind="error" title="The start failed">
        {problem}
      </Callout>
    );
  }
  const current = STEPS.findIndex(([status]) => status === task?.status);
  return isUnderWay ? (
    <div className="progress">
      <ol className="steps" aria-label="Progress of the start">
        {STEPS.map(([status, name], index) => (
          <li
            key={status}
            className={index < current ? 'past' : index === current ? 'current' : ''}
            aria-current={index === current ? 'step' : undefined}>
            {name}
          </li>
        ))}
      </ol>
      <p role="status" className="hint">
        {task?.detail ?? `${STEPS[Math.max(current, 0)]?.[1]}…`}
      </p>
    </div>
  ) : null;
}
